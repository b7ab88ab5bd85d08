package config_test

import (
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/noria-dev/noria/core/config"
)

func TestAnInitialConfigurationNamesTheHomesAsTheyAre(t *testing.T) {
	for _, home := range []string{"~/.claude", "~/${env}/%{if}", `~/a "quoted" \ name`, "~/tab\tline\nescape\x1bbell\a", "~/\u00e9\u202e"} {
		written := config.Initial("made up", []config.InitialAccount{
			{Provider: "claude", Name: "one", Home: home}, {Provider: "claude", Name: "two", Home: "~/2"}, {Provider: "codex", Name: "one", Home: "~/3"},
		})
		file, found := hclsyntax.ParseConfig(written, "noria.hcl", hcl.InitialPos)
		if found.HasErrors() {
			t.Fatalf("%q: %v\n%s", home, found, written)
		}
		body := file.Body.(*hclsyntax.Body)
		if len(body.Blocks) != 2 || len(body.Blocks[0].Body.Blocks) != 2 {
			t.Fatalf("%q: its blocks are not those of the accounts:\n%s", home, written)
		}
		value, found := body.Blocks[0].Body.Blocks[0].Body.Attributes["home"].Expr.Value(nil)
		if found.HasErrors() || value.AsString() != home {
			t.Errorf("%q is read as %#v, %v", home, value, found)
		}
	}
}
