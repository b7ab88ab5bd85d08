package plugin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// learner is an adapter that declares the usual window until it has read the account's quota, like one for a provider whose
// plans differ.
type learner struct {
	mu       sync.Mutex // guards below
	shows    string     // the window that a reading shows
	read     bool
	err      error
	profiles int
	takes    time.Duration // of Profile
}

func (l *learner) answer(ctx context.Context, method string, _, reply any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch method {
	case providerv1.Quota_ReadQuota_FullMethodName:
		l.read = true
		windows := fakeWindows(25)
		windows[0].WindowId = l.shows
		reply.(*providerv1.ReadQuotaResponse).Windows = windows
	case providerv1.Provider_Profile_FullMethodName:
		l.profiles++
		if takes := l.takes; takes > 0 {
			l.mu.Unlock()
			time.Sleep(takes)
			l.mu.Lock()
		}
		if l.err != nil {
			return l.err
		}
		profile := fakeProfile()
		if l.read {
			profile.Accounts[0].Windows[0].WindowId = l.shows
		}
		reply.(*providerv1.ProfileResponse).Profile = profile
	}
	return nil
}

func (l *learner) set(change func(*learner)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

func (l *learner) asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.profiles
}

// told are the windows of the account in each profile that was told.
type told struct {
	mu      sync.Mutex // guards below
	windows []string
	refuse  string // windows that are refused
}

func (t *told) hooks() Hooks {
	return Hooks{OnProfile: func(_ string, profile *providerv1.Profile) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		windows := joined(declaredIDs(profile, "work"))
		t.windows = append(t.windows, windows)
		if windows == t.refuse {
			return errors.New("refused")
		}
		return nil
	}}
}

func (t *told) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.windows)
}

func learnTest(t *testing.T, shows string, test func(t *testing.T, d *desk, l *learner, told *told)) {
	synctest.Test(t, func(t *testing.T) {
		l, told := &learner{shows: shows}, &told{}
		d := newDesk(told.hooks())
		d.play(l.answer)
		test(t, d, l, told)
		d.client.close()
	})
}

// begin makes an instance as a start does: its profile is taken before it is adopted.
func (d *desk) begin(t *testing.T, config string, generation uint64) *instance {
	t.Helper()
	i := d.instance(config, wire.ServiceQuota)
	i.generation = generation
	must(t, d.client.takeProfile(i))
	d.client.adopt(i)
	synctest.Wait()
	return i
}

func (t *told) want(tt *testing.T, want ...string) {
	tt.Helper()
	if got := t.all(); !slices.Equal(got, want) {
		tt.Errorf("declared in turn %q, want %q", got, want)
	}
}

func TestWindowsThatAReadingShowsAreDeclaredByTheAdapterOnce(t *testing.T) {
	learnTest(t, "weekly", func(t *testing.T, d *desk, l *learner, told *told) {
		d.begin(t, "{}", 1)
		time.Sleep(time.Hour)
		told.want(t, "5h", "weekly")
		if l.asked() != 1 {
			t.Errorf("profile asked for %d times, want once", l.asked())
		}
		profile, _ := d.client.Profile()
		if got := joined(declaredIDs(profile, "work")); got != "weekly" || len(profile.GetRoutes()) != 1 {
			t.Errorf("profile declares %q with %d routes", got, len(profile.GetRoutes()))
		}
		l.set(func(l *learner) { l.shows = "5h" })
		time.Sleep(time.Hour)
		told.want(t, "5h", "weekly", "5h")
	})
}

func TestReadingOfWhatIsDeclaredAsksForNoProfile(t *testing.T) {
	learnTest(t, "5h", func(t *testing.T, d *desk, l *learner, told *told) {
		d.begin(t, "{}", 1)
		time.Sleep(time.Hour)
		told.want(t, "5h")
		if l.asked() != 0 {
			t.Errorf("profile asked for %d times", l.asked())
		}
	})
}

func TestDeclarationOutlivesTheProcessAndNotItsConfiguration(t *testing.T) {
	learnTest(t, "weekly", func(t *testing.T, d *desk, l *learner, told *told) {
		d.begin(t, "{}", 1)
		time.Sleep(time.Minute)
		d.client.adopt(nil)
		d.begin(t, "{}", 2)
		told.want(t, "5h", "weekly", "weekly")
		d.begin(t, `{"other":1}`, 3) // whose quota is read at once
		told.want(t, "5h", "weekly", "weekly", "5h", "weekly")
	})
}

func TestLateDeclarationDoesNotReplaceASuccessors(t *testing.T) {
	learnTest(t, "weekly", func(t *testing.T, d *desk, l *learner, told *told) {
		l.takes = 5 * time.Second
		d.begin(t, "{}", 1)
		time.Sleep(2 * time.Second) // the first process is asked now
		i := d.instance(`{"other":1}`, wire.ServiceQuota)
		i.generation = 2
		must(t, d.client.takeProfile(i))
		time.Sleep(5 * time.Second)
		told.want(t, "5h", "5h")
		d.client.adopt(i)
		must(t, d.client.RefreshQuota(t.Context(), "work"))
		time.Sleep(10 * time.Second)
		told.want(t, "5h", "5h", "weekly")
	})
}

func TestDeclarationThatFailsIsAskedForAgainAtTheNextReading(t *testing.T) {
	learnTest(t, "weekly", func(t *testing.T, d *desk, l *learner, told *told) {
		l.err = status.Error(codes.Internal, "")
		d.begin(t, "{}", 1)
		time.Sleep(time.Second)
		l.set(func(l *learner) { l.err = nil })
		must(t, d.client.RefreshQuota(t.Context(), "work"))
		time.Sleep(time.Second)
		told.want(t, "5h", "weekly")
	})
}

func TestDeclarationThatTheHostCannotUseLeavesTheOldOne(t *testing.T) {
	learnTest(t, "weekly", func(t *testing.T, d *desk, l *learner, told *told) {
		told.refuse = "weekly"
		d.begin(t, "{}", 1)
		time.Sleep(time.Second)
		told.want(t, "5h", "weekly")
		profile, _ := d.client.Profile()
		if got := joined(declaredIDs(profile, "work")); got != "5h" {
			t.Errorf("profile declares %q", got)
		}
	})
}
