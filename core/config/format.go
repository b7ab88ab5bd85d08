package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns the file in canonical style. Diagnostics say why it cannot be read; a file with other errors is formatted
// all the same.
func Format(path string) (before, after []byte, diags Diagnostics) {
	f := &File{name: path, body: &hclsyntax.Body{}, harmless: map[int]bool{}}
	source, err := readBounded(path)
	if err != nil {
		return nil, nil, f.render(hcl.Diagnostics{unreadable(path, err)})
	}
	f.source = source
	if _, found := hclsyntax.ParseConfig(source, path, hcl.InitialPos); found.HasErrors() {
		return source, nil, f.render(found)
	}
	return source, hclwrite.Format(source), nil
}
