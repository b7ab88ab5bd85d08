package sdk

import "testing"

func TestParseUpstreamLetsCredentialsGoOnlyWhereTheyAreSafe(t *testing.T) {
	for text, want := range map[string]string{
		"https://api.example.com":          "https://api.example.com",
		"https://api.example.com/base/":    "https://api.example.com/base",
		"http://127.0.0.1:9000":            "http://127.0.0.1:9000",
		"http://[::1]:9000/v1":             "http://[::1]:9000/v1",
		"http://localhost":                 "http://localhost",
		"http://api.example.com":           "",
		"http://127.0.0.1.example.com":     "",
		"https://user:word@example.com":    "",
		"https://api.example.com?a=b":      "",
		"https://api.example.com#fragment": "",
		"ftp://127.0.0.1":                  "",
		"api.example.com":                  "",
		"https://":                         "",
		"":                                 "",
	} {
		if got, err := ParseUpstream(text); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseUpstream(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}
