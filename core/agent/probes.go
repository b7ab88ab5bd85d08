package agent

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/noria-dev/noria/core/plugin"
	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// Words for the login of an account.
const (
	loginSignedIn    = "signed_in"
	loginSignedOut   = "signed_out"
	loginExpired     = "expired"
	loginNotEligible = "not_eligible"
	loginUnavailable = "unavailable"
	loginUnknown     = "unknown"
)

func loginWord(login providerv1.AuthState) string {
	switch login {
	case providerv1.AuthState_AUTH_STATE_SIGNED_IN:
		return loginSignedIn
	case providerv1.AuthState_AUTH_STATE_SIGNED_OUT:
		return loginSignedOut
	case providerv1.AuthState_AUTH_STATE_EXPIRED:
		return loginExpired
	}
	return loginUnknown
}

// probes hold what the last reads of each account's official source said, for people. They are safe for concurrent use.
type probes struct {
	mu   sync.Mutex // guards last
	last map[quota.AccountID]probe
	// refused counts the accounts whose last lease was refused.
	refused atomic.Int64
}

// probe is what is known from reading an account's official source.
type probe struct {
	login string
	// failure of the last read; empty when it was answered.
	failure string
	// refusal of the last lease that was asked for; nil when there was one.
	refusal *refusal
}

func newProbes() *probes { return &probes{last: map[quota.AccountID]probe{}} }

func (p *probes) of(account quota.AccountID) probe {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.last[account]
	if known.login == "" {
		known.login = loginUnknown
	}
	return known
}

func (p *probes) setLogin(account quota.AccountID, login string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.last[account]
	known.login = login
	p.last[account] = known
}

// failureInWords says why a read failed, as people are told.
func failureInWords(err error) string {
	var reported *plugin.ReportedError
	switch {
	case errors.As(err, &reported):
		return reported.Reason
	case errors.Is(err, plugin.ErrAway):
		return "its adapter did not answer in time"
	case errors.Is(err, plugin.ErrFailed):
		return "its adapter could not read it; with level = \"debug\" in the log block the daemon's log says why"
	}
	return err.Error()
}

func (p *probes) setFailure(account quota.AccountID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.last[account]
	known.failure = ""
	if err != nil {
		known.failure = failureInWords(err)
	}
	p.last[account] = known
}
