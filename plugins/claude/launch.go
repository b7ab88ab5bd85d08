package claude

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/noria-dev/noria/sdk"
)

const settingsFlag = "--settings"

var errNotConfigured = errors.New("adapter is not configured")

// LaunchFlags: the user's settings are merged with ours.
func (*Adapter) LaunchFlags() []string { return []string{settingsFlag} }

// LaunchCommand starts Claude Code behind the daemon, for this invocation only: nothing is written.
//
// A client that has a login of its own keeps it for its own calls to the vendor; on requests to the base URL our key takes
// its place. One without a login takes the key for a subscription's token, so that it shows limits as such a client does.
func (a *Adapter) LaunchCommand(ctx context.Context, req sdk.LaunchRequest) (sdk.Command, error) {
	p := a.configured.Load()
	if p == nil {
		return sdk.Command{}, errNotConfigured
	}
	command := sdk.Command{
		Argv: []string{p.Client},
		Env: map[string]string{
			"ANTHROPIC_BASE_URL":               "{{base_url}}",
			"ANTHROPIC_DEFAULT_HAIKU_MODEL":    p.SmallModel,
			"CLAUDE_CODE_GATEWAY_HINT_HEADERS": "1",
			"NO_PROXY":                         "{{no_proxy}}",
			"no_proxy":                         "{{no_proxy}}",
		},
	}
	if a.ownLogin(ctx, p.Client) {
		command.Env["ANTHROPIC_CUSTOM_HEADERS"] = "Authorization: Bearer {{key}}"
	} else {
		command.Env["CLAUDE_CODE_OAUTH_TOKEN"] = "{{key}}"
	}
	for _, name := range diverting {
		if _, set := command.Env[name]; !set {
			command.Unset = append(command.Unset, name)
		}
	}
	settings, given := lastValue(req.Seen, settingsFlag)
	if merged := mergeSettings(settings, req.Statusline); merged != "" {
		command.Argv = append(command.Argv, settingsFlag, merged)
	} else if given {
		command.Argv = append(command.Argv, settingsFlag, settings)
	}
	command.Argv = append(command.Argv, "{{args}}")
	return command, nil
}

// ownLogin asks the official client whether the user has a subscription's login in the usual place.
func (a *Adapter) ownLogin(ctx context.Context, client string) bool {
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	var s settings
	s.provider.Client, s.account.Home = client, sdk.Path(filepath.Join(home, ".claude"))
	var out sdk.ClientOutput
	var failed error
	err = a.clients.Do(ctx, string(s.account.Home), func(ctx context.Context) {
		out, failed = sdk.RunClient(ctx, statusCommand(s), clientPatience)
	})
	if err != nil || failed != nil {
		return false
	}
	status, err := readStatus(out.Stdout, sdk.Account{})
	return err == nil && status.Method == "claude.ai"
}

// mergeSettings adds our statusline to the user's settings, which are JSON or the path of a file, and returns JSON. It
// returns "" when there is nothing to add, or nothing that may be added: settings that cannot be read, that have a
// statusline already, or whose file sets variables, which may be secrets and must not show in a command line.
func mergeSettings(given string, statusline []string) string {
	if len(statusline) == 0 {
		return ""
	}
	merged := map[string]json.RawMessage{}
	switch given = strings.TrimSpace(given); {
	case given == "":
	case strings.HasPrefix(given, "{"):
		if json.Unmarshal([]byte(given), &merged) != nil {
			return ""
		}
	case filepath.IsAbs(given):
		if _, err := sdk.ReadJSONFile(given, &merged); err != nil || merged == nil || merged["env"] != nil {
			return ""
		}
	default:
		return ""
	}
	if merged["statusLine"] != nil {
		return ""
	}
	// Strings always marshal.
	merged["statusLine"], _ = json.Marshal(map[string]string{"type": "command", "command": shellLine(statusline)})
	document, err := json.Marshal(merged)
	if err != nil {
		return ""
	}
	return string(document)
}

// shellLine quotes argv for the shell that runs statusline commands.
func shellLine(argv []string) string {
	quoted := make([]string, len(argv))
	for i, word := range argv {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

func lastValue(seen []sdk.FlagValue, flag string) (value string, given bool) {
	for _, f := range seen {
		if f.Flag == flag {
			value, given = f.Value, true
		}
	}
	return value, given
}
