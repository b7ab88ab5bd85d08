package sdk

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// credentialPatience bounds the command of a credential.
const credentialPatience = 10 * time.Second

// ErrEmptyCredential is returned when the configured source holds nothing.
var ErrEmptyCredential = errors.New("credential is empty")

// Credentials reads configured credentials and gives each a generation for [Lease.Generation]. The zero value is not
// usable; it is safe for concurrent use.
type Credentials struct {
	// key makes a generation worthless outside this process: it is no fingerprint of the credential.
	key [sha256.Size]byte
}

// NewCredentials makes a reader whose generations are its own.
func NewCredentials() *Credentials {
	c := &Credentials{}
	// It never fails; see crypto/rand.
	_, _ = rand.Read(c.key[:])
	return c
}

// Read gives the value, the content of the file or the standard output of the command, without surrounding white space,
// and a generation that changes with it. A command runs with a deadline of ten seconds and its output bounded.
// Errors: [ErrNoCredential], [ErrEmptyCredential], or why the source could not be read, without anything that it said.
func (c *Credentials) Read(ctx context.Context, credential Credential) (secret Secret, generation string, err error) {
	var text string
	switch {
	case credential.Value != "":
		text = credential.Value
	case credential.File != "":
		data, _, err := readFile(credential.File)
		if err != nil {
			return "", "", err
		}
		text = string(data)
	case len(credential.Command) > 0:
		out, err := RunClient(ctx, Command{Argv: credential.Command}, credentialPatience)
		if err != nil {
			return "", "", err
		}
		if out.ExitCode != 0 {
			return "", "", fmt.Errorf("run %s: exit status %d", credential.Command[0], out.ExitCode)
		}
		text = string(out.Stdout)
	default:
		return "", "", ErrNoCredential
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", "", ErrEmptyCredential
	}
	return Secret(text), c.Generation(text), nil
}

// CredentialRefusal is the code with which to refuse a lease when [Credentials.Read] failed: only a source that is absent or
// empty proves that nobody is signed in. All else can pass, such as a vault that is locked or a command that took too long.
func CredentialRefusal(err error) RefusalCode {
	if errors.Is(err, ErrNoCredential) || errors.Is(err, ErrEmptyCredential) || errors.Is(err, fs.ErrNotExist) {
		return RefusalSignedOut
	}
	return RefusalTemporary
}

// Generation names a credential for as long as this process lives.
func (c *Credentials) Generation(credential string) string {
	mac := hmac.New(sha256.New, c.key[:])
	mac.Write([]byte(credential))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}
