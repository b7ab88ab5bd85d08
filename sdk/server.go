package sdk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

// adapterServer serves one adapter: the Plugin service itself, the others through providerServer and optionalServer.
type adapterServer struct {
	plugin.NetRPCUnsupportedPlugin
	pluginv1.UnimplementedPluginServer
	description

	adapter Adapter
	calls   *calls
	logger  hclog.Logger
	// debug: the process outlives the daemon that attached to it.
	debug bool
	// grpc is set when the server is made.
	grpc *grpc.Server

	configuring sync.Mutex // one Configure at a time
	// current is the applied configuration; nil before the first.
	current atomic.Pointer[configured]
}

// configured is one applied configuration. It is never changed, only replaced.
type configured struct {
	config   Config
	accounts map[string]Account
}

func newAdapterServer(adapter Adapter, debug bool, logger hclog.Logger) (*adapterServer, error) {
	d, err := describe(adapter)
	if err != nil {
		return nil, err
	}
	return &adapterServer{description: d, adapter: adapter, calls: newCalls(logger), debug: debug, logger: logger}, nil
}

// GRPCServer registers what the adapter offers; go-plugin calls it.
func (s *adapterServer) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	pluginv1.RegisterPluginServer(server, s)
	providerv1.RegisterProviderServer(server, &providerServer{host: s})
	optional := &optionalServer{host: s}
	for _, name := range s.services {
		switch name {
		case wire.ServiceQuota:
			providerv1.RegisterQuotaServer(server, optional)
		case wire.ServiceAuth:
			providerv1.RegisterAuthServer(server, optional)
		case wire.ServiceCatalog:
			providerv1.RegisterCatalogServer(server, optional)
		case wire.ServiceLaunch:
			providerv1.RegisterLaunchServer(server, optional)
		case wire.ServiceSigner:
			providerv1.RegisterSignerServer(server, optional)
		}
	}
	return nil
}

// GRPCClient is the other side's business.
func (s *adapterServer) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, status.Error(codes.Unimplemented, "an adapter is no client")
}

func (s *adapterServer) Describe(context.Context, *pluginv1.DescribeRequest) (*pluginv1.DescribeResponse, error) {
	return s.proto(), nil
}

// Init is every daemon's first call. In a debugger it may be the next daemon's, to which the drain and the
// configurations of the one before mean nothing.
func (s *adapterServer) Init(context.Context, *pluginv1.InitRequest) (*pluginv1.InitResponse, error) {
	if s.debug {
		s.configuring.Lock()
		defer s.configuring.Unlock()
		s.current.Store(nil)
		s.calls.admit()
	}
	return &pluginv1.InitResponse{PluginServices: s.services}, nil
}

func (s *adapterServer) ValidateConfig(ctx context.Context, req *pluginv1.ValidateConfigRequest) (*pluginv1.ValidateConfigResponse, error) {
	found := s.validate(ctx, configFromProto(0, req.GetConfig()))
	return &pluginv1.ValidateConfigResponse{Diagnostics: diagnosticsProto(found)}, nil
}

// Configure applies a configuration as a whole or not at all. Calls that run keep the account they began with.
func (s *adapterServer) Configure(ctx context.Context, req *pluginv1.ConfigureRequest) (*pluginv1.ConfigureResponse, error) {
	s.configuring.Lock()
	defer s.configuring.Unlock()
	if now := s.current.Load(); now != nil && req.GetGeneration() < now.config.Generation {
		return nil, status.Errorf(codes.FailedPrecondition, "configuration %d came after %d", req.GetGeneration(), now.config.Generation)
	}
	config := configFromProto(req.GetGeneration(), req.GetConfig())
	found := s.validate(ctx, config)
	if configurer, ok := s.adapter.(Configurer); ok && !hasError(found) {
		if err := configurer.Configure(ctx, config); err != nil {
			found = append(found, Diagnostic{Severity: SeverityError, Summary: "Adapter refused the configuration", Detail: err.Error()})
		}
	}
	if !hasError(found) {
		next := &configured{config: config, accounts: map[string]Account{}}
		for _, account := range config.Accounts {
			next.accounts[account.Name] = account
		}
		s.current.Store(next)
	}
	return &pluginv1.ConfigureResponse{Diagnostics: diagnosticsProto(found)}, nil
}

func (s *adapterServer) Drain(ctx context.Context, req *pluginv1.DrainRequest) (*pluginv1.DrainResponse, error) {
	if limit := time.Duration(req.GetDeadlineMs()) * time.Millisecond; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	s.drain(ctx)
	return &pluginv1.DrainResponse{}, nil
}

// drain refuses new calls, tells the adapter, and returns when running calls ended or ctx did.
func (s *adapterServer) drain(ctx context.Context) {
	s.calls.refuse()
	s.tellDrain(ctx)
	s.calls.idle(ctx)
}

// tellDrain does not wait longer than ctx for an adapter that does not look at it.
func (s *adapterServer) tellDrain(ctx context.Context) {
	drainer, ok := s.adapter.(Drainer)
	if !ok {
		return
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		defer func() {
			if value := recover(); value != nil {
				_ = s.calls.panicked("drain", value)
			}
		}()
		if err := drainer.Drain(ctx); err != nil {
			s.logger.Warn("drain adapter", "error", oneLine(err.Error()))
		}
	}()
	select {
	case <-told:
	case <-ctx.Done():
	}
}

// applied gives the current configuration.
func (s *adapterServer) applied() (*configured, error) {
	if now := s.current.Load(); now != nil {
		return now, nil
	}
	return nil, status.Error(codes.FailedPrecondition, "adapter is not configured")
}

// account finds an account of the current configuration.
func (s *adapterServer) account(name string) (Account, error) {
	now, err := s.applied()
	if err != nil {
		return Account{}, err
	}
	account, ok := now.accounts[name]
	if !ok {
		return Account{}, status.Error(codes.NotFound, "account is not configured")
	}
	return account, nil
}

func configFromProto(generation uint64, p *pluginv1.Config) Config {
	config := Config{Generation: generation, provider: p.GetProviderJson()}
	for _, a := range p.GetAccounts() {
		config.Accounts = append(config.Accounts, Account{
			Name:    a.GetName(),
			Enabled: a.GetEnabled(),
			Models:  a.GetModels(),
			Credential: Credential{
				Value:   a.GetCredential().GetValue(),
				File:    a.GetCredential().GetFile(),
				Command: a.GetCredential().GetCommand().GetArgv(),
			},
			config:   a.GetConfigJson(),
			provider: p.GetProviderJson(),
		})
	}
	return config
}
