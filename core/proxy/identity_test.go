package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// wireRequest is a recorded request of an official client.
type wireRequest struct {
	Headers [][2]string     `json:"headers"`
	Body    json.RawMessage `json:"body"`
}

func (w wireRequest) header() http.Header {
	h := http.Header{}
	for _, pair := range w.Headers {
		h.Add(pair[0], pair[1])
	}
	return h
}

// wireRequests reads a fixture: one request, or several in an array.
func wireRequests(t *testing.T, name string) []wireRequest {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/wire", name))
	if err != nil {
		t.Fatal(err)
	}
	var all []wireRequest
	if raw[0] != '[' {
		raw = append(append([]byte{'['}, raw...), ']')
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func whole(body []byte) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) { yield(body) }
}

func TestOfficialClientsAreRecognized(t *testing.T) {
	const first, second = "00000000-0000-4000-8000-000000000001", "00000000-0000-7000-8000-000000000001"
	title := "00000000-0000-7000-8000-000000000012"
	tests := []struct {
		file     string
		provider string
		sessions []string
		model    string
		work     string
		// withoutHeaders: the body says the same.
		withoutHeaders bool
	}{
		{"claude-1.0.128-main-oauth.json", "claude", []string{first}, "*", "", true},
		{"claude-2.1.332-main-oauth.json", "claude", []string{first}, "claude-sonnet-5-5", "", true},
		{"claude-2.1.332-title.json", "claude", []string{first}, "claude-sonnet-5-5", "", true},
		{"claude-2.1.332-count-tokens.json", "claude", []string{first}, "claude-sonnet-5-5", "", false},
		{"claude-2.1.332-model-discovery.json", "claude", []string{""}, "", "", false},
		{"codex-custom_provider_no_auth_http.json", "codex", []string{second}, "gpt-6.2-sol", "user", true},
		{"codex-native_openai_base_url_http_zstd.json", "codex", []string{second}, "gpt-6.2-sol", "user", true},
		{"codex-tui_turn_and_title.json", "codex", []string{second, title}, "gpt-6.2-sol", "", true},
		{"codex-identity_subagent.json", "codex", []string{second, second, second, second}, "gpt-6.2-sol", "", true},
	}
	profiles := map[string]*Profile{"claude": compiled(t, "claude", claudeProfile()), "codex": compiled(t, "codex", codexProfile())}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			for i, w := range wireRequests(t, tt.file) {
				headers := []http.Header{w.header()}
				if tt.withoutHeaders {
					headers = append(headers, http.Header{})
				}
				for _, h := range headers {
					who := profiles[tt.provider].identify(h, whole(w.Body))
					want := tt.sessions[i]
					if want != "" {
						want = tt.provider + "/" + want
					}
					if who.session != want {
						t.Errorf("request %d with %d headers: session %q, want %q", i, len(h), who.session, want)
					}
					if tt.model != "*" && who.model != tt.model {
						t.Errorf("request %d: model %q, want %q", i, who.model, tt.model)
					}
					if tt.work != "" && len(h) > 0 && who.work != tt.work {
						t.Errorf("request %d: work %q, want %q", i, who.work, tt.work)
					}
				}
			}
		})
	}
}

func TestRulesAreAppliedInTheirOrder(t *testing.T) {
	body := func(pointer string) *providerv1.Extractor {
		return &providerv1.Extractor{Source: &providerv1.Extractor_BodyPointer{BodyPointer: pointer}}
	}
	header := func(name string) *providerv1.Extractor {
		return &providerv1.Extractor{Source: &providerv1.Extractor_Header{Header: name}}
	}
	patterned := func(e *providerv1.Extractor, inner, pattern string) *providerv1.Extractor {
		e.InnerPointer, e.Pattern = inner, pattern
		return e
	}
	tests := []struct {
		name   string
		rules  []*providerv1.Extractor
		header http.Header
		body   string
		want   string
	}{
		{"a field before a header", []*providerv1.Extractor{body("/a"), header("X-A")}, http.Header{"X-A": {"h"}}, `{"a":"b"}`, "b"},
		{"a header when the field is absent", []*providerv1.Extractor{body("/a"), header("X-A")}, http.Header{"X-A": {"h"}}, `{}`, "h"},
		{"the first field by rule, not by place", []*providerv1.Extractor{body("/a"), body("/b")}, nil, `{"b":"2","a":"1"}`, "1"},
		{"an empty value is no hit", []*providerv1.Extractor{header("X-A"), body("/a")}, http.Header{"X-A": {""}}, `{"a":"b"}`, "b"},
		{"JSON inside a header", []*providerv1.Extractor{patterned(header("X-A"), "/s/1", "")}, http.Header{"X-A": {`{"s":[0,"x"]}`}}, ``, "x"},
		{"JSON that is none is no hit", []*providerv1.Extractor{patterned(header("X-A"), "/s", ""), header("X-B")}, http.Header{"X-A": {"nope"}, "X-B": {"b"}}, ``, "b"},
		{"a pattern that does not match is no hit", []*providerv1.Extractor{patterned(header("X-A"), "", "^s-(.+)$"), header("X-B")}, http.Header{"X-A": {"t-1"}, "X-B": {"b"}}, ``, "b"},
		{"a pattern sees a bounded part", []*providerv1.Extractor{patterned(header("X-A"), "", "(b+)")}, http.Header{"X-A": {strings.Repeat("a", maxPatternInput) + "bbb"}}, ``, ""},
		{"no rule hits", []*providerv1.Extractor{header("X-A"), body("/a")}, nil, `[]`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			declared := claudeProfile()
			declared.Identity.Session = tt.rules
			who := compiled(t, "p", declared).identify(tt.header, whole([]byte(tt.body)))
			if got := strings.TrimPrefix(who.session, "p/"); got != tt.want {
				t.Errorf("session %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTheBodyIsReadOnlyAsFarAsNeeded(t *testing.T) {
	p := compiled(t, "claude", claudeProfile())
	read := 0
	body := func(yield func([]byte) bool) {
		for _, piece := range []string{`{"model":"m",`, `"messages":[`, `]}`} {
			if read++; !yield([]byte(piece)) {
				return
			}
		}
	}
	p.identify(http.Header{"X-Claude-Code-Session-Id": {"s"}}, body)
	if read != 1 {
		t.Errorf("read %d pieces, want 1", read)
	}
}

func TestCompressedBodiesAreLookedInto(t *testing.T) {
	plain := []byte(`{"messages":"` + strings.Repeat("x", 300<<10) + `","model":"m-1"}`)
	encode := map[string]func() []byte{
		"": func() []byte { return plain }, "identity": func() []byte { return plain },
		"gzip": func() []byte { return []byte(gzipped(t, string(plain))) },
		"br": func() []byte {
			var out bytes.Buffer
			w := brotli.NewWriter(&out)
			_, _ = w.Write(plain)
			_ = w.Close()
			return out.Bytes()
		},
		"zstd": func() []byte {
			w, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			return w.EncodeAll(plain, nil)
		},
	}
	r := newRig(t)
	for encoding, wire := range encode {
		// Twice, so that decoders are used again.
		for range 2 {
			body := wire()
			r.upstream.Forget()
			c := call{path: "/claude/v1/messages", body: string(body), header: http.Header{}}
			if encoding != "" {
				c.header.Set("Content-Encoding", encoding)
			}
			if got := r.do(c); got.status != 200 {
				t.Fatalf("%s: status %d", encoding, got.status)
			}
			if got := r.upstream.Requests()[0]; got.BodySHA256 != sha256Hex(body) {
				t.Errorf("%s: the body did not go up as it came", encoding)
			}
		}
	}
	for _, e := range r.events.wait(t.Context(), "request", 2*len(encode)) {
		if e.Model != "m-1" {
			t.Errorf("model %q, want m-1", e.Model)
		}
	}
}
