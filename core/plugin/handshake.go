package plugin

import (
	"crypto/x509"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/go-plugin"

	"github.com/noria-dev/noria/core/internal/owner"
	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/sdk/wire"
)

// maxSocketPath is what every system's socket address can hold.
const maxSocketPath = 103

// checkHandshake reads the first line of an adapter's output the way go-plugin will, and refuses what go-plugin would
// accept or stumble over: other networks than a unix socket, sockets outside dir, other protocols than gRPC, a missing
// certificate. Nothing of the line gets into the failure.
func checkHandshake(line, dir string) *Failure {
	fields := strings.Split(line, "|")
	if !printable.IsLine(line, lineBytes) || len(fields) < 5 || len(fields) > 7 {
		return malformed()
	}
	switch {
	case fields[0] != strconv.Itoa(plugin.CoreProtocolVersion):
		return &Failure{Reason: ReasonHandshakeVersion, Detail: "handshake has an unknown core version", Permanent: true}
	case fields[1] != strconv.FormatUint(uint64(wire.Handshake.ProtocolVersion), 10):
		return &Failure{Reason: ReasonHandshakeVersion, Detail: "handshake has an unknown protocol version", Permanent: true}
	case fields[2] != "unix":
		return &Failure{Reason: ReasonHandshakeNetwork, Detail: "adapter listens on something else than a unix socket", Permanent: true}
	case fields[4] != string(plugin.ProtocolGRPC):
		return &Failure{Reason: ReasonHandshakeProtocol, Detail: "adapter speaks something else than gRPC", Permanent: true}
	}
	if f := checkSocket(fields[3], dir); f != nil {
		return f
	}
	if len(fields) < 6 || !isCertificate(fields[5]) {
		return &Failure{Reason: ReasonHandshakeTLS, Detail: "handshake has no certificate"}
	}
	return nil
}

func malformed() *Failure {
	return &Failure{Reason: ReasonHandshake, Detail: "first line of output is no handshake"}
}

func checkSocket(path, dir string) *Failure {
	refused := func(detail string) *Failure { return &Failure{Reason: ReasonHandshakeAddress, Detail: detail} }
	if len(path) > maxSocketPath || !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return refused("address of the adapter is no usable path")
	}
	if filepath.Dir(path) != dir {
		return refused("socket of the adapter is outside its private directory")
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return refused("address of the adapter is no socket")
	}
	if !owner.Ours(info) {
		return refused("socket of the adapter has another owner")
	}
	return nil
}

func isCertificate(field string) bool {
	der, err := base64.RawStdEncoding.DecodeString(field)
	if err != nil {
		return false
	}
	_, err = x509.ParseCertificate(der)
	// go-plugin takes a field of up to 50 bytes for something else and then verifies nothing.
	return err == nil && len(field) > 50
}
