package wire

import (
	"encoding/json"
	"fmt"
	"strings"
)

// EnvReattach names the line that an executable prints with -debug: NAME='JSON', the JSON being a Reattach.
const EnvReattach = "NORIA_REATTACH"

// Reattach says where an adapter that was started with -debug listens, without TLS.
type Reattach struct {
	// Name of the plugin, so that a daemon knows which of its adapters is meant.
	Name            string `json:"name"`
	Protocol        string `json:"protocol"`
	ProtocolVersion int    `json:"protocol_version"`
	Pid             int    `json:"pid"`
	Network         string `json:"network"`
	Address         string `json:"address"`
}

// Line is what the executable prints.
func (r Reattach) Line() (string, error) {
	value, err := json.Marshal(r)
	return EnvReattach + "='" + string(value) + "'\n", err
}

// ReadReattach reads the line, or the JSON in it, which is what a shell makes of the line.
func ReadReattach(line string) (Reattach, error) {
	value := strings.Trim(strings.TrimPrefix(strings.TrimSpace(line), EnvReattach+"="), "'")
	var r Reattach
	if err := json.Unmarshal([]byte(value), &r); err != nil {
		return Reattach{}, fmt.Errorf("read %s: %w", EnvReattach, err)
	}
	return r, nil
}
