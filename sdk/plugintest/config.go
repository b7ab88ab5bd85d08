package plugintest

import (
	"encoding/json"
	"fmt"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// config makes of the fixtures what a daemon makes of noria.hcl: defaults filled in, paths resolved.
func (f Fixtures) config(d *pluginv1.DescribeResponse) (*pluginv1.Config, error) {
	provider, err := f.block(f.Config, d.GetConfigSchema())
	if err != nil {
		return nil, fmt.Errorf("provider block: %w", err)
	}
	config := &pluginv1.Config{ProviderJson: provider}
	for _, a := range f.Accounts {
		block, err := f.block(a.Config, d.GetAccountSchema())
		if err != nil {
			return nil, fmt.Errorf("account %s: %w", a.Name, err)
		}
		config.Accounts = append(config.Accounts, &pluginv1.Account{
			Name: a.Name, Enabled: true, ConfigJson: block, Credential: f.credential(a.Credential)})
	}
	return config, nil
}

func (f Fixtures) block(given map[string]any, schema *pluginv1.Schema) ([]byte, error) {
	block := map[string]any{}
	for name, value := range given {
		block[name] = value
	}
	for _, a := range schema.GetAttributes() {
		value, has := block[a.GetName()]
		if !has && a.GetDefaultJson() != "" {
			value, has = json.RawMessage(a.GetDefaultJson()), true
		}
		if file, ok := value.(string); ok && a.GetType() == pluginv1.AttributeType_ATTRIBUTE_TYPE_PATH {
			value = f.path(file)
		}
		if has {
			block[a.GetName()] = value
		}
	}
	return json.Marshal(block)
}

func (f Fixtures) credential(c Credential) *pluginv1.Credential {
	switch {
	case c.Value != "":
		return &pluginv1.Credential{Source: &pluginv1.Credential_Value{Value: c.Value}}
	case c.File != "":
		return &pluginv1.Credential{Source: &pluginv1.Credential_File{File: f.path(c.File)}}
	case len(c.Command) > 0:
		return &pluginv1.Credential{Source: &pluginv1.Credential_Command{Command: &pluginv1.Command{Argv: c.Command}}}
	}
	return nil
}

// withAttribute sets one attribute of a block.
func withAttribute(block []byte, name string, value any) []byte {
	values := map[string]any{}
	if json.Unmarshal(block, &values) != nil {
		return block
	}
	values[name] = value
	changed, err := json.Marshal(values)
	if err != nil {
		return block
	}
	return changed
}
