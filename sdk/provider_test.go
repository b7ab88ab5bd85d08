package sdk_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

func TestDescribePrintsWhatTheServiceAnswers(t *testing.T) {
	printed := func() []byte {
		var out bytes.Buffer
		command := bare(t, "plain", []string{"describe"}, nil)
		command.Stdout = &out
		if code := ended(t, command.Run); code != 0 {
			t.Fatalf("exit code %d", code)
		}
		return out.Bytes()
	}
	first := printed()
	if !bytes.Equal(first, printed()) {
		t.Error("two descriptions differ")
	}
	offline := &pluginv1.DescribeResponse{}
	if err := protojson.Unmarshal(first, offline); err != nil {
		t.Fatal(err)
	}
	served, err := startAdapter(t, "plain").plugin.Describe(t.Context(), &pluginv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(served, offline, protocmp.Transform()); diff != "" {
		t.Errorf("service and describe differ: %s", diff)
	}
	want := &pluginv1.DescribeResponse{Name: "plain", Version: "1.2.3", SdkVersion: "0.1.0", Provider: "plain",
		Services: []string{wire.ServicePlugin, wire.ServiceProvider}, Environment: []string{"PLAIN_HOME"}, HandshakeVersion: 1,
		ConfigSchema: &pluginv1.Schema{Attributes: []*pluginv1.Attribute{
			{Name: "endpoint", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING, Required: true, Doc: "base URL"},
			{Name: "patience", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_DURATION, DefaultJson: `"45s"`},
			{Name: "retries", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_NUMBER, DefaultJson: "3"},
			{Name: "share", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_NUMBER, DefaultJson: "0.5"},
			{Name: "strict", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_BOOL, DefaultJson: "true"},
			{Name: "regions", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_LIST, DefaultJson: `["eu"]`},
			{Name: "labels", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING_MAP},
		}},
		AccountSchema: &pluginv1.Schema{Attributes: []*pluginv1.Attribute{
			{Name: "token_file", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_PATH, Doc: "file with the token"},
			{Name: "token", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING, Sensitive: true},
			{Name: "pin", Type: pluginv1.AttributeType_ATTRIBUTE_TYPE_STRING, Sensitive: true},
		}},
	}
	if diff := cmp.Diff(want, served, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestOptionalInterfacesBecomeServices(t *testing.T) {
	d := startAdapter(t, "full")
	got, err := d.plugin.Init(t.Context(), &pluginv1.InitRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{wire.ServicePlugin, wire.ServiceProvider, wire.ServiceQuota, wire.ServiceAuth, wire.ServiceCatalog,
		wire.ServiceLaunch, wire.ServiceSigner}
	if diff := cmp.Diff(want, got.GetPluginServices()); diff != "" {
		t.Error(diff)
	}
	d.configure(t, 1, goodProvider, account("one", `{}`))
	check := func(name string, got proto.Message, err error, want proto.Message) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(&providerv1.Window{}, "observed_at")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	quota, err := providerv1.NewQuotaClient(d.conn).ReadQuota(t.Context(), &providerv1.ReadQuotaRequest{Account: "one"})
	check("ReadQuota", quota, err, &providerv1.ReadQuotaResponse{AuthState: providerv1.AuthState_AUTH_STATE_SIGNED_IN,
		Windows: []*providerv1.Window{{WindowId: "week", State: providerv1.WindowState_WINDOW_STATE_UNKNOWN,
			Source: providerv1.Source_SOURCE_OFFICIAL_CLIENT}}})
	auth, err := providerv1.NewAuthClient(d.conn).CheckAuth(t.Context(), &providerv1.CheckAuthRequest{Account: "one"})
	check("CheckAuth", auth, err, &providerv1.CheckAuthResponse{State: providerv1.AuthState_AUTH_STATE_SIGNED_OUT, Method: "token", Reason: "signed out"})
	login, err := providerv1.NewAuthClient(d.conn).LoginCommand(t.Context(), &providerv1.LoginCommandRequest{Account: "one"})
	check("LoginCommand", login, err, &providerv1.LoginCommandResponse{Command: &providerv1.OfficialCommand{
		Argv: []string{"client", "login"}, Environment: map[string]string{"HOME": "x"}, Unset: []string{"TOKEN"}}})
	models, err := providerv1.NewCatalogClient(d.conn).ListModels(t.Context(), &providerv1.ListModelsRequest{Account: "one"})
	check("ListModels", models, err, &providerv1.ListModelsResponse{Source: "model/list", Models: []*providerv1.Model{{Id: "m1", IsDefault: true}}})
	flags, err := providerv1.NewLaunchClient(d.conn).LaunchFlags(t.Context(), &providerv1.LaunchFlagsRequest{})
	check("LaunchFlags", flags, err, &providerv1.LaunchFlagsResponse{Flags: []string{"--settings"}})
	launch, err := providerv1.NewLaunchClient(d.conn).LaunchCommand(t.Context(), &providerv1.LaunchCommandRequest{
		Seen: []*providerv1.FlagValue{{Flag: "--settings", Value: "s"}}})
	check("LaunchCommand", launch, err, &providerv1.LaunchCommandResponse{Command: &providerv1.OfficialCommand{Argv: []string{"client", "s", "{{args}}"}}})
	sign, err := providerv1.NewSignerClient(d.conn).SignRequest(t.Context(), &providerv1.SignRequestRequest{Account: "one", BodySha256: bytes.Repeat([]byte{0xab}, 32)})
	check("SignRequest", sign, err, &providerv1.SignRequestResponse{Set: []*providerv1.Header{{Name: "X-Signature", Value: "abab"}}})
	answer, err := d.provider.Unavailable(t.Context(), &providerv1.UnavailableRequest{Sentence: "later"})
	check("Unavailable", answer, err, &providerv1.UnavailableResponse{Answer: &providerv1.Answer{Status: 429, Body: []byte("later")}})
	profile, err := d.provider.Profile(t.Context(), &providerv1.ProfileRequest{})
	check("Profile", profile.GetProfile().GetAccounts()[0], err, &providerv1.AccountProfile{Account: "one"})
}

func TestAnAbsentInterfaceIsUnimplemented(t *testing.T) {
	d := startAdapter(t, "plain")
	d.configure(t, 1, goodProvider, account("one", `{}`))
	_, err := providerv1.NewQuotaClient(d.conn).ReadQuota(t.Context(), &providerv1.ReadQuotaRequest{Account: "one"})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("ReadQuota: %v", err)
	}
	if _, err = d.provider.Unavailable(t.Context(), &providerv1.UnavailableRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("Unavailable: %v", err)
	}
}

func TestTheProfileArrivesAsDeclared(t *testing.T) {
	d := startAdapter(t, "plain")
	d.configure(t, 1, goodProvider, account("one", `{}`))
	got, err := d.provider.Profile(t.Context(), &providerv1.ProfileRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p := got.GetProfile()
	if r := p.GetRoutes()[0]; r.GetMethod() != "POST" || r.GetPath() != "/turn" || r.GetKind() != providerv1.RouteKind_ROUTE_KIND_TURN || !r.GetRetryable() {
		t.Errorf("route %v", r)
	}
	session := p.GetIdentity().GetSession()
	if session[0].GetHeader() != "x-session" || session[1].GetBodyPointer() != "/session" || session[1].GetPattern() != "^([a-z]+)$" {
		t.Errorf("session %v", session)
	}
	if p.GetStream().GetInspected()[0] != "error" || p.GetUsageLagMs() != 90_000 {
		t.Errorf("stream %v, lag %d", p.GetStream(), p.GetUsageLagMs())
	}
	want := &providerv1.AccountProfile{Account: "one", Windows: []*providerv1.WindowDeclaration{
		{WindowId: "week", Kind: providerv1.WindowKind_WINDOW_KIND_WEEKLY, LengthSeconds: 604800}}}
	if diff := cmp.Diff(want, p.GetAccounts()[0], protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestALeaseArrivesAsGiven(t *testing.T) {
	d := startAdapter(t, "plain")
	d.configure(t, 1, goodProvider, account("one", `{"token": "t"}`), account("two", `{}`))
	got, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "one"})
	if err != nil {
		t.Fatal(err)
	}
	want := &providerv1.Lease{BaseUrl: "http://127.0.0.1:1", Set: []*providerv1.Header{{Name: "Authorization", Value: "Bearer t"}},
		Remove: []string{"x-old"}, Extend: []*providerv1.Header{{Name: "x-beta", Value: "one"}}, Generation: "g1"}
	if diff := cmp.Diff(want, got.GetLease(), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	got, err = d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "one", Refresh: true})
	if err != nil || got.GetRefusal().GetCode() != providerv1.RefusalCode_REFUSAL_CODE_EXPIRED || got.GetRefusal().GetReason() != "Sign in again." {
		t.Errorf("refusal %v, %v", got, err)
	}
	_, err = d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "two"})
	if status.Code(err) != codes.Unknown || status.Convert(err).Message() != "no token: set one" {
		t.Errorf("error %v", err)
	}
}

func TestAClassificationArrivesWithWhatTheAuthorLeftOut(t *testing.T) {
	d := startAdapter(t, "plain")
	d.configure(t, 1, goodProvider, account("one", `{}`))
	at := timestamppb.New(time.Unix(1_796_000_000, 0))
	got, err := d.provider.Classify(t.Context(), &providerv1.ClassifyRequest{Account: "one", Status: 429, ObservedAt: at})
	if err != nil {
		t.Fatal(err)
	}
	want := &providerv1.ClassifyResponse{Outcome: providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED, Scope: providerv1.Scope_SCOPE_ACCOUNT,
		Reason: "quota", RetryAfterMs: 1000, ClearsAt: timestamppb.New(at.AsTime().Add(time.Hour)),
		Windows: []*providerv1.Window{{WindowId: "week", UsedPercent: proto.Float64(100), ObservedAt: at,
			State: providerv1.WindowState_WINDOW_STATE_EXHAUSTED, Source: providerv1.Source_SOURCE_REJECTION}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	got, err = d.provider.Classify(t.Context(), &providerv1.ClassifyRequest{Account: "one",
		Evidence: &providerv1.ClassifyRequest_Event{Event: &providerv1.Event{Type: "error"}}})
	if err != nil || got.GetReason() != "error" {
		t.Errorf("event: %v, %v", got, err)
	}
}

func TestAnUnknownPercentageStaysAbsent(t *testing.T) {
	d := startAdapter(t, "plain")
	d.configure(t, 1, goodProvider, account("one", `{}`))
	observe := func(used string) *providerv1.Window {
		got, err := d.provider.Observe(t.Context(), &providerv1.ObserveRequest{Account: "one",
			ResponseHeaders: []*providerv1.Header{{Name: "x-used", Value: used}}})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetWindows()[0]
	}
	if w := observe("42"); w.GetUsedPercent() != 42 || w.GetState() != providerv1.WindowState_WINDOW_STATE_OBSERVED {
		t.Errorf("known: %v", w)
	}
	if w := observe("NaN"); w.UsedPercent != nil || w.GetState() != providerv1.WindowState_WINDOW_STATE_UNKNOWN {
		t.Errorf("unknown: %v", w)
	}
}

func TestCallsNeedAConfiguredAccount(t *testing.T) {
	d := startAdapter(t, "plain")
	if _, err := d.provider.Profile(t.Context(), &providerv1.ProfileRequest{}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("profile before configuration: %v", err)
	}
	if _, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "one"}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("lease before configuration: %v", err)
	}
	d.configure(t, 1, goodProvider, account("one", `{}`))
	if _, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "two"}); status.Code(err) != codes.NotFound {
		t.Errorf("unknown account: %v", err)
	}
}

func TestAConfigurationIsAppliedAsAWholeOrNotAtAll(t *testing.T) {
	d := startAdapter(t, "full")
	tests := []struct {
		name     string
		provider string
		accounts []*pluginv1.Account
		summary  string
	}{
		{"unknown attribute", `{"endpoint": "", "endpiont": ""}`, nil, `Unknown attribute "endpiont"`},
		{"missing attribute", `{}`, nil, `Invalid attribute "endpoint"`},
		{"wrong account", goodProvider, []*pluginv1.Account{account("one", `{"token": 1}`)}, `Invalid attribute "token"`},
		{"account twice", goodProvider, []*pluginv1.Account{account("one", `{}`), account("one", `{}`)}, "Account name is empty or used twice"},
		{"refused by the adapter", goodProvider, []*pluginv1.Account{account("unwanted", `{}`)}, "Adapter refused the configuration"},
	}
	if found := d.configure(t, 1, goodProvider, account("kept", `{"token": "t"}`)); len(found) > 0 {
		t.Fatalf("good configuration: %v", found)
	}
	for i, test := range tests {
		found := d.configure(t, uint64(2+i), test.provider, test.accounts...)
		if len(found) != 1 || found[0].GetSummary() != test.summary || found[0].GetSeverity() != pluginv1.Severity_SEVERITY_ERROR {
			t.Errorf("%s: %v", test.name, found)
		}
	}
	if _, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "kept"}); err != nil {
		t.Errorf("the last good configuration is gone: %v", err)
	}
	found := d.configure(t, 9, `{"endpoint": "http://old.example"}`, account("next", `{"token": "t"}`))
	if len(found) != 1 || found[0].GetSeverity() != pluginv1.Severity_SEVERITY_WARNING {
		t.Errorf("a warning alone: %v", found)
	}
	if _, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "next"}); err != nil {
		t.Errorf("a warning kept the configuration away: %v", err)
	}
	_, err := d.plugin.Configure(t.Context(), &pluginv1.ConfigureRequest{Generation: 8})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("an older configuration: %v", err)
	}
}

func TestValidateAppliesNothing(t *testing.T) {
	d := startAdapter(t, "full")
	got, err := d.plugin.ValidateConfig(t.Context(), &pluginv1.ValidateConfigRequest{Config: &pluginv1.Config{
		ProviderJson: []byte(`{"endpoint": "http://old.example"}`), Accounts: []*pluginv1.Account{account("one", `{}`)}}})
	if err != nil || len(got.GetDiagnostics()) != 1 || got.GetDiagnostics()[0].GetAttribute() != "endpoint" {
		t.Errorf("diagnostics %v, %v", got, err)
	}
	if _, err := d.provider.Profile(t.Context(), &providerv1.ProfileRequest{}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("profile after validation: %v", err)
	}
}
