package config_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noria-dev/noria/core/config"
	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// schemas are what the plugins in the tests' files say of themselves.
func schemas() map[string]*pluginv1.DescribeResponse {
	text, path := pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING, pluginv1.AttributeType_ATTRIBUTE_TYPE_PATH
	claude := &pluginv1.DescribeResponse{
		Name: "claude", Provider: "claude",
		ConfigSchema: &pluginv1.Schema{Attributes: []*pluginv1.Attribute{
			{Name: "upstream", Type: text, DefaultJson: `"https://upstream.example"`},
			{Name: "client", Type: path, DefaultJson: `"~/bin/client"`},
			{Name: "patience", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_DURATION},
			{Name: "retries", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_NUMBER},
			{Name: "hosts", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_LIST},
			{Name: "labels", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_MAP},
		}},
		AccountSchema: &pluginv1.Schema{Attributes: []*pluginv1.Attribute{
			{Name: "home", Type: path},
			{Name: "api_key", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_BOOL},
			{Name: "token", Type: text, Sensitive: true},
		}},
	}
	acme := &pluginv1.DescribeResponse{
		Name: "acme", Provider: "acme",
		ConfigSchema:  &pluginv1.Schema{Attributes: []*pluginv1.Attribute{{Name: "endpoint", Type: text, Required: true}}},
		AccountSchema: &pluginv1.Schema{Attributes: []*pluginv1.Attribute{{Name: "token_file", Type: path}}},
	}
	return map[string]*pluginv1.DescribeResponse{"claude": claude, "acme": acme}
}

// inPrivateHome makes paths and the environment the same on every machine.
func inPrivateHome(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", "/home/user")
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "NORIA_CONFIG"} {
		t.Setenv(name, "")
	}
}

func load(path string) (*config.Config, config.Diagnostics) {
	file, found := config.Parse(path)
	cfg, decoded := file.Decode(schemas())
	return cfg, append(found, decoded...)
}

func TestDiagnosticsSayWhatWhereAndWhatToDo(t *testing.T) {
	inPrivateHome(t)
	files, err := filepath.Glob("testdata/diagnostics/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".hcl"), func(t *testing.T) {
			cfg, found := load(path)
			if found.HasErrors() != (cfg == nil) {
				t.Errorf("errors: %v, configuration: %v", found.HasErrors(), cfg != nil)
			}
			golden(t, strings.TrimSuffix(path, ".hcl")+".golden", written(t, found, false))
			for _, d := range found {
				if strings.Contains(d.Summary+d.Detail, "made-up") || d.Snippet != nil && strings.Contains(d.Snippet.Line, "made-up") {
					t.Errorf("a secret is shown: %+v", d)
				}
			}
		})
	}
}

func TestMissingFileNamesTheRemedy(t *testing.T) {
	inPrivateHome(t)
	_, found := config.Parse("testdata/none.hcl")
	golden(t, "testdata/diagnostics/no-file.golden", written(t, found, false))
}

func TestColourMarksTheRangeInsteadOfCarets(t *testing.T) {
	inPrivateHome(t)
	_, found := load("testdata/diagnostics/unknown-attribute.hcl")
	golden(t, "testdata/diagnostics/colour.golden", written(t, found, true))
}

func written(t *testing.T, found config.Diagnostics, colour bool) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := found.Write(&out, colour); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
