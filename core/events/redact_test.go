package events

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestRedactorFindsShapes(t *testing.T) {
	const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJlbWFpbCI6ImFAYi5jIn0.c2lnbmF0dXJl"
	tests := []struct{ rule, text, want string }{
		{"a bearer header", "authorization: Bearer abc.def-ghi", "authorization: [redacted]"},
		{"a bearer word alone", "sent Bearer abcdef123", "sent Bearer [redacted]"},
		{"a vendor key", "key sk-ant-oat01-AbCd_1234-xyz was refused", "key [redacted] was refused"},
		{"a web token", "token=" + jwt + "!", "token=[redacted]!"},
		{"a web token without signature", "t " + strings.TrimSuffix(jwt, "c2lnbmF0dXJl"), "t [redacted]"},
		{"a JSON field", `{"access_token":"abcdef","expires":1}`, `{"access_token":"[redacted]","expires":1}`},
		{"an escaped JSON field", `body="{\"refresh_token\":\"rt-1\"}"`, `body="{\"refresh_token\":\"[redacted]\"}"`},
		{"an api key header in a Go map", "map[X-Api-Key:[abc]]", "map[X-Api-Key:[redacted]]"},
		{"all values of a header in a Go map", "map[Accept:[*/*] Authorization:[Bearer abc] Cookie:[a=1; b=2 c=3] Host:[h]]", "map[Accept:[*/*] Authorization:[redacted] Cookie:[redacted] Host:[h]]"},
		{"a list in a JSON field", `{"password":["abc","def"],"n":1}`, `{"password":[redacted],"n":1}`},
		{"a list that was cut off", "password: [abc\nnext line", "password: [redacted]\nnext line"},
		{"what was taken out already stays so", "map[X-Api-Key:[redacted]] authorization: [redacted]", "map[X-Api-Key:[redacted]] authorization: [redacted]"},
		{"our key in a path", "POST /k/0123456789/claude/v1/messages", "POST /k/[redacted]/claude/v1/messages"},
		{"ordinary text stays", "account work: 5h at 12 %, resets in 40m (task sk)", "account work: 5h at 12 %, resets in 40m (task sk)"},
		{"ordinary words with dashes stay", "desk-based risk-averse asks-nothing", "desk-based risk-averse asks-nothing"},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			if got := NewRedactor().Text(test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestRedactorTakesOutWhatItIsToldUntilReleased(t *testing.T) {
	r := NewRedactor()
	first, second := r.Protect("opensesame"), r.Protect("opensesame")
	if got := r.Text("say opensesame!"); got != "say [redacted]!" {
		t.Fatalf("got %q", got)
	}
	first()
	first()
	if got := r.Text("say opensesame!"); got != "say [redacted]!" {
		t.Fatalf("released although another protects it: %q", got)
	}
	second()
	if got := r.Text("say opensesame!"); got != "say opensesame!" {
		t.Fatalf("still redacted after release: %q", got)
	}
}

func TestRedactorTakesTheLongestOfSecretsThatBeginAlike(t *testing.T) {
	const short, long = "opensesame", "opensesame-and-more"
	for range 100 { // maps have no order
		r := NewRedactor()
		for _, secret := range []string{short, long, short + "-an"} {
			defer r.Protect(secret)()
		}
		if got := r.Text("say " + long + " or " + short); got != "say [redacted] or [redacted]" {
			t.Fatalf("got %q", got)
		}
	}
}

// What may not stand in a log may not stand in an event either.
func TestEventsAndLogsKnowTheSameKeys(t *testing.T) {
	for _, prefix := range keyPrefixes() {
		for _, secret := range []string{prefix + "-abcdefgh", prefix + "_0123-4567", "x-" + prefix + "-abcdefgh"} {
			if got := NewRedactor().Text(secret); !strings.HasSuffix(got, Redacted) {
				t.Errorf("a log shows %s", got)
			}
			if got := (Event{Model: secret}).Sanitized().Model; got != Redacted {
				t.Errorf("an event shows %s", got)
			}
		}
		name := prefix + "-main"
		if log, event := NewRedactor().Text(name), (Event{Account: name}).Sanitized().Account; log != name || event != name {
			t.Errorf("%s is too short for a secret: %s in a log, %s in an event", name, log, event)
		}
	}
}

func TestRedactorDoesNotEatShortWords(t *testing.T) {
	r := NewRedactor()
	defer r.Protect("a")()
	defer r.Protect("")()
	if got := r.Text("a banana"); got != "a banana" {
		t.Fatalf("got %q", got)
	}
}

func TestRedactingWriter(t *testing.T) {
	var out bytes.Buffer
	r := NewRedactor()
	defer r.Protect("opensesame")()
	line := "key opensesame and sk-proj-abcdefgh1234\n"
	n, err := r.Writer(&out).Write([]byte(line))
	if err != nil || n != len(line) {
		t.Fatalf("wrote %d, error %v; want %d", n, err, len(line))
	}
	if got := out.String(); got != "key [redacted] and [redacted]\n" {
		t.Fatalf("got %q", got)
	}
	if _, err := r.Writer(failingWriter{}).Write([]byte(line)); !errors.Is(err, errFull) {
		t.Fatalf("error is %v, want the writer's", err)
	}
}

var errFull = errors.New("full")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }
