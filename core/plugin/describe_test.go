package plugin

import (
	"context"
	"errors"
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func TestExecutableDescribesItselfWithoutAHandshake(t *testing.T) {
	s := newShelf(t)
	spec := s.script(fakeScript(t))
	spec.Provider = "fake"
	d, err := s.catalog.Describe(t.Context(), spec)
	must(t, err)
	if d.GetName() != "fake" || d.GetVersion() != "1.2.3" {
		t.Errorf("got %v", d)
	}
	must(t, os.Chmod(s.cache, 0o700))
	again, err := s.catalog.Describe(t.Context(), spec)
	must(t, err)
	if again != d {
		t.Error("the same executable was asked twice")
	}
}

// script is the spec of an executable with that text.
func (s *shelf) script(text string) Spec {
	s.t.Helper()
	path := s.file(s.plugins, "p", 0o755)
	must(s.t, os.WriteFile(path, []byte(text), 0o755))
	return Spec{Name: "p", Path: path, SHA256: digestOfText(text)}
}

func TestDescriptionThatIsNoneIsRefused(t *testing.T) {
	good := `{"name":"p","provider":"p","version":"1.0.0"}`
	cases := []struct {
		name, script string
		reason       Reason
	}{
		{"good", "echo '" + good + "'", ""},
		{"fields of tomorrow are ignored", `echo '{"name":"p","provider":"p","new_thing":[1,{}]}'`, ""},
		{"standard error does not matter", "echo noise >&2; echo '" + good + "'", ""},
		{"not JSON", "echo hello", ReasonDescribe},
		{"two documents", "echo '" + good + good + "'", ReasonDescribe},
		{"nothing", "", ReasonDescribe},
		{"fails", "echo '" + good + "'; exit 3", ReasonDescribe},
		{"no name", `echo '{"provider":"p"}'`, ReasonDescribe},
		{"escape in the version", `echo '{"name":"p","provider":"p","version":"1\u001b[2J"}'`, ReasonDescribe},
		{"more than the limit", "head -c 3000000 /dev/zero | tr '\\0' x", ReasonDescribe},
		{"never", "sleep 613", ReasonDescribe},
		{"of another provider", `echo '{"name":"q","provider":"q"}'`, ReasonIdentity},
		{"of another protocol", `echo '{"name":"p","provider":"p","handshake_version":9}'`, ReasonHandshakeVersion},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf(t)
			spec := s.script("#!/bin/sh\n" + c.script + "\n")
			spec.Provider = "p"
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.name == "never" {
				cancel()
			}
			_, err := s.catalog.Describe(ctx, spec)
			var f *Failure
			if c.reason == "" {
				must(t, err)
			} else if !errors.As(err, &f) || f.Reason != c.reason {
				t.Errorf("got %v, want %s", err, c.reason)
			}
			if left := marked(t, "613"); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
}

func TestDescription(t *testing.T) {
	good := &pluginv1.DescribeResponse{Name: "p", Provider: "p", Version: "1.0.0", ConfigSchema: &pluginv1.Schema{
		Attributes: []*pluginv1.Attribute{{Name: "endpoint", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING}}}}
	cases := []struct {
		name   string
		change func(*pluginv1.DescribeResponse)
		ok     bool
	}{
		{"good", func(*pluginv1.DescribeResponse) {}, true},
		{"name in capitals", func(d *pluginv1.DescribeResponse) { d.Name = "P" }, false},
		{"bad provider", func(d *pluginv1.DescribeResponse) { d.Provider = "../x" }, false},
		{"many services", func(d *pluginv1.DescribeResponse) { d.Services = make([]string, 100) }, false},
		{"line break in a variable", func(d *pluginv1.DescribeResponse) { d.Environment = []string{"A\nB"} }, false},
		{"attribute that is no name", func(d *pluginv1.DescribeResponse) { d.ConfigSchema.Attributes[0].Name = "a b" }, false},
		{"attribute in capitals", func(d *pluginv1.DescribeResponse) { d.ConfigSchema.Attributes[0].Name = "Endpoint" }, false},
		{"attribute of no type", func(d *pluginv1.DescribeResponse) { d.ConfigSchema.Attributes[0].Type = 0 }, false},
		{"attribute of a type of tomorrow", func(d *pluginv1.DescribeResponse) { d.ConfigSchema.Attributes[0].Type = 99 }, false},
		{"escape in a documentation", func(d *pluginv1.DescribeResponse) { d.ConfigSchema.Attributes[0].Doc = "\x1b[2J" }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := proto.CloneOf(good)
			c.change(d)
			if f := checkDescription(d, Spec{Provider: d.GetProvider()}); (f == nil) != c.ok {
				t.Errorf("got %v", f)
			}
		})
	}
}

func TestProfile(t *testing.T) {
	config := &pluginv1.Config{Accounts: []*pluginv1.Account{{Name: "work", Enabled: true}}}
	cases := []struct {
		name   string
		change func(*providerv1.Profile)
		ok     bool
	}{
		{"good", func(*providerv1.Profile) {}, true},
		{"no routes", func(p *providerv1.Profile) { p.Routes = nil }, false},
		{"too many routes", func(p *providerv1.Profile) { p.Routes = make([]*providerv1.Route, maxRoutes+1) }, false},
		{"route of no kind", func(p *providerv1.Profile) { p.Routes[0].Kind = 0 }, false},
		{"route of a kind of tomorrow", func(p *providerv1.Profile) { p.Routes[0].Kind = 99 }, false},
		{"route without a path", func(p *providerv1.Profile) { p.Routes[0].Path = "v1" }, false},
		{"local route without an answer", func(p *providerv1.Profile) { p.Routes[0].Kind = providerv1.RouteKind_ROUTE_KIND_LOCAL }, false},
		{"escape in an exposed header", func(p *providerv1.Profile) { p.Exposure.ResponseHeaders = []string{"x\x1b"} }, false},
		{"line break in a fallback's header", func(p *providerv1.Profile) {
			p.Fallbacks = &providerv1.FallbackAnswers{WrongKey: &providerv1.Answer{Status: 401, Headers: []*providerv1.Header{{Name: "x", Value: "a\nb"}}}}
		}, false},
		{"fallback of status 999", func(p *providerv1.Profile) {
			p.Fallbacks = &providerv1.FallbackAnswers{WrongKey: &providerv1.Answer{Status: 999}}
		}, false},
		{"framing of tomorrow", func(p *providerv1.Profile) { p.Stream = &providerv1.StreamGrammar{Framing: 99} }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := fakeProfile()
			c.change(p)
			if _, f := testCheck.profile(p, config); (f == nil) != c.ok {
				t.Errorf("got %v", f)
			}
		})
	}
	if _, f := testCheck.profile(nil, config); f == nil {
		t.Error("no profile is accepted")
	}
}

func TestProfileIsBoundedAndAboutConfiguredAccountsOnly(t *testing.T) {
	p := fakeProfile()
	p.Exposure.ErrorBodyBytes = 1 << 30
	p.Accounts = append(p.Accounts, &providerv1.AccountProfile{Account: "stranger"})
	for range 20 {
		p.Accounts[0].Windows = append(p.Accounts[0].Windows, &providerv1.WindowDeclaration{WindowId: "5h\x1b", Kind: 1})
	}
	got, f := testCheck.profile(p, &pluginv1.Config{Accounts: []*pluginv1.Account{{Name: "work"}, {Name: "other"}}})
	if f != nil {
		t.Fatal(f)
	}
	if got.GetExposure().GetErrorBodyBytes() != errorBodyCap || len(got.GetAccounts()) != 1 || len(got.GetAccounts()[0].GetWindows()) != 1 {
		t.Errorf("got %v", got)
	}
	if p.GetExposure().GetErrorBodyBytes() != 1<<30 {
		t.Error("the answer itself was changed")
	}
}

func TestFailureReadsAsOneLine(t *testing.T) {
	cases := []struct {
		name    string
		failure Failure
		want    string
	}{
		{"reason alone", Failure{Reason: ReasonInit}, "init_failed"},
		{"exit and the last line", Failure{Reason: ReasonExited, Detail: "adapter ended by itself", Exit: "exit status 7", Stderr: []string{"first", "cannot read token"}},
			"exited: adapter ended by itself: exit status 7: cannot read token"},
		{"the first error of a configuration", Failure{Reason: ReasonConfig, Detail: "adapter refused its configuration",
			Diagnostics: []Diagnostic{{Warning: true, Summary: "old form"}, {Summary: "endpoint is missing"}}, Stderr: []string{"noise"}},
			"config_refused: adapter refused its configuration: endpoint is missing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.failure.Error(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
