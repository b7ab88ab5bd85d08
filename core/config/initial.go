package config

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// InitialAccount is an account of a first configuration: a home of its official client.
type InitialAccount struct {
	Provider, Name, Home string
}

// Initial writes a first configuration below a comment of one line. Accounts of one provider stand together. It has no
// setting but the accounts: the rest has defaults.
func Initial(comment string, accounts []InitialAccount) []byte {
	file := hclwrite.NewEmptyFile()
	file.Body().AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte("# " + comment + "\n")}})
	var provider writer
	for i, a := range accounts {
		if i == 0 || accounts[i-1].Provider != a.Provider {
			file.Body().AppendNewline()
			provider = writer{file.Body().AppendNewBlock("provider", []string{a.Provider}).Body()}
		}
		writer{provider.AppendNewBlock("account", []string{a.Name}).Body()}.text("home", a.Home)
	}
	return hclwrite.Format(file.Bytes())
}
