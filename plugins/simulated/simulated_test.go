package simulated

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// world is a configured adapter and its clock.
type world struct {
	*testing.T
	adapter *adapter
	clock   *testClock
}

type testClock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func (c *testClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

type block map[string]any

func newWorld(t *testing.T, accounts map[string]block) *world {
	t.Helper()
	clock := &testClock{now: noon}
	w := &world{T: t, adapter: newAdapter(clock.Now), clock: clock}
	w.configure(accounts)
	t.Cleanup(func() {
		if err := w.adapter.Drain(context.Background()); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
	return w
}

func (w *world) configure(accounts map[string]block) {
	w.Helper()
	var list []sdk.Account
	for name, attributes := range accounts {
		list = append(list, w.account(name, attributes))
	}
	config, err := sdk.NewConfig(block{"latency": "0s", "cost": 3}, list...)
	if err != nil {
		w.Fatal(err)
	}
	if err := w.adapter.Configure(w.Context(), config); err != nil {
		w.Fatal(err)
	}
}

func (w *world) account(name string, attributes block) sdk.Account {
	w.Helper()
	account, err := sdk.NewAccount(name, attributes, sdk.Credential{})
	if err != nil {
		w.Fatal(err)
	}
	return account
}

// ask sends a request on the account's lease.
func (w *world) ask(account, method, path, body string) (*http.Response, string) {
	w.Helper()
	lease, err := w.adapter.Lease(w.Context(), w.account(account, nil), sdk.LeaseRequest{})
	if err != nil {
		w.Fatal(err)
	}
	request, err := http.NewRequestWithContext(w.Context(), method, lease.BaseURL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for name, value := range lease.Set {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response, string(text)
}

const streamed = `{"model":"simulated-large","stream":true}`

func TestTurnStreamsFromPreambleToEnd(t *testing.T) {
	w := newWorld(t, map[string]block{"a": nil})
	response, text := w.ask("a", "POST", "/v1/turns", streamed)
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("status %d, %s", response.StatusCode, response.Header.Get("Content-Type"))
	}
	if !strings.HasPrefix(text, `data: {"model":"simulated-large","type":"start"}`) || !strings.HasSuffix(text, "data: {\"type\":\"done\"}\n\n") {
		t.Errorf("stream is\n%s", text)
	}
}

func TestTurnAnswersInOnePieceWhenAsked(t *testing.T) {
	w := newWorld(t, map[string]block{"a": nil})
	_, text := w.ask("a", "POST", "/v1/turns", `{"model":"m","stream":false}`)
	if !strings.Contains(text, `"type":"answer"`) {
		t.Errorf("answer is %s", text)
	}
}

func TestAnswersTellTheWindows(t *testing.T) {
	w := newWorld(t, map[string]block{"a": {"five_hour_used": 40, "five_hour_left": "2m"}})
	response, _ := w.ask("a", "POST", "/v1/turns", streamed)
	windows, err := w.adapter.Observe(t.Context(), w.account("a", nil), sdk.Observation{Header: response.Header, ObservedAt: noon})
	if err != nil || len(windows) != 2 {
		t.Fatalf("%d windows, error %v", len(windows), err)
	}
	five := windows[0]
	if five.ID != windowFiveHour || *five.UsedPercent <= 40 || !five.ResetsAt.Equal(noon.Add(2*time.Minute)) || five.Length != 5*time.Minute {
		t.Errorf("five hours: %+v, %v used", five, *five.UsedPercent)
	}
	if five.Source != sdk.SourceResponseHeader || five.State != sdk.StateObserved {
		t.Errorf("five hours: source %v, state %v", five.Source, five.State)
	}
	read, err := w.adapter.ReadQuota(t.Context(), w.account("a", nil))
	if err != nil || len(read.Windows) != 2 || *read.Windows[0].UsedPercent < *five.UsedPercent-0.01 {
		t.Errorf("the quota service tells %+v, error %v", read, err)
	}
}

func TestHostileQuotaHeadersAreLeftOut(t *testing.T) {
	for _, used := range []string{"", "NaN", "Inf", "-11", "111", "0x10", "1e400"} {
		header := http.Header{}
		header.Set(quotaHeaders+"5h-Used", used)
		header.Set(quotaHeaders+"5h-Length", "300")
		if windows := readQuota(header, noon); len(windows) != 0 {
			t.Errorf("used %q gave %+v", used, windows)
		}
	}
	header := http.Header{}
	header.Set(quotaHeaders+"5h-Used", "10")
	header.Set(quotaHeaders+"5h-Length", "300")
	for _, reset := range []string{"tomorrow", "1796040000", "9999-12-31T23:59:59Z", "2001-01-01T00:00:00Z"} {
		header.Set(quotaHeaders+"5h-Reset", reset)
		windows := readQuota(header, noon)
		if len(windows) != 1 || !windows[0].ResetsAt.IsZero() || windows[0].State != sdk.StateObserved {
			t.Errorf("reset %q gave %+v, want one that is observed and does not say when it resets", reset, windows)
		}
	}
}

func TestBothRejectionsAreClassifiedAsTheWindowsEnd(t *testing.T) {
	w := newWorld(t, map[string]block{"a": {"five_hour_used": 100, "five_hour_left": "90s"}})
	classify := func(resp sdk.Response) {
		t.Helper()
		verdict, err := w.adapter.Classify(t.Context(), w.account("a", nil), resp)
		if err != nil {
			t.Fatal(err)
		}
		if verdict.Outcome != sdk.OutcomeQuotaExhausted || verdict.Scope != sdk.ScopeAccount || verdict.WindowID != windowFiveHour || !verdict.ClearsAt.Equal(noon.Add(90*time.Second)) {
			t.Errorf("verdict is %+v", verdict)
		}
	}
	response, text := w.ask("a", "POST", "/v1/turns", streamed)
	start, event, ok := strings.Cut(text, "\n\n")
	if response.StatusCode != 200 || !ok || !strings.Contains(start, `"start"`) {
		t.Fatalf("first rejection is %d\n%s", response.StatusCode, text)
	}
	data := strings.TrimSpace(strings.TrimPrefix(event, "data: "))
	classify(sdk.Response{Status: 200, Header: response.Header, Event: &sdk.Event{Type: eventError, Data: []byte(data)}})

	response, text = w.ask("a", "POST", "/v1/turns", streamed)
	if response.StatusCode != 429 {
		t.Fatalf("second rejection is %d\n%s", response.StatusCode, text)
	}
	classify(sdk.Response{Status: 429, Header: response.Header, Body: []byte(text)})

	w.clock.advance(90 * time.Second)
	if response, text = w.ask("a", "POST", "/v1/turns", streamed); !strings.Contains(text, `"done"`) {
		t.Errorf("after the reset: %d\n%s", response.StatusCode, text)
	}
}

func TestClassify(t *testing.T) {
	tests := []struct {
		rule    string
		resp    sdk.Response
		outcome sdk.Outcome
		scope   sdk.Scope
	}{
		{"401 is the account's login", sdk.Response{Status: 401}, sdk.OutcomeAuthFailed, sdk.ScopeAccount},
		{"403 is the account's login", sdk.Response{Status: 403}, sdk.OutcomeAuthFailed, sdk.ScopeAccount},
		{"429 without the code is a throttle", sdk.Response{Status: 429, Body: []byte("slow down")}, sdk.OutcomeThrottled, sdk.ScopeAccount},
		{"5xx is the provider's", sdk.Response{Status: 502, Body: []byte("<html>")}, sdk.OutcomeOverloaded, sdk.ScopeProvider},
		{"400 is the client's", sdk.Response{Status: 400}, sdk.OutcomeClientError, sdk.ScopeRequest},
		{"an event without a known code is unknown", sdk.Response{Status: 200, Event: &sdk.Event{Type: eventError, Data: []byte(`{"type":"error"}`)}}, sdk.OutcomeUnknownError, sdk.ScopeRequest},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			verdict, err := newAdapter(time.Now).Classify(t.Context(), sdk.Account{}, test.resp)
			if err != nil || verdict.Outcome != test.outcome || verdict.Scope != test.scope {
				t.Errorf("verdict is %+v, error %v", verdict, err)
			}
		})
	}
}

func TestOtherRoutesSpendNothing(t *testing.T) {
	w := newWorld(t, map[string]block{"a": nil})
	w.ask("a", "POST", "/v1/count", "12345678")
	w.ask("a", "GET", "/v1/models", "")
	read, err := w.adapter.ReadQuota(t.Context(), w.account("a", nil))
	if err != nil || read.Windows[0].State != sdk.StateAwaitingFirstUse {
		t.Errorf("window is %v, error %v; want awaiting first use", read.Windows[0].State, err)
	}
}

func TestReconfigurationKeepsWhatWasUsed(t *testing.T) {
	w := newWorld(t, map[string]block{"a": nil})
	w.ask("a", "POST", "/v1/turns", streamed)
	w.configure(map[string]block{"a": nil, "b": nil})
	read, err := w.adapter.ReadQuota(t.Context(), w.account("a", nil))
	if err != nil || read.Windows[0].State != sdk.StateObserved {
		t.Errorf("a's window is %v, error %v; want observed", read.Windows[0].State, err)
	}
	if response, _ := w.ask("b", "POST", "/v1/turns", streamed); response.StatusCode != 200 {
		t.Errorf("the new account gets %d", response.StatusCode)
	}
}

func TestTokenOfARemovedAccountIsRefused(t *testing.T) {
	w := newWorld(t, map[string]block{"a": nil, "b": nil})
	lease, err := w.adapter.Lease(t.Context(), w.account("b", nil), sdk.LeaseRequest{})
	if err != nil {
		t.Fatal(err)
	}
	w.configure(map[string]block{"a": nil})
	request, err := http.NewRequestWithContext(t.Context(), "POST", lease.BaseURL+"/v1/turns", strings.NewReader(streamed))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", lease.Set["Authorization"])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 401 {
		t.Errorf("status %d, want 401", response.StatusCode)
	}
}

func TestValidateNamesTheAttribute(t *testing.T) {
	w := newWorld(t, nil)
	config, err := sdk.NewConfig(block{"speed": 0.5}, w.account("a", block{"weekly_used": 101}))
	if err != nil {
		t.Fatal(err)
	}
	found := w.adapter.Validate(t.Context(), config)
	if len(found) != 2 || found[0].Attribute != "speed" || found[1].Attribute != "weekly_used" || found[1].Account != "a" {
		t.Errorf("found %+v", found)
	}
}
