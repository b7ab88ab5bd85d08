package plugintest

import (
	"net/http"
	"testing"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func FuzzExtract(f *testing.F) {
	f.Add("/metadata/user_id", "/session_id", "^(.+)$", []byte(`{"metadata":{"user_id":"{\"session_id\":\"s\"}"}}`))
	f.Add("/a/0/~1~0", "", "", []byte(`{"a":[{"/~":1}]}`))
	f.Add("", "", "(", []byte(`[`))
	f.Fuzz(func(t *testing.T, pointer, inner, pattern string, body []byte) {
		rule := &providerv1.Extractor{Source: &providerv1.Extractor_BodyPointer{BodyPointer: pointer}, InnerPointer: inner, Pattern: pattern}
		r := request{header: http.Header{}, body: body}
		once, again := extract([]*providerv1.Extractor{rule}, r), extract([]*providerv1.Extractor{rule}, r)
		if once != again {
			t.Errorf("the same request gives %q and %q", once, again)
		}
	})
}
