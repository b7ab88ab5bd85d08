package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/noria-dev/noria/core/config"
)

func FuzzConfigurationIsReadOrRefusedWithItsPlace(f *testing.F) {
	files, err := filepath.Glob("testdata/diagnostics/*.hcl")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range append(files, "../../noria.hcl.example") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "noria.hcl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		file, found := config.Parse(path)
		cfg, decoded := file.Decode(schemas())
		found = append(found, decoded...)
		if found.HasErrors() != (cfg == nil) {
			t.Errorf("errors: %v, configuration: %v", found.HasErrors(), cfg != nil)
		}
		for _, d := range found {
			if s := d.Snippet; s != nil && (s.Start < 0 || s.Start > s.End || s.End > len(s.Line)) {
				t.Errorf("a range outside of its line: %+v", *s)
			}
		}
		var out bytes.Buffer
		if err := found.Write(&out, false); err != nil {
			t.Error(err)
		}
		if cfg != nil {
			cfg.Effective()
		}
	})
}
