package plugintest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// firstMinor is an adapter as the first minor of the protocol could be written without the SDK: go-plugin's own server,
// the two services that every adapter has, and none of the fields and calls that came or may come later.
type firstMinor struct {
	plugin.NetRPCUnsupportedPlugin
	pluginv1.UnimplementedPluginServer
	providerv1.UnimplementedProviderServer

	mu       sync.Mutex // guards the rest
	config   *pluginv1.Config
	draining bool
}

func (m *firstMinor) serve(args []string) {
	if len(args) == 1 && args[0] == "describe" {
		text, err := protojson.Marshal(m.description())
		if err != nil {
			os.Exit(1)
		}
		var plain map[string]any // protojson varies its white space
		_ = json.Unmarshal(text, &plain)
		_ = json.NewEncoder(os.Stdout).Encode(plain)
		return
	}
	end := func(signals <-chan os.Signal) { <-signals; os.Exit(0) }
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go end(term)
	if os.Getenv(wire.EnvStdinPipe) == "1" {
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	}
	plugin.Serve(&plugin.ServeConfig{HandshakeConfig: wire.Handshake, Plugins: plugin.PluginSet{wire.PluginName: m},
		GRPCServer: plugin.DefaultGRPCServer, Logger: hclog.NewNullLogger()})
}

func (m *firstMinor) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	pluginv1.RegisterPluginServer(server, m)
	providerv1.RegisterProviderServer(server, m)
	return nil
}

func (*firstMinor) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, fmt.Errorf("no client")
}

func (*firstMinor) description() *pluginv1.DescribeResponse {
	return &pluginv1.DescribeResponse{Name: "first-minor", Version: "1.0.0", Provider: "first",
		Services: []string{wire.ServicePlugin, wire.ServiceProvider},
		AccountSchema: &pluginv1.Schema{Attributes: []*pluginv1.Attribute{
			{Name: "token", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING, Doc: "The account's token."}}}}
}

func (m *firstMinor) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return m.description(), nil
}

func (m *firstMinor) Init(context.Context, *pluginv1.InitRequest) (*pluginv1.InitResponse, error) {
	return &pluginv1.InitResponse{PluginServices: m.description().GetServices()}, nil
}

func (*firstMinor) ValidateConfig(_ context.Context, req *pluginv1.ValidateConfigRequest) (*pluginv1.ValidateConfigResponse, error) {
	return &pluginv1.ValidateConfigResponse{Diagnostics: validate(req.GetConfig())}, nil
}

func validate(config *pluginv1.Config) []*pluginv1.Diagnostic {
	var found []*pluginv1.Diagnostic
	if text := string(config.GetProviderJson()); text != "{}" {
		found = append(found, &pluginv1.Diagnostic{Severity: pluginv1.Severity_SEVERITY_ERROR, Summary: "Unknown attribute"})
	}
	seen := map[string]bool{}
	for _, a := range config.GetAccounts() {
		if seen[a.GetName()] {
			found = append(found, &pluginv1.Diagnostic{Severity: pluginv1.Severity_SEVERITY_ERROR, Summary: "Account used twice"})
		}
		seen[a.GetName()] = true
	}
	return found
}

func (m *firstMinor) Configure(_ context.Context, req *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	found := validate(req.GetConfig())
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(found) == 0 {
		m.config = req.GetConfig()
	}
	return &pluginv1.ConfigureResponse{Diagnostics: found}, nil
}

func (m *firstMinor) Drain(context.Context, *pluginv1.DrainRequest) (*pluginv1.DrainResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draining = true
	return &pluginv1.DrainResponse{}, nil
}

func (m *firstMinor) account(name string) (*pluginv1.Account, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.draining:
		return nil, status.Error(codes.Unavailable, "draining")
	case m.config == nil:
		return nil, status.Error(codes.FailedPrecondition, "not configured")
	}
	for _, a := range m.config.GetAccounts() {
		if a.GetName() == name {
			return a, nil
		}
	}
	return nil, status.Error(codes.NotFound, "no such account")
}

func (m *firstMinor) Profile(context.Context, *providerv1.ProfileRequest) (*providerv1.ProfileResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.config == nil {
		return nil, status.Error(codes.FailedPrecondition, "not configured")
	}
	answer := func(code int32) *providerv1.Answer {
		return &providerv1.Answer{Status: code, Body: []byte("{{sentence}}")}
	}
	profile := &providerv1.Profile{
		Routes:   []*providerv1.Route{{Method: "POST", Path: "/turn", Kind: providerv1.RouteKind_ROUTE_KIND_TURN}},
		Identity: &providerv1.Identity{Session: []*providerv1.Extractor{{Source: &providerv1.Extractor_Header{Header: "x-session"}}}},
		Exposure: &providerv1.Exposure{ResponseHeaders: []string{"x-used", "x-reset", "retry-after"}, ErrorBodyBytes: 64},
		Stream:   &providerv1.StreamGrammar{Framing: providerv1.Framing_FRAMING_NONE},
		Headers:  &providerv1.HeaderPolicy{Credentials: []string{"authorization"}},
		Fallbacks: &providerv1.FallbackAnswers{WrongKey: answer(401), UnknownPath: answer(404), UnavailableUntil: answer(429),
			Unavailable: answer(503), AdapterAway: answer(503)},
	}
	for _, a := range m.config.GetAccounts() {
		profile.Accounts = append(profile.Accounts, &providerv1.AccountProfile{Account: a.GetName(), Windows: []*providerv1.WindowDeclaration{
			{WindowId: "1d", LengthSeconds: 86400, Kind: providerv1.WindowKind_WINDOW_KIND_ROLLING}}})
	}
	return &providerv1.ProfileResponse{Profile: profile}, nil
}

func (m *firstMinor) Lease(_ context.Context, req *providerv1.LeaseRequest) (*providerv1.LeaseResponse, error) {
	a, err := m.account(req.GetAccount())
	if err != nil {
		return nil, err
	}
	var block struct{ Token string }
	if json.Unmarshal(a.GetConfigJson(), &block) != nil || block.Token == "" {
		return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Refusal{Refusal: &providerv1.Refusal{
			Code: providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, Reason: "Set the token."}}}, nil
	}
	return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Lease{Lease: &providerv1.Lease{BaseUrl: "https://first.example",
		Set: []*providerv1.Header{{Name: "authorization", Value: "Bearer " + block.Token}}, Generation: "g"}}}, nil
}

func (m *firstMinor) Classify(_ context.Context, req *providerv1.ClassifyRequest) (*providerv1.ClassifyResponse, error) {
	if _, err := m.account(req.GetAccount()); err != nil {
		return nil, err
	}
	read := func(outcome providerv1.Outcome, scope providerv1.Scope, reason string) (*providerv1.ClassifyResponse, error) {
		return &providerv1.ClassifyResponse{Outcome: outcome, Scope: scope, Reason: reason}, nil
	}
	switch code := req.GetStatus(); {
	case code == 429 && strings.Contains(string(req.GetBody()), "quota"):
		return &providerv1.ClassifyResponse{Outcome: providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED, Scope: providerv1.Scope_SCOPE_ACCOUNT, Reason: "quota",
			Windows: []*providerv1.Window{{WindowId: "1d", Kind: providerv1.WindowKind_WINDOW_KIND_ROLLING, LengthSeconds: 86400, UsedPercent: proto.Float64(100),
				State: providerv1.WindowState_WINDOW_STATE_EXHAUSTED, Source: providerv1.Source_SOURCE_REJECTION, ObservedAt: req.GetObservedAt()}}}, nil
	case code == 429:
		return &providerv1.ClassifyResponse{Outcome: providerv1.Outcome_OUTCOME_THROTTLED, Scope: providerv1.Scope_SCOPE_ACCOUNT, Reason: "rate", RetryAfterMs: 30_000}, nil
	case code == 401:
		return read(providerv1.Outcome_OUTCOME_AUTH_FAILED, providerv1.Scope_SCOPE_ACCOUNT, "auth")
	case code >= 500:
		return read(providerv1.Outcome_OUTCOME_OVERLOADED, providerv1.Scope_SCOPE_PROVIDER, "server")
	}
	return read(providerv1.Outcome_OUTCOME_CLIENT_ERROR, providerv1.Scope_SCOPE_REQUEST, "client")
}

func (m *firstMinor) Observe(_ context.Context, req *providerv1.ObserveRequest) (*providerv1.ObserveResponse, error) {
	if _, err := m.account(req.GetAccount()); err != nil {
		return nil, err
	}
	window := &providerv1.Window{WindowId: "1d", Kind: providerv1.WindowKind_WINDOW_KIND_ROLLING, LengthSeconds: 86400, ObservedAt: req.GetObservedAt(),
		State: providerv1.WindowState_WINDOW_STATE_UNKNOWN, Source: providerv1.Source_SOURCE_RESPONSE_HEADER}
	for _, h := range req.GetResponseHeaders() {
		if h.GetName() == "x-used" && h.GetValue() == "42" {
			window.UsedPercent, window.State = proto.Float64(42), providerv1.WindowState_WINDOW_STATE_OBSERVED
		}
	}
	return &providerv1.ObserveResponse{Windows: []*providerv1.Window{window}}, nil
}

func TestAnAdapterOfTheFirstMinorPasses(t *testing.T) {
	if report := run(t, sample("first minor")); !report.Passed() || report.Name != "first-minor" {
		t.Error(text(t, report))
	}
}
