package plugin

import (
	"context"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// A profile is read when an adapter was configured. Which windows an account has, an adapter may know only once it has
// read that account's quota: until then it declares what is usual, and a usual window that the account lacks stays
// unknown for ever. So when a reading shows other windows than were declared, the profile is asked for again and its word
// on that account is taken. It holds as long as the configuration does, for the process after this one too.
type redeclared struct {
	mu sync.Mutex // guards below, and orders what OnProfile is told
	// spec and digest of the executable that accounts belongs to.
	spec     Spec
	digest   string
	accounts map[string]*providerv1.AccountProfile
	// told is the newest generation that OnProfile was told of.
	told uint64
}

// takeProfile tells of the profile of an instance that is about to be ready, with what is known better of its accounts.
func (c *Client) takeProfile(i *instance) error {
	r := &c.redeclared
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.digest != i.digest || !sameSpec(r.spec, i.spec) {
		r.spec, r.digest, r.accounts = i.spec, i.digest, nil
	}
	i.profile = withAccounts(i.profile, r.accounts)
	if c.hooks.OnProfile != nil {
		if err := c.hooks.OnProfile(c.provider, i.profile); err != nil {
			return err
		}
	}
	r.told = i.generation
	return nil
}

// compareWindows has the profile asked for again when a whole reading of an account shows other windows than are
// declared; once for the same windows.
func (c *Client) compareWindows(a *account, readings []quota.Reading) {
	i := c.current.Load()
	profile, ok := c.Profile()
	if i == nil || !ok || len(readings) == 0 {
		return
	}
	var read []string
	for _, r := range readings {
		read = append(read, r.ID)
	}
	shown := shownWindows{by: i.generation, ids: joined(read)}
	if shown.ids == joined(declaredIDs(profile, a.id.Name)) || !a.shown.replace(shown) {
		return
	}
	c.redeclares.put(a.id.Name, a, false, func(_, newest *account) *account { return newest })
}

// shownWindows are the windows that a reading by an instance showed.
type shownWindows struct {
	by  uint64
	ids string
}

// lastShown remembers what was asked about.
type lastShown struct {
	mu    sync.Mutex // guards shown
	shown shownWindows
}

// replace reports whether it is news.
func (l *lastShown) replace(shown shownWindows) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	news := l.shown != shown
	l.shown = shown
	return news
}

func joined(ids []string) string {
	slices.Sort(ids)
	return strings.Join(ids, "\x00")
}

func declaredIDs(profile *providerv1.Profile, account string) []string {
	var ids []string
	for _, w := range accountProfile(profile, account).GetWindows() {
		ids = append(ids, w.GetWindowId())
	}
	return ids
}

func accountProfile(profile *providerv1.Profile, account string) *providerv1.AccountProfile {
	for _, p := range profile.GetAccounts() {
		if p.GetAccount() == account {
			return p
		}
	}
	return nil
}

// redeclare asks for the profile again. When that fails, the next reading asks.
func (c *Client) redeclare(ctx context.Context, a *account) {
	var answer *providerv1.ProfileResponse
	var asked *instance
	err := c.invoke(ctx, c.timing.call, "", "Profile", func(ctx context.Context, i *instance) (err error) {
		asked = i
		answer, err = providerv1.NewProviderClient(i.conn).Profile(ctx, &providerv1.ProfileRequest{})
		return err
	})
	if err != nil {
		a.shown.replace(shownWindows{})
		return
	}
	if declared, f := c.check.profile(answer.GetProfile(), asked.spec.Config); f == nil {
		c.takeAccount(asked, accountProfile(declared, a.id.Name))
	}
}

// takeAccount takes what an instance declares anew of an account, unless a later one has told its profile.
func (c *Client) takeAccount(asked *instance, declared *providerv1.AccountProfile) {
	r := &c.redeclared
	r.mu.Lock()
	defer r.mu.Unlock()
	profile, ok := c.Profile()
	if !ok || declared == nil || r.told != asked.generation {
		return
	}
	accounts := map[string]*providerv1.AccountProfile{declared.GetAccount(): declared}
	profile = withAccounts(profile, accounts)
	if c.hooks.OnProfile != nil && c.hooks.OnProfile(c.provider, profile) != nil {
		return
	}
	for name, p := range r.accounts {
		if name != declared.GetAccount() {
			accounts[name] = p
		}
	}
	r.accounts = accounts
	c.profile.Store(profile)
}

// withAccounts returns the profile with other words on some of its accounts.
func withAccounts(profile *providerv1.Profile, accounts map[string]*providerv1.AccountProfile) *providerv1.Profile {
	if len(accounts) == 0 {
		return profile
	}
	changed := proto.CloneOf(profile)
	for n, p := range changed.Accounts {
		if better := accounts[p.GetAccount()]; better != nil {
			changed.Accounts[n] = better
		}
	}
	return changed
}
