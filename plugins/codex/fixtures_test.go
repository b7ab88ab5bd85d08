package codex

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// event is one event of a stream of testdata.
type event struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

// exchange is one upstream answer of testdata.
type exchange struct {
	ID         string            `json:"id"`
	Expect     string            `json:"expect"`
	ObservedAt int64             `json:"observed_at"`
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
	Events     []event           `json:"events"`
}

func readUpstream(t *testing.T) map[string]exchange {
	t.Helper()
	var list []exchange
	readJSON(t, "testdata/upstream.json", &list)
	exchanges := map[string]exchange{}
	for _, e := range list {
		exchanges[e.ID] = e
	}
	return exchanges
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}

func (e exchange) header() http.Header {
	header := http.Header{}
	for name, value := range e.Headers {
		header.Set(name, value)
	}
	return header
}

// response is the evidence that the host would hand over: the first inspected event of a stream, else the answer.
func (e exchange) response() sdk.Response {
	resp := sdk.Response{Model: "gpt-6.2-sol", Status: e.Status, Header: e.header(), Body: []byte(e.Body), ObservedAt: unix(e.ObservedAt)}
	for _, event := range e.Events {
		if slices.Contains(stream().Inspected, event.Type) {
			resp.Event, resp.Body = &sdk.Event{Type: event.Type, Data: []byte(event.Data)}, nil
			return resp
		}
	}
	return resp
}

// observation is the telemetry that the host would hand over.
func (e exchange) observation() sdk.Observation {
	obs := sdk.Observation{Status: e.Status, Header: e.header(), ObservedAt: unix(e.ObservedAt)}
	for _, event := range e.Events {
		if slices.Contains(stream().Telemetry, event.Type) {
			obs.Events = append(obs.Events, sdk.Event{Type: event.Type, Data: []byte(event.Data)})
		}
	}
	return obs
}

// readAnswer reads a raw answer of testdata, with the events of its stream.
func readAnswer(t *testing.T, path string) exchange {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	defer resp.Body.Close()
	// Some of them end early on purpose.
	body, _ := io.ReadAll(resp.Body)
	e := exchange{ID: strings.TrimSuffix(filepath.Base(path), ".http"), ObservedAt: 1796000000, Status: resp.StatusCode,
		Headers: map[string]string{}, Body: string(body)}
	for name := range resp.Header {
		e.Headers[name] = resp.Header.Get(name)
	}
	for frame := range strings.SplitSeq(string(body), "\n\n") {
		name, data, ok := strings.Cut(frame, "\ndata: ")
		if ok && strings.HasPrefix(name, "event: ") {
			e.Events = append(e.Events, event{strings.TrimPrefix(name, "event: "), data})
		}
	}
	return e
}

func names(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures match %s: %v", pattern, err)
	}
	return paths
}

// accountOf makes an account as the host would.
func accountOf(t *testing.T, provider, account map[string]any, credential sdk.Credential) sdk.Account {
	t.Helper()
	made, err := sdk.NewAccount("main", account, credential)
	if err != nil {
		t.Fatal(err)
	}
	config, err := sdk.NewConfig(provider, made)
	if err != nil {
		t.Fatal(err)
	}
	return config.Accounts[0]
}

func unix(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
