package plugintest

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func (s *suite) hostileTime() *timestamppb.Timestamp {
	return timestamppb.New(s.fixtures.at(time.Time{}))
}

// Load of the checks at the same time: callers, and calls of each.
const (
	callers = 8
	rounds  = 10
)

func (s *suite) checkConcurrent(ctx context.Context, f *findings) {
	s.load(ctx, f, "keep what a call needs in the call, and guard what calls share")
}

// load classifies all cases from several callers and compares with what one caller gets.
func (s *suite) load(ctx context.Context, f *findings, fix string) {
	type exchange struct {
		req  *providerv1.ClassifyRequest
		want *providerv1.ClassifyResponse
	}
	var exchanges []exchange
	for _, c := range s.fixtures.Outcomes {
		req, _ := s.evidence(c)
		want, err := s.classify(ctx, req)
		if err != nil {
			f.add(fix, "case %q, alone: Classify: %v", c.Name, err)
			return
		}
		exchanges = append(exchanges, exchange{req, want})
	}
	var mu sync.Mutex // guards f
	add := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		f.add(fix, format, args...)
	}
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range rounds {
				for _, e := range exchanges {
					ctx, cancel := context.WithTimeout(ctx, otherTime)
					got, err := s.provider.Classify(ctx, e.req)
					cancel()
					if err != nil {
						add("Classify: %v", err)
					} else if !proto.Equal(withoutTimes(got), withoutTimes(e.want)) {
						add("Classify answers otherwise than when it is called alone")
					}
				}
			}
		})
	}
	running.Wait()
}

func (s *suite) checkReconfigure(ctx context.Context, f *findings) {
	const fix = "replace the configuration at once; calls that run go on with the one that they began with"
	stop := make(chan struct{})
	var configuring sync.WaitGroup
	var refused []string
	configuring.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(ctx, otherTime)
			resp, err := s.plugin.Configure(ctx, &pluginv1.ConfigureRequest{Generation: s.generation.Add(1), Config: s.config})
			cancel()
			if err != nil || len(errorsOf(resp.GetDiagnostics())) > 0 {
				refused = append(refused, "Configure is refused while calls run")
				return
			}
		}
	})
	s.load(ctx, f, fix)
	close(stop)
	configuring.Wait()
	for _, what := range refused {
		f.add(fix, "%s", what)
	}
}

func (s *suite) checkGivenUp(ctx context.Context, f *findings) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for range callers {
		_, _ = s.provider.Lease(gone, &providerv1.LeaseRequest{Account: s.fixtures.leased()})
	}
	var giving sync.WaitGroup
	for i := range callers {
		giving.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, time.Duration(i)*time.Millisecond)
			defer cancel()
			_, _ = s.provider.Lease(ctx, &providerv1.LeaseRequest{Account: s.fixtures.leased()})
		})
	}
	giving.Wait()
	const fix = "end a call's work when its context ends, and free what it held"
	if s.fixtures.leased() != "" {
		s.lease(ctx, s.fixtures.leased(), &providerv1.LeaseRequest{Account: s.fixtures.leased()}, f)
	}
	ctx, done := context.WithTimeout(ctx, otherTime)
	defer done()
	if _, err := s.plugin.Describe(ctx, &pluginv1.DescribeRequest{}); err != nil {
		f.add(fix, "after calls that were given up, Describe: %v", err)
	}
}

// checkOptional calls what the adapter says that it offers.
func (s *suite) checkOptional(ctx context.Context, f *findings) {
	conn := s.running.conn
	account := s.fixtures.leased()
	call := func(name string, limit time.Duration, run func(context.Context) error) bool {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := run(ctx)
		switch {
		case status.Code(err) == codes.DeadlineExceeded:
			f.add("end within the deadline, with an error if need be", "%s did not answer within %s", name, limit)
		case isPanic(err):
			f.add(fixPanic, "%s: %v", name, err)
		}
		return err == nil
	}
	for _, service := range s.described.GetServices() {
		switch _, name, _ := strings.Cut(service, "noria.provider.v1."); name {
		case "Quota":
			call("ReadQuota", readQuotaTime, func(ctx context.Context) error {
				asked := time.Now()
				resp, err := providerv1.NewQuotaClient(conn).ReadQuota(ctx, &providerv1.ReadQuotaRequest{Account: account})
				checkWindows("ReadQuota", resp.GetWindows(), asked, f)
				return err
			})
		case "Auth":
			client := providerv1.NewAuthClient(conn)
			call("CheckAuth", otherTime, func(ctx context.Context) error {
				resp, err := client.CheckAuth(ctx, &providerv1.CheckAuthRequest{Account: account})
				if err == nil && !resp.GetEligible() && resp.GetReason() == "" {
					f.add("say in one sentence why not", "CheckAuth: not eligible, without a reason")
				}
				return err
			})
			call("LoginCommand", otherTime, func(ctx context.Context) error {
				resp, err := client.LoginCommand(ctx, &providerv1.LoginCommandRequest{Account: account})
				s.checkCommand("LoginCommand", resp.GetCommand(), err, f)
				return err
			})
		case "Catalog":
			call("ListModels", readQuotaTime, func(ctx context.Context) error {
				_, err := providerv1.NewCatalogClient(conn).ListModels(ctx, &providerv1.ListModelsRequest{Account: account})
				return err
			})
		case "Launch":
			client := providerv1.NewLaunchClient(conn)
			call("LaunchFlags", otherTime, func(ctx context.Context) error {
				_, err := client.LaunchFlags(ctx, &providerv1.LaunchFlagsRequest{})
				return err
			})
			call("LaunchCommand", otherTime, func(ctx context.Context) error {
				resp, err := client.LaunchCommand(ctx, &providerv1.LaunchCommandRequest{Statusline: []string{"noria", "statusline"}})
				s.checkCommand("LaunchCommand", resp.GetCommand(), err, f)
				s.checkLaunch(resp.GetCommand(), err, f)
				return err
			})
		case "Signer":
			call("SignRequest", classifyTime, func(ctx context.Context) error {
				_, err := providerv1.NewSignerClient(conn).SignRequest(ctx, &providerv1.SignRequestRequest{Account: account,
					Method: "POST", Path: "/", BodySha256: make([]byte, 32)})
				return err
			})
		}
	}
	s.checkUnavailable(ctx, f)
}

func (s *suite) checkCommand(name string, c *providerv1.OfficialCommand, err error, f *findings) {
	if err != nil || status.Code(err) == codes.Unimplemented {
		return
	}
	if len(c.GetArgv()) == 0 || c.GetArgv()[0] == "" {
		f.add("name the official client", "%s gives no command", name)
	}
	for _, argument := range c.GetArgv() {
		if strings.Contains(argument, "{{key}}") {
			f.add("pass the key by the environment: a command line can be read by others", "%s puts the key into the command line", name)
		}
	}
}

func (s *suite) checkLaunch(c *providerv1.OfficialCommand, err error, f *findings) {
	if err != nil {
		return
	}
	places := 0
	for _, argument := range c.GetArgv() {
		if argument == "{{args}}" {
			places++
		}
	}
	if places != 1 {
		f.add("put one element {{args}} where the user's own arguments go", "LaunchCommand has %d places for the user's arguments", places)
	}
}

// checkUnavailable asks for every cause, alone and beside a spent quota, and for every kind of forecast.
func (s *suite) checkUnavailable(ctx context.Context, f *findings) {
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	for number := range providerv1.Cause_name {
		cause := providerv1.Cause(number)
		alone := map[providerv1.Cause]int32{cause: 1}
		mixed := map[providerv1.Cause]int32{cause: 1, providerv1.Cause_CAUSE_QUOTA: 2}
		for kind := range providerv1.ForecastKind_name {
			forecast := providerv1.ForecastKind(kind)
			if !s.checkUnavailableFor(ctx, alone, forecast, f) || !s.checkUnavailableFor(ctx, mixed, forecast, f) {
				return
			}
		}
	}
}

// checkUnavailableFor reports whether it is worth asking again.
func (s *suite) checkUnavailableFor(ctx context.Context, causes map[providerv1.Cause]int32, kind providerv1.ForecastKind, f *findings) bool {
	now := s.fixtures.at(time.Time{})
	req := &providerv1.UnavailableRequest{RequestId: "r1", Route: providerv1.RouteKind_ROUTE_KIND_TURN,
		ForecastAt: timestamppb.New(now.Add(time.Hour)), ForecastKind: kind, Sentence: "No account can serve.", Now: timestamppb.New(now)}
	for cause, accounts := range causes {
		req.Causes = append(req.Causes, &providerv1.CauseCount{Cause: cause, Accounts: accounts})
	}
	resp, err := s.provider.Unavailable(ctx, req)
	if status.Code(err) == codes.Unimplemented {
		return false
	}
	if err != nil {
		f.add("answer, or leave it unimplemented: then the profile's templates do", "Unavailable: %v", err)
		return false
	}
	if code := resp.GetAnswer().GetStatus(); code < 400 || code > 599 || len(resp.GetAnswer().GetBody()) == 0 {
		f.add("give the refusal in the client's own shape", "Unavailable for %v answers with the status %d and %d bytes", causes, code, len(resp.GetAnswer().GetBody()))
	}
	return true
}

func (s *suite) checkDrain(ctx context.Context, f *findings) {
	ctx, cancel := context.WithTimeout(ctx, otherTime)
	defer cancel()
	if _, err := s.plugin.Drain(ctx, &pluginv1.DrainRequest{DeadlineMs: 2000}); err != nil {
		f.add("return from Drain when running calls have ended", "Drain: %v", err)
	}
	if _, err := s.provider.Lease(ctx, &providerv1.LeaseRequest{Account: s.fixtures.leased()}); err == nil {
		f.add("refuse new work after Drain, with the code UNAVAILABLE", "Lease answered after Drain")
	}
}

func (s *suite) checkEnd(ctx context.Context, f *findings) {
	if s.running.cmd.Process != nil {
		_ = syscall.Kill(-s.running.cmd.Process.Pid, syscall.SIGTERM)
	}
	if !s.running.exits(endTime) {
		f.add("end on SIGTERM once running calls have", "it still runs %s after SIGTERM", endTime)
	}
	second, err := s.start(ctx)
	if err != nil {
		f.add("be ready to start again", "a second start: %v", err)
		return
	}
	defer second.kill()
	_ = second.stdin.Close()
	if !second.exits(endTime) {
		f.add("read standard input when NORIA_PLUGIN_STDIN is 1, and end when it does", "it outlives its daemon by more than %s", endTime)
	}
}
