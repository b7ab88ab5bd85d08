package plugintest

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/hashicorp/go-plugin"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

func (s *suite) checkFixtures(_ context.Context, f *findings) {
	if len(s.fixtures.Accounts) == 0 {
		f.add(`add an account that has a lease under "accounts"`, "fixtures have no account")
	} else if s.fixtures.leased() == "" {
		f.add("add an account with a credential that needs no network, or leave its refusal out", "fixtures have no account that has a lease")
	}
	seen := map[string]bool{}
	for _, c := range s.fixtures.Outcomes {
		seen[strings.ToLower(c.Want.Outcome)] = true
	}
	for _, outcome := range required() {
		if w := word("OUTCOME_", outcome); !seen[w] {
			f.add(`add a case under "outcomes" with the response by which the provider says so`, "fixtures have no outcome %s", w)
		}
	}
	names := map[string]bool{}
	for _, c := range s.fixtures.Outcomes {
		if c.Name == "" || names[c.Name] {
			f.add("give every case a name of its own that states the rule", "the name %q of a case is empty or used twice", c.Name)
		}
		names[c.Name] = true
	}
}

// checkDescribe asks the executable to describe itself, in an empty home.
func (s *suite) checkDescribe(ctx context.Context, f *findings) {
	const fix = `with the argument "describe", print the DescribeResponse message as JSON to standard output, nothing else, and exit with 0`
	first, err := s.printed(ctx, "describe")
	if err != nil {
		f.add(fix, "describe: %v", err)
		return
	}
	second, err := s.printed(ctx, "describe")
	if err != nil {
		f.add(fix, "describe a second time: %v", err)
		return
	}
	if !bytes.Equal(first, second) {
		f.add("build the description from constants", "two descriptions differ")
	}
	d := &pluginv1.DescribeResponse{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(first, d); err != nil {
		f.add(fix, "describe printed something other than a DescribeResponse in JSON")
		return
	}
	s.described = d
	s.report.Name, s.report.Version = d.GetName(), d.GetVersion()
	if !wire.IsName(d.GetName()) {
		f.add("use [a-z][a-z0-9-]{0,31}", "name %q is of another form", d.GetName())
	}
	if !wire.IsName(d.GetProvider()) {
		f.add("use [a-z][a-z0-9-]{0,31}", "provider %q is of another form", d.GetProvider())
	}
	if strings.Count(d.GetVersion(), ".") < 2 {
		f.add("use a semantic version such as 1.2.3", "version %q is of another form", d.GetVersion())
	}
	for _, needed := range []string{wire.ServicePlugin, wire.ServiceProvider} {
		if !slices.Contains(d.GetServices(), needed) {
			f.add("list every service that is served by its full name", "services do not list %s", needed)
		}
	}
	for _, schema := range []*pluginv1.Schema{d.GetConfigSchema(), d.GetAccountSchema()} {
		for _, a := range schema.GetAttributes() {
			if a.GetType() == pluginv1.AttributeType_ATTRIBUTE_TYPE_UNSPECIFIED || a.GetName() == "" {
				f.add("give every attribute a name and a type", "attribute %q has no type", a.GetName())
			}
			if a.GetDoc() == "" {
				f.add("say in one sentence what the attribute is", "attribute %q has no documentation", a.GetName())
			}
		}
	}
}

// printed runs the executable to its end and gives its standard output.
func (s *suite) printed(ctx context.Context, args ...string) ([]byte, error) {
	cmd := s.command(args...)
	cmd.Env = s.environment(s.home)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, s.output
	err := runToEnd(ctx, cmd)
	return out.Bytes(), err
}

// checkByHand starts it without the daemon's cookie.
func (s *suite) checkByHand(ctx context.Context, f *findings) {
	cmd := s.command()
	cmd.Env = s.environment(s.home)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := runToEnd(ctx, cmd)
	fix := "when " + wire.Handshake.MagicCookieKey + " has another value than the daemon's, say on standard error what this executable is and exit with a status other than 0"
	switch {
	case err == nil:
		f.add(fix, "it ended with exit status 0")
	case cmd.ProcessState == nil || !cmd.ProcessState.Exited():
		f.add(fix, "it did not end by itself")
	}
	if out.Len() > 0 {
		f.add(fix, "it printed to standard output")
	}
	if errs.Len() == 0 {
		f.add(fix, "it said nothing on standard error")
	}
}

// runToEnd runs a command to its end, or kills its group when that takes too long.
func runToEnd(ctx context.Context, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	kill := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	timer := time.AfterFunc(startTime, kill)
	defer timer.Stop()
	stop := context.AfterFunc(ctx, kill)
	defer stop()
	return cmd.Wait()
}

func (s *suite) checkStart(ctx context.Context, f *findings) {
	p, err := s.start(ctx)
	if err != nil {
		f.add("print one line, core version|protocol version|unix|socket|grpc|certificate, and serve gRPC there with the daemon's certificate as client authority", "%v", err)
		return
	}
	s.running = p
	s.plugin, s.provider = pluginv1.NewPluginClient(p.conn), providerv1.NewProviderClient(p.conn)
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	health, err := grpc_health_v1.NewHealthClient(p.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	if err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		f.add(`serve grpc.health.v1.Health and answer SERVING for the service "plugin"`, "health of the service plugin: %v", answerOf(health.GetStatus(), err))
	}
	d, err := s.plugin.Describe(ctx, &pluginv1.DescribeRequest{})
	if err != nil {
		f.add("serve noria.plugin.v1.Plugin", "Describe: %v", err)
		return
	}
	if !proto.Equal(d, s.described) {
		f.add("answer both from the same values", "Describe and the argument describe tell different things")
	}
	init, err := s.plugin.Init(ctx, &pluginv1.InitRequest{HostVersion: "0.1.0"})
	if err != nil {
		f.add("answer Init before any configuration", "Init: %v", err)
		return
	}
	if !slices.Equal(slices.Sorted(slices.Values(init.GetPluginServices())), slices.Sorted(slices.Values(d.GetServices()))) {
		f.add("list the same services in both", "Init and Describe list different services")
	}
}

func answerOf(value any, err error) any {
	if err != nil {
		return err
	}
	return value
}

func (s *suite) checkUnconfigured(ctx context.Context, f *findings) {
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	const fix = "refuse calls until Configure has been applied, with the code FAILED_PRECONDITION"
	if _, err := s.provider.Profile(ctx, &providerv1.ProfileRequest{}); err == nil {
		f.add(fix, "Profile answered")
	}
	if _, err := s.provider.Lease(ctx, &providerv1.LeaseRequest{Account: s.fixtures.leased()}); err == nil {
		f.add(fix, "Lease answered")
	}
}

func (s *suite) checkConfigure(ctx context.Context, f *findings) {
	config, err := s.fixtures.config(s.described)
	if err != nil {
		f.add("correct the fixtures", "%v", err)
		return
	}
	s.config = config
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	const fix = "correct the fixtures, or accept what the schema allows"
	validated, err := s.plugin.ValidateConfig(ctx, &pluginv1.ValidateConfigRequest{Config: config})
	if err != nil {
		f.add(fix, "ValidateConfig: %v", err)
	}
	for _, d := range errorsOf(validated.GetDiagnostics()) {
		f.add(fix, "ValidateConfig: %s", told(d))
	}
	s.configure(ctx, config, func(what string) { f.add(fix, "Configure: %s", what) })
}

// configure applies a configuration and tells what is wrong with it.
func (s *suite) configure(ctx context.Context, config *pluginv1.Config, problem func(string)) {
	resp, err := s.plugin.Configure(ctx, &pluginv1.ConfigureRequest{Generation: s.generation.Add(1), Config: config})
	if err != nil {
		problem(err.Error())
	}
	for _, d := range errorsOf(resp.GetDiagnostics()) {
		problem(told(d))
	}
}

func errorsOf(diagnostics []*pluginv1.Diagnostic) []*pluginv1.Diagnostic {
	var found []*pluginv1.Diagnostic
	for _, d := range diagnostics {
		if d.GetSeverity() != pluginv1.Severity_SEVERITY_WARNING {
			found = append(found, d)
		}
	}
	return found
}

func told(d *pluginv1.Diagnostic) string {
	return strings.TrimSpace(d.GetAccount() + " " + d.GetAttribute() + ": " + d.GetSummary() + ": " + d.GetDetail())
}

func (s *suite) checkBadConfig(ctx context.Context, f *findings) {
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	for _, bad := range s.badConfigs() {
		resp, err := s.plugin.ValidateConfig(ctx, &pluginv1.ValidateConfigRequest{Config: bad.config})
		if err == nil && len(errorsOf(resp.GetDiagnostics())) == 0 {
			f.add("find it with a diagnostic that names the attribute", "ValidateConfig accepted %s", bad.what)
		}
		refused := false
		s.configure(ctx, bad.config, func(string) { refused = true })
		if !refused {
			f.add("apply all of a configuration or nothing of it", "Configure accepted %s", bad.what)
		}
	}
	if _, err := s.provider.Profile(ctx, &providerv1.ProfileRequest{}); err != nil {
		f.add("keep the last good configuration when another is refused", "after refused configurations, Profile: %v", err)
	}
}

type badConfig struct {
	what   string
	config *pluginv1.Config
}

func (s *suite) badConfigs() []badConfig {
	unknown := proto.CloneOf(s.config)
	unknown.ProviderJson = withAttribute(unknown.ProviderJson, "no_such_attribute", "x")
	bad := []badConfig{{"an attribute that is in no schema", unknown}}
	if len(s.config.GetAccounts()) > 0 {
		twice := proto.CloneOf(s.config)
		twice.Accounts = append(twice.Accounts, proto.CloneOf(twice.Accounts[0]))
		bad = append(bad, badConfig{"two accounts of the same name", twice})
	}
	for _, a := range s.described.GetConfigSchema().GetAttributes() {
		wrong := proto.CloneOf(s.config)
		wrong.ProviderJson = withAttribute(wrong.ProviderJson, a.GetName(), map[string]any{"an": []int{1}})
		bad = append(bad, badConfig{"an object for the attribute " + a.GetName(), wrong})
	}
	return bad
}

func (s *suite) checkUnknownAccount(ctx context.Context, f *findings) {
	const stranger = "no-such-account"
	const fix = "refuse accounts that are not in the configuration, with the code NOT_FOUND"
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	calls := map[string]func() error{
		"Lease": func() error { _, err := s.provider.Lease(ctx, &providerv1.LeaseRequest{Account: stranger}); return err },
		"Classify": func() error {
			_, err := s.provider.Classify(ctx, &providerv1.ClassifyRequest{Account: stranger, Status: 429})
			return err
		},
		"Observe": func() error {
			_, err := s.provider.Observe(ctx, &providerv1.ObserveRequest{Account: stranger, Status: 200})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); err == nil {
			f.add(fix, "%s answered for an account that is not configured", name)
		} else if status.Code(err) == codes.Internal {
			f.add(fix, "%s failed inside for an account that is not configured", name)
		}
	}
}
