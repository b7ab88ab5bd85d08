//go:build e2e

package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// account is a made-up account of a provider with the official client's home that holds its login.
type account struct {
	provider, name, home string
	// token is the credential that the upstream gets to see.
	token string
}

func (a account) id() string { return a.provider + "/" + a.name }

func (w *world) addAccount(provider, name string) {
	w.Helper()
	a := account{provider: provider, name: name, home: w.folder("accounts", provider+"-"+name)}
	secret, refresh := "canary"+rand.Text(), "canary"+rand.Text()
	w.canaries = append(w.canaries, secret, refresh)
	switch provider {
	case "claude":
		a.token = "sk-ant-oat01-" + secret
		w.write(a.home+"/.credentials.json", w.json(map[string]any{"claudeAiOauth": map[string]any{
			"accessToken": a.token, "refreshToken": "sk-ant-ort01-" + refresh, "expiresAt": time.Now().Add(8 * time.Hour).UnixMilli(),
			"scopes": []string{"user:inference", "user:profile"}, "subscriptionType": "max", "rateLimitTier": "default_claude_max_5x",
		}}))
	case "codex":
		a.token = webToken(name, secret)
		w.write(a.home+"/auth.json", w.json(map[string]any{
			"auth_mode": "chatgpt", "OPENAI_API_KEY": nil, "last_refresh": time.Now().UTC().Format(time.RFC3339),
			"tokens": map[string]any{
				"id_token": webToken(name, secret), "access_token": a.token, "refresh_token": refresh, "account_id": "acct_" + name,
			},
		}))
		w.write(a.home+"/config.toml", quietCodex)
	}
	w.accounts = append(w.accounts, a)
}

// webToken makes a JSON web token of the official client's kind whose signature is the secret.
func webToken(name, secret string) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"RS256","typ":"JWT"}`) + "." + part(fmt.Sprintf(
		`{"exp":%d,"email":"%s@example.invalid","https://api.openai.com/auth":{"chatgpt_account_id":"acct_%s","chatgpt_plan_type":"plus","chatgpt_user_id":"user_%s"}}`,
		time.Now().Add(24*time.Hour).Unix(), name, name, name)) + "." + secret
}

func (w *world) json(value any) string {
	w.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		w.Fatal(err)
	}
	return string(text)
}

// of gives the provider's accounts in configuration order.
func (w *world) of(provider string) (accounts []account) {
	for _, a := range w.accounts {
		if a.provider == provider {
			accounts = append(accounts, a)
		}
	}
	return accounts
}

// named finds an account.
func (w *world) named(provider, name string) account {
	w.Helper()
	at := slices.IndexFunc(w.accounts, func(a account) bool { return a.provider == provider && a.name == name })
	if at < 0 {
		w.Fatalf("no account %s/%s", provider, name)
	}
	return w.accounts[at]
}

// byToken names the account of a credential as the upstream saw it.
func (w *world) byToken(token string) string {
	w.Helper()
	at := slices.IndexFunc(w.accounts, func(a account) bool { return a.token == token })
	if at < 0 {
		w.Fatal("the upstream saw a credential of no account")
	}
	return w.accounts[at].name
}
