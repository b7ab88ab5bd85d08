package wire

import "testing"

func TestUpstreamsAreHTTPSOrOnLoopback(t *testing.T) {
	for _, good := range []string{"https://upstream.example", "https://upstream.example/base/", "http://127.0.0.1:1/x", "http://[::1]", "http://localhost:9"} {
		if _, err := ParseUpstream(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "ftp://127.0.0.1", "http://upstream.example", "http://127.0.0.1.example", "https://u:p@h.example", "https://h.example?x=1",
		"https:///x", "http://10.0.0.1", "://",
	} {
		if _, err := ParseUpstream(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
