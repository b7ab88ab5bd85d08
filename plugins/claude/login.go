package claude

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// login is what the official client keeps of a subscription's login. The refresh token beside it is not read.
type login struct {
	token     sdk.Secret
	expiresAt time.Time
	// version of the file; it changes when the client renewed the login or somebody logged in anew.
	version string
	// inference: the login may be used for model requests.
	inference bool
}

var errSignedOut = errors.New("no login")

// readLogin reads .credentials.json of a configuration directory. Error: errSignedOut, or why it cannot be read.
func readLogin(home string) (login, error) {
	var file struct {
		OAuth struct {
			AccessToken sdk.Secret `json:"accessToken"`
			// ExpiresAt is in milliseconds since 1970.
			ExpiresAt int64    `json:"expiresAt"`
			Scopes    []string `json:"scopes"`
		} `json:"claudeAiOauth"`
	}
	version, err := sdk.ReadJSONFile(filepath.Join(home, ".credentials.json"), &file)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && file.OAuth.AccessToken == "") {
		return login{}, errSignedOut
	}
	if err != nil {
		return login{}, err
	}
	l := login{token: file.OAuth.AccessToken, version: version,
		inference: file.OAuth.Scopes == nil || slices.Contains(file.OAuth.Scopes, "user:inference")}
	if file.OAuth.ExpiresAt > 0 {
		l.expiresAt = time.UnixMilli(file.OAuth.ExpiresAt).UTC()
	}
	return l, nil
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
