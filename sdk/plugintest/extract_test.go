package plugintest

import (
	"net/http"
	"testing"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func TestExtractFollowsTheRulesOfTheProfile(t *testing.T) {
	header := func(name string) *providerv1.Extractor {
		return &providerv1.Extractor{Source: &providerv1.Extractor_Header{Header: name}}
	}
	body := func(pointer, inner, pattern string) *providerv1.Extractor {
		return &providerv1.Extractor{Source: &providerv1.Extractor_BodyPointer{BodyPointer: pointer}, InnerPointer: inner, Pattern: pattern}
	}
	r := request{header: http.Header{"X-Session": {"from-header"}},
		body: []byte(`{"n":7,"b":true,"o":{},"list":["x","y"],"a/b":"slash","user":"{\"id\":\"inner\"}","old":"user_1_session_abc"}`)}
	tests := []struct {
		name  string
		rules []*providerv1.Extractor
		want  string
	}{
		{"a header in any case", []*providerv1.Extractor{header("x-sESSION")}, "from-header"},
		{"the first hit wins", []*providerv1.Extractor{header("absent"), body("/n", "", ""), header("x-session")}, "7"},
		{"a boolean", []*providerv1.Extractor{body("/b", "", "")}, "true"},
		{"an object is no hit", []*providerv1.Extractor{body("/o", "", "")}, ""},
		{"an element of a list", []*providerv1.Extractor{body("/list/1", "", "")}, "y"},
		{"beyond a list", []*providerv1.Extractor{body("/list/2", "", "")}, ""},
		{"an escaped name", []*providerv1.Extractor{body("/a~1b", "", "")}, "slash"},
		{"JSON inside of JSON", []*providerv1.Extractor{body("/user", "/id", "")}, "inner"},
		{"a pattern picks its group", []*providerv1.Extractor{body("/old", "", "_session_([a-z]+)$")}, "abc"},
		{"no match is no hit", []*providerv1.Extractor{body("/old", "", "^x(.)$")}, ""},
		{"no rule", nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := extract(test.rules, r); got != test.want {
				t.Errorf("got %q, expected %q", got, test.want)
			}
		})
	}
}
