package plugintest

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// maySecret is the length from which a string is looked for as a secret; shorter ones are found by chance.
const maySecret = 8

// maxTexts bounds the different error texts that are kept.
const maxTexts = 1000

// said is what the adapter said over the socket.
type said struct {
	mu     sync.Mutex          // guards the rest
	errors map[string]struct{} // texts
	leaked map[string]struct{} // methods whose answers held a secret
}

// listen keeps the texts of errors and looks for secrets in all answers but those that are made to carry them.
func (s *suite) listen(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
	err := call(ctx, method, req, reply, conn, options...)
	s.said.mu.Lock()
	defer s.said.mu.Unlock()
	if err != nil {
		if len(s.said.errors) < maxTexts {
			s.said.errors[err.Error()] = struct{}{}
		}
		return err
	}
	message, ok := reply.(proto.Message)
	if !ok || method == providerv1.Provider_Lease_FullMethodName || method == providerv1.Signer_SignRequest_FullMethodName {
		return nil
	}
	data, marshalErr := proto.Marshal(message)
	for _, secret := range s.secrets {
		if marshalErr == nil && bytes.Contains(data, []byte(secret)) {
			s.said.leaked[method] = struct{}{}
		}
	}
	return nil
}

// addSecret takes the last word of a value, since a header often is a scheme and a token.
func (s *suite) addSecret(value string) {
	words := strings.Fields(value)
	if len(words) == 0 {
		return
	}
	last := words[len(words)-1]
	if len(last) >= maySecret && !slices.Contains(s.secrets, last) {
		s.secrets = append(s.secrets, last)
	}
}

// secrets are those that the fixtures name. Those of leases are added when they are seen.
func (f Fixtures) secrets() []string {
	var secrets []string
	add := func(value string) {
		if value = strings.TrimSpace(value); len(value) >= maySecret {
			secrets = append(secrets, value)
		}
	}
	for _, secret := range f.Secrets {
		add(secret)
	}
	for _, account := range f.Accounts {
		add(account.Credential.Value)
		if account.Credential.File == "" {
			continue
		}
		if data, err := os.ReadFile(f.path(account.Credential.File)); err == nil {
			add(string(data))
		}
	}
	return secrets
}

// redact keeps secrets out of the report.
func (s *suite) redact(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return text
}

// checkSecrets looks for credentials in all that was printed and said so far.
func (s *suite) checkSecrets(_ context.Context, f *findings) {
	if len(s.secrets) == 0 {
		f.add(`give an account a credential of at least eight characters, or list one under "secrets"`, "fixtures have no secret to look for")
	}
	s.said.mu.Lock()
	defer s.said.mu.Unlock()
	for method := range s.said.leaked {
		f.add("put credentials into leases and nowhere else", "a credential is in the answer of %s", method)
	}
	printed := s.output.String()
	for _, secret := range s.secrets {
		if strings.Contains(printed, secret) {
			f.add("log classes and places, never values", "a credential is in the output of the adapter")
		}
		for text := range s.said.errors {
			if strings.Contains(text, secret) {
				f.add("build errors of fixed words, never of values", "a credential is in an error")
			}
		}
	}
}
