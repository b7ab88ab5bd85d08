package codex

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// login is what the official client keeps of an account's login. The refresh token beside it is not read.
type login struct {
	token sdk.Secret
	// accountID of the ChatGPT workspace; empty with an API key.
	accountID string
	// expiresAt is zero when the token does not say.
	expiresAt time.Time
	// version of the file; it changes when the client renewed the login or somebody logged in anew.
	version string
}

var (
	errSignedOut = errors.New("no login")
	errOnlyKey   = errors.New("the login is an API key")
)

// readLogin reads auth.json of a CODEX_HOME: its ChatGPT login, or its API key if that is wanted. Errors: errSignedOut,
// errOnlyKey, or why it cannot be read.
func readLogin(home string, wantKey bool) (login, error) {
	var file struct {
		APIKey sdk.Secret `json:"OPENAI_API_KEY"`
		Tokens struct {
			AccessToken sdk.Secret `json:"access_token"`
			AccountID   string     `json:"account_id"`
		} `json:"tokens"`
	}
	version, err := sdk.ReadJSONFile(filepath.Join(home, "auth.json"), &file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return login{}, errSignedOut
	case err != nil:
		return login{}, err
	case wantKey && file.APIKey != "":
		return login{token: file.APIKey, version: version}, nil
	case wantKey:
		return login{}, errSignedOut
	case file.Tokens.AccessToken == "" && file.APIKey != "":
		return login{}, errOnlyKey
	case file.Tokens.AccessToken == "":
		return login{}, errSignedOut
	}
	l := tokenLogin(file.Tokens.AccessToken)
	l.version = version
	if file.Tokens.AccountID != "" {
		l.accountID = file.Tokens.AccountID
	}
	return l, nil
}

// tokenLogin reads from a token what it says of itself. Nothing of it is verified: the upstream does that.
func tokenLogin(token sdk.Secret) login {
	l := login{token: token}
	parts := strings.Split(string(token), ".")
	if len(parts) != 3 {
		return l
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return l
	}
	var claims struct {
		Expires int64 `json:"exp"`
		Auth    struct {
			AccountID string `json:"chatgpt_account_id"`
		} `json:"https://api.openai.com/auth"`
	}
	_ = json.Unmarshal(payload, &claims)
	if claims.Expires > 0 {
		l.expiresAt = time.Unix(claims.Expires, 0).UTC()
	}
	l.accountID = claims.Auth.AccountID
	return l
}

// The official client renews a token that has less than five minutes left, and no other.
const renewAhead = 5 * time.Minute

func (l login) renewable(now time.Time) bool {
	return !l.expiresAt.IsZero() && !now.Before(l.expiresAt.Add(-renewAhead))
}

// expired reports whether the token is over, or so nearly that a request might still see its end.
func (l login) expired(now time.Time) bool {
	return !l.expiresAt.IsZero() && !now.Before(l.validUntil())
}

func (l login) validUntil() time.Time {
	if l.expiresAt.IsZero() {
		return time.Time{}
	}
	return l.expiresAt.Add(-30 * time.Second)
}
