package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"

	"google.golang.org/protobuf/encoding/protojson"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

var (
	pluginName      = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	semanticVersion = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	environmentName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// description is what a descriptor says, checked and in the form of the protocol.
type description struct {
	descriptor                  Descriptor
	configSchema, accountSchema []attribute
	services                    []string
}

func describe(adapter Adapter) (description, error) {
	d := description{descriptor: adapter.Describe(), services: services(adapter)}
	if d.descriptor.Provider == "" {
		d.descriptor.Provider = d.descriptor.Name
	}
	if !pluginName.MatchString(d.descriptor.Name) {
		return d, fmt.Errorf("name %q is not of the form %s", d.descriptor.Name, pluginName)
	}
	if !pluginName.MatchString(d.descriptor.Provider) {
		return d, fmt.Errorf("provider %q is not of the form %s", d.descriptor.Provider, pluginName)
	}
	if !semanticVersion.MatchString(d.descriptor.Version) {
		return d, fmt.Errorf("version %q is no semantic version such as 1.2.3", d.descriptor.Version)
	}
	for _, name := range d.descriptor.Environment {
		if !environmentName.MatchString(name) {
			return d, fmt.Errorf("environment variable %q is no name", name)
		}
	}
	var err error
	if d.configSchema, err = schemaOf(d.descriptor.Config); err != nil {
		return d, err
	}
	d.accountSchema, err = schemaOf(d.descriptor.Account)
	return d, err
}

func (d description) proto() *pluginv1.DescribeResponse {
	return &pluginv1.DescribeResponse{
		Name:             d.descriptor.Name,
		Version:          d.descriptor.Version,
		SdkVersion:       Version,
		Provider:         d.descriptor.Provider,
		Services:         d.services,
		ConfigSchema:     schemaProto(d.configSchema),
		AccountSchema:    schemaProto(d.accountSchema),
		Environment:      d.descriptor.Environment,
		HandshakeVersion: uint32(wire.Handshake.ProtocolVersion),
	}
}

// services are the full names of what an adapter serves, by the optional interfaces that it implements.
func services(adapter Adapter) []string {
	names := []string{wire.ServicePlugin, wire.ServiceProvider}
	add := func(offered bool, name string) {
		if offered {
			names = append(names, name)
		}
	}
	_, reads := adapter.(QuotaReader)
	_, watches := adapter.(QuotaWatcher)
	_, checks := adapter.(AuthChecker)
	_, logsIn := adapter.(LoginCommander)
	_, lists := adapter.(ModelLister)
	_, launches := adapter.(Launcher)
	_, signs := adapter.(Signer)
	add(reads || watches, wire.ServiceQuota)
	add(checks || logsIn, wire.ServiceAuth)
	add(lists, wire.ServiceCatalog)
	add(launches, wire.ServiceLaunch)
	add(signs, wire.ServiceSigner)
	return names
}

// printDescription writes the description as the protocol's JSON: the DescribeResponse message, indented.
func printDescription(w io.Writer, newAdapter func() Adapter) int {
	d, err := describe(newAdapter())
	if err != nil {
		fmt.Fprintf(os.Stderr, "describe adapter: %v\n", err)
		return exitFailed
	}
	text, err := protojson.Marshal(d.proto())
	if err != nil {
		fmt.Fprintf(os.Stderr, "describe adapter: %v\n", err)
		return exitFailed
	}
	// protojson varies its white space on purpose; two descriptions must be equal.
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		fmt.Fprintf(os.Stderr, "describe adapter: %v\n", err)
		return exitFailed
	}
	out.WriteByte('\n')
	if _, err := out.WriteTo(w); err != nil {
		return exitFailed
	}
	return exitDone
}
