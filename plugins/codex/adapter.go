package codex

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/noria-dev/noria/sdk"
)

const (
	provider = "codex"
	version  = "0.1.0"
)

// Adapter serves the provider codex. It is safe for concurrent use.
type Adapter struct {
	now         func() time.Time
	credentials *sdk.Credentials
	clients     sdk.ClientTurns
	// configured is the provider block; the launcher is not told an account.
	configured atomic.Pointer[providerConfig]

	renewals sdk.Renewals

	mu sync.Mutex // guards readings
	// readings by account: the windows of the last complete reading.
	readings map[string][]sdk.Window
}

// New makes the adapter.
func New() *Adapter {
	return &Adapter{
		now: time.Now, credentials: sdk.NewCredentials(),
		readings: map[string][]sdk.Window{},
	}
}

// Describe says what the adapter is.
func (*Adapter) Describe() sdk.Descriptor {
	return sdk.Descriptor{
		Name: provider, Version: version, Provider: provider,
		Config: providerConfig{}, Account: accountConfig{}, Profile: profile(),
		// The official client needs them where the way out is a proxy.
		Environment: []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "CODEX_CA_CERTIFICATE", "SSL_CERT_FILE"},
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

// Windows declares what the last reading showed. Plans differ, and some have no five-hour window at all: before a reading
// only the week is declared, which nearly all have. A pay-as-you-go key has no quota clocks.
func (a *Adapter) Windows(account sdk.Account) (windows []sdk.WindowDeclaration, unmetered bool) {
	if s, err := settingsOf(account); err == nil && s.account.APIKey {
		return nil, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.readings[account.Name]) == 0 {
		return []sdk.WindowDeclaration{sdk.WindowOf(week).Declaration()}, false
	}
	for _, w := range a.readings[account.Name] {
		windows = append(windows, w.Declaration())
	}
	return windows, false
}

// Drain waits for official clients that are running: one may be renewing a login.
func (a *Adapter) Drain(ctx context.Context) error { return a.clients.Wait(ctx) }
