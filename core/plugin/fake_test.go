package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// A fake adapter is this test binary, started with fakeCommand and "RPC=action" words. It serves the protocol by
// go-plugin alone, so that what the host does is not helped by the SDK. Actions can also come with the configuration.
const fakeCommand = "fake-adapter"

// Actions of a fake adapter.
const (
	actExit  = "exit"  // ends with status 7
	actKill  = "kill"  // ends by SIGKILL
	actStop  = "stop"  // stops itself
	actHang  = "hang"  // answers when the call is given up, or never
	actError = "error" // fails with a text that holds a canary
	actHuge  = "huge"  // answers with more than the limit
	actFlood = "flood" // streams without end
)

const canary = "sk-ant-oat01-CANARYaaaa0009MADEUPMADEUPMADEUP-AA"

// fakeConfig is the provider block of a fake adapter.
type fakeConfig struct {
	// Actions by RPC.
	Actions map[string]string `json:"actions,omitempty"`
	// Refuse the configuration.
	Refuse bool `json:"refuse,omitempty"`
	// Mark shown in the values and the generation of leases.
	Mark string `json:"mark,omitempty"`
	// LeaseSeconds that a lease is valid.
	LeaseSeconds int `json:"lease_seconds,omitempty"`
}

type fakeAdapter struct {
	plugin.NetRPCUnsupportedPlugin
	pluginv1.UnimplementedPluginServer
	providerv1.UnimplementedProviderServer
	providerv1.UnimplementedQuotaServer
	providerv1.UnimplementedAuthServer

	mu      sync.Mutex // guards below
	actions map[string]string
	config  fakeConfig
	leases  int
}

func runFake(args []string) {
	f := &fakeAdapter{actions: map[string]string{}}
	for _, arg := range args {
		switch name, value, _ := strings.Cut(arg, "="); name {
		case "describe":
			f.act(context.Background(), "describe")
			out, _ := protojson.Marshal(f.description())
			fmt.Println(string(out))
			return
		case "print":
			fmt.Fprintln(os.Stderr, value)
		case "environment":
			fmt.Fprintln(os.Stderr, strings.Join(os.Environ(), " "))
		default:
			f.actions[name] = value
		}
	}
	f.act(context.Background(), "start")
	if listens := f.actions["socket"]; listens != "" {
		pretend(listens == "listen", f.actions["certificate"])
		return
	}
	if f.actions["debug"] != "" {
		f.serveDebug()
		return
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake,
		Plugins:         plugin.PluginSet{wire.PluginName: f},
		GRPCServer:      f.newServer,
	})
}

// newServer is one of a later minor of the protocol when it is told to.
func (f *fakeAdapter) newServer(options []grpc.ServerOption) *grpc.Server {
	if f.actions["minor"] == "later" {
		options = append(options, grpc.ChainUnaryInterceptor(laterMinor))
	}
	return plugin.DefaultGRPCServer(options)
}

// laterMinor adds a field to every answer that no minor knows yet, and a service to those that are named.
func laterMinor(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, request)
	if err != nil {
		return nil, err
	}
	if hello, ok := answer.(*pluginv1.InitResponse); ok {
		hello.PluginServices = append(hello.PluginServices, "noria.provider.v1.Later")
	}
	if message, ok := answer.(proto.Message); ok {
		field := protowire.AppendTag(nil, 900, protowire.BytesType)
		message.ProtoReflect().SetUnknown(protowire.AppendString(field, "later"))
	}
	return answer, nil
}

// pretend sends a handshake for a socket that nobody serves.
func pretend(listens bool, certificate string) {
	path := filepath.Join(os.Getenv(plugin.EnvUnixSocketDir), "s")
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Bind(socket, &unix.SockaddrUnix{Name: path})
	}
	if err == nil && listens {
		err = unix.Listen(socket, 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Printf("1|1|unix|%s|grpc|%s\n", path, certificate)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// serveDebug serves like an executable started with -debug, and prints the line to attach by.
func (f *fakeAdapter) serveDebug() {
	at := make(chan *plugin.ReattachConfig, 1)
	go plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: wire.Handshake,
		Plugins:         plugin.PluginSet{wire.PluginName: f},
		GRPCServer:      plugin.DefaultGRPCServer,
		Test:            &plugin.ServeTestConfig{Context: context.Background(), ReattachConfigCh: at},
	})
	config := <-at
	line, _ := wire.Reattach{Protocol: string(config.Protocol), ProtocolVersion: config.ProtocolVersion,
		Pid: config.Pid, Network: config.Addr.Network(), Address: config.Addr.String()}.Line()
	fmt.Print(line)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func (f *fakeAdapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	pluginv1.RegisterPluginServer(s, f)
	providerv1.RegisterProviderServer(s, f)
	providerv1.RegisterQuotaServer(s, f)
	providerv1.RegisterAuthServer(s, f)
	return nil
}

func (f *fakeAdapter) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a fake adapter is no client")
}

// act does what is wished at the named RPC.
func (f *fakeAdapter) act(ctx context.Context, rpc string) error {
	f.mu.Lock()
	action := f.actions[rpc]
	f.mu.Unlock()
	switch action {
	case actExit:
		os.Exit(7)
	case actKill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case actStop:
		// Other threads may go on for a moment: no answer may come of this one.
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		fallthrough
	case actHang:
		<-ctx.Done()
		return ctx.Err()
	case actError:
		return errors.New("refused: " + canary)
	}
	return nil
}

func (f *fakeAdapter) description() *pluginv1.DescribeResponse {
	if f.actions["minor"] == "first" {
		return &pluginv1.DescribeResponse{Name: "fake", Version: "1.2.3", Provider: "fake",
			Services: []string{wire.ServicePlugin, wire.ServiceProvider}}
	}
	return &pluginv1.DescribeResponse{
		Name: "fake", Version: "1.2.3", SdkVersion: "0.0.0", Provider: "fake",
		Services:    append([]string{wire.ServicePlugin, wire.ServiceProvider, wire.ServiceQuota, wire.ServiceAuth}, f.signer("Describe")...),
		Environment: []string{"FAKE_SETTING", "FAKE_API_KEY"},
	}
}

// signer is the service of that name where it is told to offer it.
func (f *fakeAdapter) signer(at string) []string {
	if f.actions["signs"] != at {
		return nil
	}
	return []string{wire.ServiceSigner}
}

func (f *fakeAdapter) Describe(ctx context.Context, _ *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return f.description(), f.act(ctx, "Describe")
}

func (f *fakeAdapter) Init(ctx context.Context, _ *pluginv1.InitRequest) (*pluginv1.InitResponse, error) {
	return &pluginv1.InitResponse{PluginServices: append(f.description().GetServices(), f.signer("Init")...)}, f.act(ctx, "Init")
}

func (f *fakeAdapter) ValidateConfig(ctx context.Context, req *pluginv1.ValidateConfigRequest) (*pluginv1.ValidateConfigResponse, error) {
	var config fakeConfig
	_ = json.Unmarshal(req.GetConfig().GetProviderJson(), &config)
	return &pluginv1.ValidateConfigResponse{Diagnostics: refusals(config)}, f.act(ctx, "ValidateConfig")
}

func refusals(config fakeConfig) []*pluginv1.Diagnostic {
	if !config.Refuse {
		return nil
	}
	return []*pluginv1.Diagnostic{{Severity: pluginv1.Severity_SEVERITY_ERROR, Summary: "endpoint is missing", Attribute: "endpoint"}}
}

func (f *fakeAdapter) Configure(ctx context.Context, req *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	var config fakeConfig
	_ = json.Unmarshal(req.GetConfig().GetProviderJson(), &config)
	f.mu.Lock()
	f.config = config
	maps.Copy(f.actions, config.Actions)
	f.mu.Unlock()
	return &pluginv1.ConfigureResponse{Diagnostics: refusals(config)}, f.act(ctx, "Configure")
}

func (f *fakeAdapter) Drain(ctx context.Context, _ *pluginv1.DrainRequest) (*pluginv1.DrainResponse, error) {
	return &pluginv1.DrainResponse{}, f.act(ctx, "Drain")
}

func (f *fakeAdapter) Profile(ctx context.Context, _ *providerv1.ProfileRequest) (*providerv1.ProfileResponse, error) {
	return &providerv1.ProfileResponse{Profile: fakeProfile()}, f.act(ctx, "Profile")
}

func fakeProfile() *providerv1.Profile {
	return &providerv1.Profile{
		Routes:   []*providerv1.Route{{Method: "POST", Path: "/v1/messages", Kind: providerv1.RouteKind_ROUTE_KIND_TURN}},
		Exposure: &providerv1.Exposure{ResponseHeaders: []string{"x-fake-*"}, UrgentHeaders: []string{"x-fake-status"}},
		Accounts: []*providerv1.AccountProfile{{Account: "work", Windows: []*providerv1.WindowDeclaration{
			{WindowId: "5h", Kind: providerv1.WindowKind_WINDOW_KIND_ROLLING, LengthSeconds: 18000}}}},
	}
}

func (f *fakeAdapter) Lease(ctx context.Context, req *providerv1.LeaseRequest) (*providerv1.LeaseResponse, error) {
	if err := f.act(ctx, "Lease"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leases++
	seconds := f.config.LeaseSeconds
	if seconds == 0 {
		seconds = 300
	}
	return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Lease{Lease: &providerv1.Lease{
		BaseUrl:    "http://127.0.0.1:1/",
		Set:        []*providerv1.Header{{Name: "authorization", Value: fmt.Sprintf("Bearer %s-%s-%d", f.config.Mark, req.GetAccount(), f.leases)}},
		ValidUntil: timestamppb.New(time.Now().Add(time.Duration(seconds) * time.Second)),
		Generation: "login-" + f.config.Mark,
	}}}, nil
}

func (f *fakeAdapter) Classify(ctx context.Context, _ *providerv1.ClassifyRequest) (*providerv1.ClassifyResponse, error) {
	return &providerv1.ClassifyResponse{Outcome: providerv1.Outcome_OUTCOME_QUOTA_EXHAUSTED, Scope: providerv1.Scope_SCOPE_ACCOUNT,
		Reason: "usage_limit_reached", WindowId: "5h"}, f.act(ctx, "Classify")
}

func (f *fakeAdapter) Observe(ctx context.Context, req *providerv1.ObserveRequest) (*providerv1.ObserveResponse, error) {
	if err := f.act(ctx, "Observe"); err != nil {
		return nil, err
	}
	return &providerv1.ObserveResponse{Windows: fakeWindows(float64(len(req.GetResponseHeaders())))}, nil
}

func fakeWindows(used float64) []*providerv1.Window {
	return []*providerv1.Window{{WindowId: "5h", Kind: providerv1.WindowKind_WINDOW_KIND_ROLLING, LengthSeconds: 18000,
		UsedPercent: &used, State: providerv1.WindowState_WINDOW_STATE_OBSERVED, ResetsAt: timestamppb.New(time.Now().Add(time.Hour))}}
}

func (f *fakeAdapter) Unavailable(ctx context.Context, req *providerv1.UnavailableRequest) (*providerv1.UnavailableResponse, error) {
	return &providerv1.UnavailableResponse{Answer: &providerv1.Answer{Status: 429, Body: []byte(req.GetSentence())}}, f.act(ctx, "Unavailable")
}

func (f *fakeAdapter) ReadQuota(ctx context.Context, _ *providerv1.ReadQuotaRequest) (*providerv1.ReadQuotaResponse, error) {
	if err := f.act(ctx, "ReadQuota"); err != nil {
		return nil, err
	}
	return &providerv1.ReadQuotaResponse{Windows: fakeWindows(25), AuthState: providerv1.AuthState_AUTH_STATE_SIGNED_IN}, nil
}

// WatchQuota streams as fast as it can, for a stranger too, when it is told to; else there is no such stream.
func (f *fakeAdapter) WatchQuota(_ *providerv1.WatchQuotaRequest, stream grpc.ServerStreamingServer[providerv1.WatchQuotaResponse]) error {
	f.mu.Lock()
	action := f.actions["WatchQuota"]
	f.mu.Unlock()
	if action != actFlood {
		return status.Error(codes.Unimplemented, "no stream")
	}
	for n := 0; ; n++ {
		for _, account := range []string{"work", "stranger", "off"} {
			if err := stream.Send(&providerv1.WatchQuotaResponse{Account: account, Windows: fakeWindows(float64(n % 100))}); err != nil {
				return err
			}
		}
	}
}

func (f *fakeAdapter) CheckAuth(ctx context.Context, _ *providerv1.CheckAuthRequest) (*providerv1.CheckAuthResponse, error) {
	reason := "none"
	f.mu.Lock()
	huge := f.actions["CheckAuth"] == actHuge
	f.mu.Unlock()
	if huge {
		reason = strings.Repeat("x", 2*wire.MaxMessage)
	}
	return &providerv1.CheckAuthResponse{State: providerv1.AuthState_AUTH_STATE_SIGNED_IN, Method: "fake", Eligible: true, Reason: reason},
		f.act(ctx, "CheckAuth")
}
