package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func devTestKey() (string, error) { return "secret", nil }

func TestDevTrafficSendsSessionsThroughTheListener(t *testing.T) {
	type seen struct{ path, key, session string }
	arrived := make(chan seen, 1)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Session string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Errorf("read body: %v", err)
		}
		select {
		case arrived <- seen{r.URL.Path, r.Header.Get("X-Noria-Key"), asked.Session}:
		default:
		}
	}))
	defer listener.Close()

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		devTraffic(ctx, listener.URL, devTestKey, hclog.NewNullLogger())
	}()
	if got, want := <-arrived, (seen{"/simulated/v1/turns", "secret", "dev-0001"}); got != want {
		t.Errorf("first request is %+v, want %+v", got, want)
	}
	cancel()
	<-ended
}

func TestDevClientWaitsAsLongAsItIsTold(t *testing.T) {
	tests := []struct {
		rule       string
		status     int
		retryAfter string
		again      time.Duration
		fails      bool
	}{
		{"a served turn asks for no wait", 200, "", 0, false},
		{"a forecast is kept", 429, "7", 7 * time.Second, false},
		{"a far forecast is cut", 429, "86400", devMaxWait, false},
		{"an error without a forecast is one", 503, "", 0, true},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if test.retryAfter != "" {
					w.Header().Set("Retry-After", test.retryAfter)
				}
				w.WriteHeader(test.status)
			}))
			defer listener.Close()
			client := &devClient{http: listener.Client(), url: listener.URL, key: devTestKey, log: hclog.NewNullLogger()}
			again, err := client.turn(t.Context(), "s")
			if again != test.again || (err != nil) != test.fails {
				t.Errorf("wait %v, error %v", again, err)
			}
		})
	}
}
