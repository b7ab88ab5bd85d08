package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// adapterVariable makes the test binary an adapter: its value names one of testAdapters.
const adapterVariable = "SDK_TEST_ADAPTER"

func testAdapters() map[string]func() sdk.Adapter {
	return map[string]func() sdk.Adapter{
		"plain":   func() sdk.Adapter { return plain{} },
		"full":    func() sdk.Adapter { return full{} },
		"noisy":   newNoisy,
		"panicky": func() sdk.Adapter { return panicky{} },
		"stuck":   func() sdk.Adapter { return stuck{began: os.Getenv("SDK_TEST_BEGAN")} },
		"deaf":    func() sdk.Adapter { return deaf{began: os.Getenv("SDK_TEST_BEGAN")} },
		"unnamed": func() sdk.Adapter { return unnamed{} },
		"running": func() sdk.Adapter { return running{began: os.Getenv("SDK_TEST_BEGAN")} },
	}
}

func TestMain(m *testing.M) {
	if newAdapter, ok := testAdapters()[os.Getenv(adapterVariable)]; ok {
		sdk.Serve(newAdapter)
	}
	os.Exit(m.Run())
}

type providerBlock struct {
	Endpoint string            `hcl:"endpoint,required" doc:"base URL"`
	Patience time.Duration     `hcl:"patience" default:"45s"`
	Retries  int               `hcl:"retries" default:"3"`
	Share    float64           `hcl:"share" default:"0.5"`
	Strict   bool              `hcl:"strict" default:"true"`
	Regions  []string          `hcl:"regions" default:"[\"eu\"]"`
	Labels   map[string]string `hcl:"labels"`
	Untagged string
}

type accountBlock struct {
	TokenFile sdk.Path   `hcl:"token_file" doc:"file with the token"`
	Token     sdk.Secret `hcl:"token"`
	PIN       string     `hcl:"pin,sensitive"`
}

// plain has no optional interface.
type plain struct{}

func (plain) Describe() sdk.Descriptor {
	return sdk.Descriptor{Name: "plain", Version: "1.2.3", Config: providerBlock{}, Account: (*accountBlock)(nil),
		Environment: []string{"PLAIN_HOME"},
		Profile: sdk.Profile{
			Routes:   []sdk.Route{{Method: http.MethodPost, Path: "/turn", Kind: sdk.RouteTurn, Retryable: true}},
			Identity: sdk.Identity{Session: []sdk.Extractor{{Header: "x-session"}, {BodyPointer: "/session", Pattern: "^([a-z]+)$"}}},
			Stream:   sdk.StreamGrammar{Framing: sdk.FramingSSE, Inspected: []string{"error"}},
			UsageLag: 90 * time.Second,
			Windows:  []sdk.WindowDeclaration{{ID: "week", Kind: sdk.WindowWeekly, Length: 7 * 24 * time.Hour}},
		}}
}

func (plain) Lease(_ context.Context, account sdk.Account, req sdk.LeaseRequest) (sdk.Lease, error) {
	var block accountBlock
	if err := account.Decode(&block); err != nil {
		return sdk.Lease{}, err
	}
	var provider providerBlock
	if err := account.DecodeProvider(&provider); err != nil {
		return sdk.Lease{}, err
	}
	switch {
	case req.Refresh:
		return sdk.Lease{}, sdk.Refuse(sdk.RefusalExpired, "Sign in again.")
	case block.Token == "":
		return sdk.Lease{}, errors.New("no token:\nset one")
	}
	return sdk.Lease{BaseURL: provider.Endpoint, Set: map[string]string{"Authorization": "Bearer " + string(block.Token)},
		Remove: []string{"x-old"}, Extend: map[string]string{"x-beta": "one"}, Generation: "g1"}, nil
}

func (plain) Classify(_ context.Context, _ sdk.Account, resp sdk.Response) (sdk.Verdict, error) {
	if resp.Event != nil {
		return sdk.Verdict{Outcome: sdk.OutcomeOverloaded, Scope: sdk.ScopeProvider, Reason: resp.Event.Type}, nil
	}
	used := 100.0
	return sdk.Verdict{Outcome: sdk.OutcomeQuotaExhausted, Scope: sdk.ScopeAccount, Reason: "quota", RetryAfter: time.Second,
		ClearsAt: resp.ObservedAt.Add(time.Hour), Windows: []sdk.Window{{ID: "week", UsedPercent: &used, State: sdk.StateExhausted}}}, nil
}

func (plain) Observe(_ context.Context, _ sdk.Account, obs sdk.Observation) ([]sdk.Window, error) {
	return []sdk.Window{{ID: "week", UsedPercent: sdk.ParsePercent(obs.Header.Get("x-used"))}}, nil
}

// full has every optional interface.
type full struct{ plain }

func (full) Configure(_ context.Context, config sdk.Config) error {
	for _, account := range config.Accounts {
		if account.Name == "unwanted" {
			return errors.New("account unwanted is not wanted")
		}
	}
	return nil
}

func (full) Validate(_ context.Context, config sdk.Config) []sdk.Diagnostic {
	var block providerBlock
	if err := config.Decode(&block); err != nil {
		return []sdk.Diagnostic{{Severity: sdk.SeverityError, Summary: err.Error()}}
	}
	if block.Endpoint == "http://old.example" {
		return []sdk.Diagnostic{{Severity: sdk.SeverityWarning, Summary: "Endpoint is old", Attribute: "endpoint"}}
	}
	return nil
}

func (full) Windows(account sdk.Account) ([]sdk.WindowDeclaration, bool) {
	return nil, account.Name == "free"
}

func (full) ReadQuota(context.Context, sdk.Account) (sdk.QuotaReading, error) {
	return sdk.QuotaReading{Windows: []sdk.Window{{ID: "week"}}, Auth: sdk.AuthSignedIn}, nil
}

func (full) WatchQuota(ctx context.Context, send func(string, sdk.QuotaReading) error) error {
	if err := send("one", sdk.QuotaReading{Auth: sdk.AuthExpired}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func (full) CheckAuth(context.Context, sdk.Account) (sdk.AuthStatus, error) {
	return sdk.AuthStatus{State: sdk.AuthSignedOut, Method: "token", Reason: "signed out"}, nil
}

func (full) LoginCommand(context.Context, sdk.Account) (sdk.Command, error) {
	return sdk.Command{Argv: []string{"client", "login"}, Env: map[string]string{"HOME": "x"}, Unset: []string{"TOKEN"}}, nil
}

func (full) ListModels(context.Context, sdk.Account) (sdk.Catalog, error) {
	return sdk.Catalog{Models: []sdk.Model{{ID: "m1", Default: true}}, Source: "model/list"}, nil
}

func (full) LaunchFlags() []string { return []string{"--settings"} }

func (full) LaunchCommand(_ context.Context, req sdk.LaunchRequest) (sdk.Command, error) {
	return sdk.Command{Argv: []string{"client", req.Seen[0].Value, "{{args}}"}}, nil
}

func (full) SignRequest(_ context.Context, _ sdk.Account, req sdk.SignRequest) (http.Header, error) {
	return http.Header{"X-Signature": {fmt.Sprintf("%x", req.BodySHA256[:2])}}, nil
}

func (full) Unavailable(_ context.Context, req sdk.Unavailability) (sdk.Answer, error) {
	return sdk.Answer{Status: http.StatusTooManyRequests, Body: []byte(req.Sentence)}, nil
}

func (full) Drain(context.Context) error { return nil }

// noisy prints to standard output in every way: by name, by descriptor and from a child, before and after it serves.
type noisy struct{ plain }

func newNoisy() sdk.Adapter {
	noise := func() {
		fmt.Print("1|1|unix|/nowhere|grpc|half a line")
		_, _ = os.NewFile(1, "stdout").WriteString("by descriptor\n")
		child := exec.Command("echo", "from a child")
		child.Stdout = os.Stdout
		_ = child.Run()
	}
	noise()
	go noise()
	return noisy{}
}

func (noisy) Lease(ctx context.Context, account sdk.Account, req sdk.LeaseRequest) (sdk.Lease, error) {
	fmt.Println("while serving")
	return plain{}.Lease(ctx, account, req)
}

// panicky panics with a secret.
type panicky struct{ plain }

func (panicky) Lease(context.Context, sdk.Account, sdk.LeaseRequest) (sdk.Lease, error) {
	panic(errors.New("canary-4711 in a panic"))
}

func (panicky) Observe(context.Context, sdk.Account, sdk.Observation) ([]sdk.Window, error) {
	windows := []sdk.Window{}
	return windows[len("canary-4711"):], nil
}

// stuck waits for the end of its call and creates a file when it has begun.
type stuck struct {
	plain
	began string
}

func (s stuck) Lease(ctx context.Context, _ sdk.Account, _ sdk.LeaseRequest) (sdk.Lease, error) {
	if err := os.WriteFile(s.began, nil, 0o600); err != nil {
		return sdk.Lease{}, err
	}
	select {
	case <-ctx.Done():
		return sdk.Lease{}, ctx.Err()
	case <-fileExists(s.began + ".go"):
		return sdk.Lease{Generation: "finished"}, nil
	}
}

// deaf never returns, whatever its context says.
type deaf struct {
	plain
	began string
}

func (d deaf) Lease(context.Context, sdk.Account, sdk.LeaseRequest) (sdk.Lease, error) {
	if err := os.WriteFile(d.began, nil, 0o600); err != nil {
		return sdk.Lease{}, err
	}
	select {}
}

// Drain never returns either.
func (d deaf) Drain(context.Context) error { select {} }

// running runs a client that writes its process id to a file and would not end by itself.
type running struct {
	plain
	began string
}

func (r running) Lease(ctx context.Context, _ sdk.Account, _ sdk.LeaseRequest) (sdk.Lease, error) {
	_, err := sdk.RunClient(ctx, sdk.Command{Argv: []string{"sh", "-c", "echo $$ > $0.new && mv $0.new $0 && exec sleep 600", r.began}}, time.Hour)
	return sdk.Lease{}, err
}

// unnamed has a descriptor that no daemon can use.
type unnamed struct{ plain }

func (unnamed) Describe() sdk.Descriptor { return sdk.Descriptor{Name: "Not a Name", Version: "1.0.0"} }

// fileExists polls for a file, which is how tests talk to an adapter in another process.
func fileExists(path string) <-chan struct{} {
	exists := make(chan struct{})
	go func() {
		defer close(exists)
		for {
			if _, err := os.Stat(path); err == nil {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return exists
}
