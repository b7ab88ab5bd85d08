package claude

import (
	"context"
	"fmt"

	"github.com/noria-dev/noria/sdk"
)

// providerConfig is the provider block of noria.hcl.
type providerConfig struct {
	Upstream string `hcl:"upstream" default:"https://api.anthropic.com" doc:"base URL of the upstream; http only on loopback"`
	Client   string `hcl:"client" default:"claude" doc:"path of the official client, or its name in PATH"`
	// SmallModel keeps the client's background calls on a small model: behind a base URL of another it would send them
	// to the main one.
	SmallModel string `hcl:"small_model" default:"claude-haiku-4-5" doc:"model for the client's background calls under noria run claude"`
}

// accountConfig is an account block of noria.hcl.
type accountConfig struct {
	Home   sdk.Path `hcl:"home" doc:"configuration directory of the official client with the account's login (its CLAUDE_CONFIG_DIR)"`
	APIKey bool     `hcl:"api_key" doc:"the credential is a pay-as-you-go API key, which is never used as a subscription"`
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
		if _, err := sdk.ParseUpstream(p.Upstream); err != nil {
			found = append(found, sdk.Diagnostic{Severity: sdk.SeverityError, Attribute: "upstream",
				Summary: "Invalid upstream", Detail: "The value " + err.Error() + "."})
		}
	}
	for _, account := range config.Accounts {
		found = append(found, validateAccount(account)...)
	}
	return append(found, sdk.SharedHomes(config.Accounts, "home", homeOf)...)
}

func homeOf(account sdk.Account) sdk.Path {
	var a accountConfig
	if account.Decode(&a) != nil {
		return ""
	}
	return a.Home
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
			"Set home to the configuration directory of the official client, or give a credential block.")
	case a.Home != "" && configured:
		return problem("home", "Account has two logins", "Keep either home or the credential block.")
	case a.APIKey && !configured:
		return problem("api_key", "API key without a credential",
			"An API key comes from a credential block; a configuration directory holds a subscription's login.")
	}
	return nil
}
