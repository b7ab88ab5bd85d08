package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const examplePath = "../../noria.hcl.example"

func TestExampleHasEverySettingOfTheHost(t *testing.T) {
	example, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range []any{
		root{}, listenBlock{}, stateBlock{}, telemetryBlock{}, placementBlock{}, limitsBlock{}, logBlock{}, metricsBlock{},
		pluginBlock{}, providerBlock{}, accountBlock{}, credentialBlock{},
	} {
		kind := reflect.TypeOf(block)
		for i := range kind.NumField() {
			name, option, _ := strings.Cut(kind.Field(i).Tag.Get("hcl"), ",")
			pattern := `(?m)^\s*(# *)?` + name + ` += `
			switch option {
			case "block":
				pattern = `(?m)^\s*` + name + `( "[a-z]+")? {$`
				if name == "plugin" {
					pattern = `(?m)^# plugin "acme" {$`
				}
			case "optional":
			default:
				continue
			}
			if !regexp.MustCompile(pattern).Match(example) {
				t.Errorf("%s of %s is not in noria.hcl.example", name, kind.Name())
			}
		}
	}
}

func TestExampleShowsTheDefaults(t *testing.T) {
	t.Setenv("HOME", "/home/user")
	for _, name := range []string{"XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		t.Setenv(name, "")
	}
	example, found := Parse(examplePath)
	if len(found) != 0 {
		t.Fatal(found)
	}
	empty := t.TempDir() + "/noria.hcl"
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defaults, _ := Parse(empty)
	defaults.Path = example.Path
	if diff := cmp.Diff(defaults.Host, example.Host); diff != "" {
		t.Errorf("(-default +example):\n%s", diff)
	}
}
