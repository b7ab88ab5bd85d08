package adaptertest

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

// Base is when an answer was observed that does not say so itself, in seconds since 1970.
const Base = 1796000000

// Event is one event of a recorded stream.
type Event struct {
	Type string `json:"type"`
	Data string `json:"data"`
}

// Exchange is one recorded upstream answer. ObservedAt is in seconds since 1970.
type Exchange struct {
	ID         string            `json:"id"`
	Expect     string            `json:"expect"`
	ObservedAt int64             `json:"observed_at"`
	Status     int               `json:"status"`
	Headers    map[string]string `json:"headers"`
	Body       string            `json:"body"`
	Events     []Event           `json:"events"`
}

// ReadExchanges reads a JSON list of exchanges, by their ids.
func ReadExchanges(t *testing.T, path string) map[string]Exchange {
	t.Helper()
	var list []Exchange
	ReadJSON(t, path, &list)
	exchanges := map[string]Exchange{}
	for _, e := range list {
		exchanges[e.ID] = e
	}
	return exchanges
}

// ReadAnswers reads the raw HTTP answers that match a pattern, by their ids.
func ReadAnswers(t *testing.T, pattern string) map[string]Exchange {
	t.Helper()
	answers := map[string]Exchange{}
	for _, path := range Glob(t, pattern) {
		e := ReadAnswer(t, path)
		answers[e.ID] = e
	}
	return answers
}

// ReadAnswer reads a raw HTTP answer with the events of its stream. Its Date header is when it was observed.
func ReadAnswer(t *testing.T, path string) Exchange {
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
	e := Exchange{ID: strings.TrimSuffix(filepath.Base(path), ".http"), ObservedAt: Base, Status: resp.StatusCode,
		Headers: map[string]string{}, Body: string(body)}
	for name := range resp.Header {
		e.Headers[name] = resp.Header.Get(name)
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		e.ObservedAt = at.Unix()
	}
	for frame := range strings.SplitSeq(e.Body, "\n\n") {
		name, data, ok := strings.Cut(frame, "\ndata: ")
		if ok && strings.HasPrefix(name, "event: ") {
			e.Events = append(e.Events, Event{strings.TrimPrefix(name, "event: "), data})
		}
	}
	return e
}

// Header is the header of the answer.
func (e Exchange) Header() http.Header {
	header := http.Header{}
	for name, value := range e.Headers {
		header.Set(name, value)
	}
	return header
}

// Response is the evidence that the host would hand over: the first event of an inspected type, else the answer.
func (e Exchange) Response(model string, inspected []string) sdk.Response {
	resp := sdk.Response{Model: model, Status: e.Status, Header: e.Header(), Body: []byte(e.Body), ObservedAt: Unix(e.ObservedAt)}
	at := slices.IndexFunc(e.Events, func(event Event) bool { return slices.Contains(inspected, event.Type) })
	if at >= 0 {
		resp.Event, resp.Body = &sdk.Event{Type: e.Events[at].Type, Data: []byte(e.Events[at].Data)}, nil
	}
	return resp
}

// Observation is the telemetry that the host would hand over: the header and the events of these types.
func (e Exchange) Observation(telemetry []string) sdk.Observation {
	obs := sdk.Observation{Status: e.Status, Header: e.Header(), ObservedAt: Unix(e.ObservedAt)}
	for _, event := range e.Events {
		if slices.Contains(telemetry, event.Type) {
			obs.Events = append(obs.Events, sdk.Event{Type: event.Type, Data: []byte(event.Data)})
		}
	}
	return obs
}

// ReadJSON decodes a file.
func ReadJSON(t *testing.T, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
}

// Glob gives the files that match; a pattern that matches none fails the test.
func Glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixtures match %s: %v", pattern, err)
	}
	return paths
}

// Unix is a time in UTC by its seconds since 1970.
func Unix(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
