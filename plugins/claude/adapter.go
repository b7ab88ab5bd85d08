package claude

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/noria-dev/noria/sdk"
)

const (
	provider = "claude"
	version  = "0.1.0"
)

// Adapter serves the provider claude. It is safe for concurrent use.
type Adapter struct {
	now         func() time.Time
	credentials *sdk.Credentials
	clients     sdk.ClientTurns

	// configured is the provider block; the launcher is not told an account.
	configured atomic.Pointer[providerConfig]

	renewals sdk.Renewals
}

// New makes the adapter.
func New() *Adapter {
	return &Adapter{now: time.Now, credentials: sdk.NewCredentials()}
}

// Describe says what the adapter is.
func (*Adapter) Describe() sdk.Descriptor {
	return sdk.Descriptor{
		Name: provider, Version: version, Provider: provider,
		Config: providerConfig{}, Account: accountConfig{}, Profile: profile(),
		// The official client needs them where the way out is a proxy.
		Environment: []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"},
	}
}

// Configure keeps the provider block.
func (a *Adapter) Configure(_ context.Context, config sdk.Config) error {
	var p providerConfig
	if err := config.Decode(&p); err != nil {
		return fmt.Errorf("read provider block: %w", err)
	}
	a.configured.Store(&p)
	return nil
}

// Windows: a pay-as-you-go key has no quota clocks.
func (*Adapter) Windows(account sdk.Account) (windows []sdk.WindowDeclaration, unmetered bool) {
	s, err := settingsOf(account)
	if err == nil && s.account.APIKey {
		return nil, true
	}
	return declaredWindows(), false
}

// Drain waits for official clients that are running: one may be renewing a login.
func (a *Adapter) Drain(ctx context.Context) error { return a.clients.Wait(ctx) }
