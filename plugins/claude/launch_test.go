package claude

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noria-dev/noria/sdk"
)

func launch(t *testing.T, status string, req sdk.LaunchRequest) sdk.Command {
	t.Helper()
	client, _ := fakeClient(t, status, "")
	t.Setenv("HOME", t.TempDir())
	a := New()
	config, err := sdk.NewConfig(map[string]any{"client": client, "small_model": "claude-small"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Configure(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	command, err := a.LaunchCommand(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if command.Argv[0] != client || command.Argv[len(command.Argv)-1] != "{{args}}" {
		t.Errorf("argv = %q", command.Argv)
	}
	if strings.Contains(strings.Join(command.Argv, " "), "{{key}}") {
		t.Errorf("the key stands in argv %q", command.Argv)
	}
	return command
}

func TestLaunchPutsTheKeyWhereTheClientTakesItFrom(t *testing.T) {
	own := launch(t, "2.1.332-creds", sdk.LaunchRequest{})
	if own.Env["ANTHROPIC_CUSTOM_HEADERS"] != "Authorization: Bearer {{key}}" || own.Env["CLAUDE_CODE_OAUTH_TOKEN"] != "" {
		t.Errorf("with a login: %v", own.Env)
	}
	none := launch(t, "2.1.332-none", sdk.LaunchRequest{})
	if none.Env["CLAUDE_CODE_OAUTH_TOKEN"] != "{{key}}" || none.Env["ANTHROPIC_CUSTOM_HEADERS"] != "" {
		t.Errorf("without a login: %v", none.Env)
	}
	for _, command := range []sdk.Command{own, none} {
		if command.Env["ANTHROPIC_BASE_URL"] != "{{base_url}}" || command.Env["CLAUDE_CODE_GATEWAY_HINT_HEADERS"] != "1" ||
			command.Env["ANTHROPIC_DEFAULT_HAIKU_MODEL"] != "claude-small" || command.Env["NO_PROXY"] != "{{no_proxy}}" {
			t.Errorf("environment = %v", command.Env)
		}
		for name := range command.Env {
			if slices.Contains(command.Unset, name) {
				t.Errorf("%s is set and unset", name)
			}
		}
		if !slices.Contains(command.Unset, "ANTHROPIC_API_KEY") || !slices.Contains(command.Unset, "CLAUDE_CODE_USE_BEDROCK") {
			t.Errorf("unset = %v", command.Unset)
		}
	}
}

func TestLaunchBeforeConfigurationIsAnError(t *testing.T) {
	if _, err := New().LaunchCommand(t.Context(), sdk.LaunchRequest{}); err == nil {
		t.Error("an adapter without configuration launched something")
	}
}

func TestSettingsOfTheUserAreKept(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	statusline := []string{"/opt/no ria/noria", "statusline", "it's"}
	const ours = `'/opt/no ria/noria' 'statusline' 'it'\''s'`
	plain, secret, null := file("plain.json", `{"model":"opus"}`), file("env.json", `{"env":{"KEY":"CANARY"}}`), file("null.json", "null")
	cases := []struct {
		name       string
		seen       []sdk.FlagValue
		statusline []string
		// want is the value of --settings as it was given; "merged": JSON with ours and the model; "ours": ours alone;
		// "": no flag.
		want string
	}{
		{"none", nil, statusline, "ours"},
		{"none and no statusline", nil, nil, ""},
		{"JSON", []sdk.FlagValue{{Flag: settingsFlag, Value: `{"model":"opus"}`}}, statusline, "merged"},
		{"a file", []sdk.FlagValue{{Flag: settingsFlag, Value: plain}}, statusline, "merged"},
		{"the last of two", []sdk.FlagValue{{Flag: settingsFlag, Value: "{}"}, {Flag: settingsFlag, Value: plain}}, statusline, "merged"},
		{"a file, and no statusline", []sdk.FlagValue{{Flag: settingsFlag, Value: plain}}, nil, plain},
		{"a file that sets variables", []sdk.FlagValue{{Flag: settingsFlag, Value: secret}}, statusline, secret},
		{"a file that holds null", []sdk.FlagValue{{Flag: settingsFlag, Value: null}}, statusline, null},
		{"a file that is absent", []sdk.FlagValue{{Flag: settingsFlag, Value: "/none.json"}}, statusline, "/none.json"},
		{"a file beside the user", []sdk.FlagValue{{Flag: settingsFlag, Value: "own.json"}}, statusline, "own.json"},
		{"broken JSON", []sdk.FlagValue{{Flag: settingsFlag, Value: "{"}}, statusline, "{"},
		{"a statusline of the user's", []sdk.FlagValue{{Flag: settingsFlag, Value: `{"statusLine":{}}`}}, statusline, `{"statusLine":{}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			command := launch(t, "2.1.332-none", sdk.LaunchRequest{Seen: c.seen, Statusline: c.statusline})
			got := ""
			if at := slices.Index(command.Argv, settingsFlag); at >= 0 {
				got = command.Argv[at+1]
			}
			if c.want != "ours" && c.want != "merged" {
				if got != c.want {
					t.Errorf("settings = %q, want %q", got, c.want)
				}
				return
			}
			var settings struct {
				Model      string
				StatusLine struct{ Type, Command string }
			}
			if err := json.Unmarshal([]byte(got), &settings); err != nil || settings.StatusLine.Type != "command" || settings.StatusLine.Command != ours {
				t.Errorf("settings = %s, %v", got, err)
			}
			if (settings.Model == "opus") != (c.want == "merged") {
				t.Errorf("settings = %s lost the user's", got)
			}
		})
	}
}
