package sdk

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// providerServer translates between the Provider service and the author's Adapter.
type providerServer struct {
	providerv1.UnimplementedProviderServer
	host *adapterServer
}

func (p *providerServer) Profile(context.Context, *providerv1.ProfileRequest) (*providerv1.ProfileResponse, error) {
	now, err := p.host.applied()
	if err != nil {
		return nil, err
	}
	declared := p.host.descriptor.Profile
	profile := profileProto(declared)
	declarer, varies := p.host.adapter.(WindowDeclarer)
	for _, account := range now.config.Accounts {
		windows, unmetered := declared.Windows, false
		if varies {
			windows, unmetered = declarer.Windows(account)
		}
		profile.Accounts = append(profile.Accounts, &providerv1.AccountProfile{
			Account: account.Name, Windows: declarationsProto(windows), Unmetered: unmetered})
	}
	return &providerv1.ProfileResponse{Profile: profile}, nil
}

func (p *providerServer) Lease(ctx context.Context, req *providerv1.LeaseRequest) (*providerv1.LeaseResponse, error) {
	account, err := p.host.account(req.GetAccount())
	if err != nil {
		return nil, err
	}
	lease, err := p.host.adapter.Lease(ctx, account, LeaseRequest{Refresh: req.GetRefresh(), RefusedGeneration: req.GetRefusedGeneration()})
	var refused *RefusalError
	if errors.As(err, &refused) {
		return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Refusal{
			Refusal: &providerv1.Refusal{Code: refused.Code, Reason: oneLine(refused.Reason)}}}, nil
	}
	if err != nil {
		return nil, err
	}
	return &providerv1.LeaseResponse{Result: &providerv1.LeaseResponse_Lease{Lease: leaseProto(lease)}}, nil
}

func (p *providerServer) Classify(ctx context.Context, req *providerv1.ClassifyRequest) (*providerv1.ClassifyResponse, error) {
	account, err := p.host.account(req.GetAccount())
	if err != nil {
		return nil, err
	}
	resp := responseFromProto(req)
	verdict, err := p.host.adapter.Classify(ctx, account, resp)
	if err != nil {
		return nil, err
	}
	source := SourceResponseHeader
	if verdict.Outcome == OutcomeQuotaExhausted {
		source = SourceRejection
	}
	return &providerv1.ClassifyResponse{
		Outcome:      verdict.Outcome,
		Scope:        verdict.Scope,
		Model:        verdict.Model,
		Reason:       verdict.Reason,
		ClearsAt:     timeProto(verdict.ClearsAt),
		RetryAfterMs: verdict.RetryAfter.Milliseconds(),
		WindowId:     verdict.WindowID,
		Windows:      windowsProto(verdict.Windows, source, resp.ObservedAt),
	}, nil
}

func (p *providerServer) Observe(ctx context.Context, req *providerv1.ObserveRequest) (*providerv1.ObserveResponse, error) {
	account, err := p.host.account(req.GetAccount())
	if err != nil {
		return nil, err
	}
	obs := observationFromProto(req)
	windows, err := p.host.adapter.Observe(ctx, account, obs)
	if err != nil {
		return nil, err
	}
	return &providerv1.ObserveResponse{Windows: windowsProto(windows, SourceResponseHeader, obs.ObservedAt)}, nil
}

func (p *providerServer) Unavailable(ctx context.Context, req *providerv1.UnavailableRequest) (*providerv1.UnavailableResponse, error) {
	shaper, ok := p.host.adapter.(Unavailabler)
	if !ok {
		return nil, status.Error(codes.Unimplemented, "the profile's templates answer")
	}
	answer, err := shaper.Unavailable(ctx, unavailabilityFromProto(req))
	if err != nil {
		return nil, err
	}
	return &providerv1.UnavailableResponse{Answer: answerProto(answer)}, nil
}

// optionalServer translates the optional services. A service is registered when the adapter has at least one of its
// interfaces; a method without its interface is unimplemented.
type optionalServer struct {
	providerv1.UnimplementedQuotaServer
	providerv1.UnimplementedAuthServer
	providerv1.UnimplementedCatalogServer
	providerv1.UnimplementedLaunchServer
	providerv1.UnimplementedSignerServer
	host *adapterServer
}

// offered finds the optional interface of a method.
func offered[T any](o *optionalServer) (T, error) {
	impl, ok := o.host.adapter.(T)
	if !ok {
		return impl, status.Error(codes.Unimplemented, "adapter does not offer this")
	}
	return impl, nil
}

// offeredFor also finds the account.
func offeredFor[T any](o *optionalServer, name string) (impl T, account Account, err error) {
	if impl, err = offered[T](o); err != nil {
		return impl, account, err
	}
	account, err = o.host.account(name)
	return impl, account, err
}

func (o *optionalServer) ReadQuota(ctx context.Context, req *providerv1.ReadQuotaRequest) (*providerv1.ReadQuotaResponse, error) {
	reader, account, err := offeredFor[QuotaReader](o, req.GetAccount())
	if err != nil {
		return nil, err
	}
	asked := time.Now()
	reading, err := reader.ReadQuota(ctx, account)
	if err != nil {
		return nil, err
	}
	return &providerv1.ReadQuotaResponse{
		Windows: windowsProto(reading.Windows, SourceOfficialClient, asked), AuthState: reading.Auth}, nil
}

func (o *optionalServer) WatchQuota(_ *providerv1.WatchQuotaRequest, stream providerv1.Quota_WatchQuotaServer) error {
	watcher, err := offered[QuotaWatcher](o)
	if err != nil {
		return err
	}
	return watcher.WatchQuota(stream.Context(), func(account string, reading QuotaReading) error {
		return stream.Send(&providerv1.WatchQuotaResponse{Account: account,
			Windows: windowsProto(reading.Windows, SourceOfficialClient, time.Now()), AuthState: reading.Auth})
	})
}

func (o *optionalServer) CheckAuth(ctx context.Context, req *providerv1.CheckAuthRequest) (*providerv1.CheckAuthResponse, error) {
	checker, account, err := offeredFor[AuthChecker](o, req.GetAccount())
	if err != nil {
		return nil, err
	}
	found, err := checker.CheckAuth(ctx, account)
	if err != nil {
		return nil, err
	}
	return &providerv1.CheckAuthResponse{State: found.State, Method: found.Method, Eligible: found.Eligible, Reason: oneLine(found.Reason)}, nil
}

func (o *optionalServer) LoginCommand(ctx context.Context, req *providerv1.LoginCommandRequest) (*providerv1.LoginCommandResponse, error) {
	commander, account, err := offeredFor[LoginCommander](o, req.GetAccount())
	if err != nil {
		return nil, err
	}
	command, err := commander.LoginCommand(ctx, account)
	if err != nil {
		return nil, err
	}
	return &providerv1.LoginCommandResponse{Command: commandProto(command)}, nil
}

func (o *optionalServer) ListModels(ctx context.Context, req *providerv1.ListModelsRequest) (*providerv1.ListModelsResponse, error) {
	lister, account, err := offeredFor[ModelLister](o, req.GetAccount())
	if err != nil {
		return nil, err
	}
	catalog, err := lister.ListModels(ctx, account)
	if err != nil {
		return nil, err
	}
	return catalogProto(catalog), nil
}

func (o *optionalServer) LaunchFlags(context.Context, *providerv1.LaunchFlagsRequest) (*providerv1.LaunchFlagsResponse, error) {
	launcher, err := offered[Launcher](o)
	if err != nil {
		return nil, err
	}
	return &providerv1.LaunchFlagsResponse{Flags: launcher.LaunchFlags()}, nil
}

func (o *optionalServer) LaunchCommand(ctx context.Context, req *providerv1.LaunchCommandRequest) (*providerv1.LaunchCommandResponse, error) {
	launcher, err := offered[Launcher](o)
	if err != nil {
		return nil, err
	}
	launch := LaunchRequest{Native: req.GetNative(), Statusline: req.GetStatusline()}
	for _, seen := range req.GetSeen() {
		launch.Seen = append(launch.Seen, FlagValue{Flag: seen.GetFlag(), Value: seen.GetValue()})
	}
	command, err := launcher.LaunchCommand(ctx, launch)
	if err != nil {
		return nil, err
	}
	return &providerv1.LaunchCommandResponse{Command: commandProto(command)}, nil
}

func (o *optionalServer) SignRequest(ctx context.Context, req *providerv1.SignRequestRequest) (*providerv1.SignRequestResponse, error) {
	signer, account, err := offeredFor[Signer](o, req.GetAccount())
	if err != nil {
		return nil, err
	}
	sign := SignRequest{Method: req.GetMethod(), Path: req.GetPath()}
	if len(req.GetBodySha256()) != len(sign.BodySHA256) {
		return nil, status.Error(codes.InvalidArgument, "body digest is not 32 bytes")
	}
	copy(sign.BodySHA256[:], req.GetBodySha256())
	header, err := signer.SignRequest(ctx, account, sign)
	if err != nil {
		return nil, err
	}
	return &providerv1.SignRequestResponse{Set: headerProto(header)}, nil
}
