package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *Server {
	t.Helper()
	s := Start()
	t.Cleanup(func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

func post(t *testing.T, url, token, body string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Session-Id", "s-1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp, string(got) + "<cut>"
	}
	return resp, string(got)
}

func TestTurnsAreAnsweredByTheirScript(t *testing.T) {
	resets := time.Unix(1796007200, 0)
	tests := []struct {
		name      string
		path      string
		behaviour Behaviour
		status    int
		header    string
		contains  string
		ends      string
	}{
		{"claude streams", "/v1/messages", OK(), 200, "", "event: message_start", "data: {\"type\":\"message_stop\"}\n\n"},
		{"claude quota names the window", "/v1/messages", Quota("seven_day", resets), 429, "anthropic-ratelimit-unified-7d-status: rejected", "rate_limit_error", ""},
		{"claude fails early in the stream", "/v1/messages", EarlyError(resets), 200, "", "event: error", ""},
		{"claude is overloaded", "/v1/messages", Overloaded(), 529, "", "overloaded_error", ""},
		{"codex streams", "/backend-api/codex/responses", OK(), 200, "", "response.created", "}}}\n\n"},
		{"codex quota", "/backend-api/codex/responses", Quota("five_hour", resets), 429, "x-codex-primary-used-percent: 100", `"resets_at":1796007200`, ""},
		{"codex fails late in the stream", "/backend-api/codex/responses", LateError(resets), 200, "", "usage_limit_reached", ""},
		{"codex tells windows in the stream", "/backend-api/codex/responses", OK().WithTelemetry(), 200, "", "event: codex.rate_limits", ""},
		{"a throttle has its hint", "/backend-api/codex/responses", Throttled(2 * time.Second), 429, "retry-after: 2", "rate_limit_exceeded", ""},
		{"a cut shows", "/v1/messages", OK().Cut(2), 200, "", "<cut>", "<cut>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t)
			s.Script("a", tt.behaviour)
			resp, body := post(t, s.URL+tt.path, "a", `{"model":"m","stream":true}`)
			if resp.StatusCode != tt.status {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.status)
			}
			if name, value, ok := strings.Cut(tt.header, ": "); ok && resp.Header.Get(name) != value {
				t.Errorf("%s: %q, want %q", name, resp.Header.Get(name), value)
			}
			if !strings.Contains(body, tt.contains) || !strings.HasSuffix(body, tt.ends) {
				t.Errorf("body %q, want %q in it and %q at its end", body, tt.contains, tt.ends)
			}
		})
	}
}

func TestAScriptAdvancesByTurnsAndStaysAtItsLast(t *testing.T) {
	s := start(t)
	s.Script("a", Unauthorized(), OK())
	var got []int
	for range 3 {
		if resp, _ := post(t, s.URL+"/v1/messages/count_tokens", "a", `{}`); len(got) == 0 && resp.StatusCode != 401 {
			t.Errorf("count_tokens: status %d, want that of the script", resp.StatusCode)
		}
		resp, _ := post(t, s.URL+"/v1/messages", "a", `{}`)
		got = append(got, resp.StatusCode)
	}
	if got[0] != 401 || got[1] != 200 || got[2] != 200 {
		t.Errorf("statuses %v, want 401 200 200", got)
	}
}

func TestAnUnknownCredentialIsRefused(t *testing.T) {
	s := start(t)
	if resp, _ := post(t, s.URL+"/v1/messages", "nobody", `{}`); resp.StatusCode != 401 {
		t.Errorf("status %d, want 401", resp.StatusCode)
	}
}

func TestRequestsAreRecordedAsTheyCame(t *testing.T) {
	s := start(t)
	s.Script("a", OK())
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	wire := encoder.EncodeAll([]byte(`{"model":"gpt","stream":true}`), nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/backend-api/codex/responses", bytes.NewReader(wire))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer a")
	req.Header.Set("Session-Id", "s-1")
	req.Header.Set("Content-Encoding", "zstd")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(wire)
	got := s.Turns()
	if len(got) != 1 || got[0].BodySHA256 != hex.EncodeToString(sum[:]) || got[0].Session != "s-1" || got[0].Model != "gpt" || got[0].Token != "a" || !got[0].Stream {
		t.Errorf("recorded %+v", got)
	}
}

func TestAHaltedStreamGoesOnWhenToldTo(t *testing.T) {
	s := start(t)
	goOn := make(chan struct{})
	s.Script("a", OK().HaltUntil(goOn))
	go func() {
		defer close(goOn)
		s.Wait(t.Context().Done(), func(all []Request) bool { return len(all) == 1 && all[0].Status == 200 })
	}()
	if _, body := post(t, s.URL+"/v1/messages", "a", `{"stream":true}`); !strings.Contains(body, "message_stop") {
		t.Errorf("body %q, want a whole stream", body)
	}
}

func TestARequestThatIsGivenUpIsRecordedSo(t *testing.T) {
	s := start(t)
	s.Script("a", OK().After(make(chan struct{})))
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/messages", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer a")
	go func() {
		s.Wait(t.Context().Done(), func(all []Request) bool { return len(all) == 1 && all[0].BodyBytes == 2 })
		cancel()
	}()
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("no error from a request that was given up")
	}
	if !s.Wait(t.Context().Done(), func(all []Request) bool { return all[0].Left }) {
		t.Error("not recorded as given up")
	}
}
