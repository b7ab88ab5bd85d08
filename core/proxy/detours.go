package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/noria-dev/noria/core/quota"
)

// maxDetours that are remembered; beyond, any is forgotten, which costs its session one account-bound header at most.
const maxDetours = 1024

// detours remembers which account gave a session's last answer when that was a detour: its binding does not say.
type detours struct {
	mu    sync.Mutex // guards last
	last  map[string]quota.AccountID
	count atomic.Int64
}

// lastAnswer is the account that gave the session's last answer, as far as is known.
func (p *Proxy) lastAnswer(session string) (quota.AccountID, bool) {
	if session == "" {
		return quota.AccountID{}, false
	}
	if p.detours.count.Load() > 0 {
		p.detours.mu.Lock()
		account, ok := p.detours.last[session]
		p.detours.mu.Unlock()
		if ok {
			return account, true
		}
	}
	return p.state.SessionAccount(session)
}

// answered notes an accepted answer. Only detours, and what follows them, cost more than a look at a counter.
func (p *Proxy) answered(session string, account quota.AccountID, detour bool) {
	d := &p.detours
	if session == "" || !detour && d.count.Load() == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		d.last = map[string]quota.AccountID{}
	}
	delete(d.last, session)
	if detour {
		for other := range d.last {
			if len(d.last) < maxDetours {
				break
			}
			delete(d.last, other)
		}
		d.last[session] = account
	}
	d.count.Store(int64(len(d.last)))
}
