package codex

import (
	"context"
	"fmt"

	"github.com/noria-dev/noria/sdk"
)

// providerConfig is the provider block of noria.hcl.
type providerConfig struct {
	Upstream    string `hcl:"upstream" default:"https://chatgpt.com/backend-api/codex" doc:"base URL of the upstream for ChatGPT logins; http only on loopback"`
	APIUpstream string `hcl:"api_upstream" default:"https://api.openai.com/v1" doc:"base URL of the upstream for accounts with api_key; http only on loopback"`
	Backend     string `hcl:"backend" default:"https://chatgpt.com/backend-api" doc:"base of the account backend that the official client asks for limits; http only on loopback"`
	Client      string `hcl:"client" default:"codex" doc:"path of the official client, or its name in PATH"`
}

// accountConfig is an account block of noria.hcl.
type accountConfig struct {
	Home   sdk.Path `hcl:"home" doc:"directory of the official client with the account's login (its CODEX_HOME)"`
	APIKey bool     `hcl:"api_key" doc:"use a pay-as-you-go API key: that of the credential, or of the home; it is never used as a subscription"`
}

// settings are both blocks, for one account.
type settings struct {
	provider providerConfig
	account  accountConfig
}

func settingsOf(account sdk.Account) (settings, error) {
	var s settings
	if err := account.DecodeProvider(&s.provider); err != nil {
		return settings{}, fmt.Errorf("read provider block: %w", err)
	}
	if err := account.Decode(&s.account); err != nil {
		return settings{}, fmt.Errorf("read account block: %w", err)
	}
	return s, nil
}

// Validate checks what the schema cannot say.
func (*Adapter) Validate(_ context.Context, config sdk.Config) []sdk.Diagnostic {
	var found []sdk.Diagnostic
	var p providerConfig
	if config.Decode(&p) == nil {
		found = append(found, validateProvider(p)...)
	}
	for _, account := range config.Accounts {
		found = append(found, validateAccount(account)...)
	}
	return append(found, sdk.SharedHomes(config.Accounts, "home", homeOf)...)
}

// homeOf gives the folder whose login an account is. A home may hold an API key beside it, which is another account.
func homeOf(account sdk.Account) sdk.Path {
	var a accountConfig
	if account.Decode(&a) != nil || a.APIKey {
		return ""
	}
	return a.Home
}

func validateProvider(p providerConfig) []sdk.Diagnostic {
	var found []sdk.Diagnostic
	for _, u := range []struct{ attribute, value string }{
		{"upstream", p.Upstream}, {"api_upstream", p.APIUpstream}, {"backend", p.Backend},
	} {
		if _, err := sdk.ParseUpstream(u.value); err != nil {
			found = append(found, sdk.Diagnostic{Severity: sdk.SeverityError, Attribute: u.attribute,
				Summary: "Invalid " + u.attribute, Detail: "The value " + err.Error() + "."})
		}
	}
	return found
}

func validateAccount(account sdk.Account) []sdk.Diagnostic {
	var a accountConfig
	if account.Decode(&a) != nil {
		return nil
	}
	problem := func(attribute, summary, detail string) []sdk.Diagnostic {
		return []sdk.Diagnostic{{Severity: sdk.SeverityError, Account: account.Name, Attribute: attribute, Summary: summary, Detail: detail}}
	}
	switch configured := !account.Credential.IsZero(); {
	case a.Home == "" && !configured:
		return problem("", "Account has no login",
			"Set home to the directory of the official client, or give a credential block.")
	case a.Home != "" && configured:
		return problem("home", "Account has two logins", "Keep either home or the credential block.")
	}
	return nil
}
