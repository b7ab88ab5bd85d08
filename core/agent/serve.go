package agent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/events"
	"github.com/noria-dev/noria/core/internal/calls"
	"github.com/noria-dev/noria/core/plugin"
)

const (
	// tickTime is how often state looks at its clocks; what it decides is compared with the wall clock, so a machine that
	// slept loses nothing.
	tickTime       = time.Second
	httpHeaderTime = 5 * time.Second
	httpCloseTime  = time.Second
)

// serveControl serves the control API until ctx ends. When it returns, no call runs.
func (a *Agent) serveControl(ctx context.Context) error {
	server := api.NewServer(&daemon{a}, a.recorder.metrics.Handler(), a.log.Named("api"))
	return untilClosed(ctx, func() error { return server.Serve(a.control) }, func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpCloseTime)
		defer cancel()
		_ = server.Close(closing)
	})
}

// untilClosed serves until ctx ends or serve fails, and returns when what it served is closed.
func untilClosed(ctx context.Context, serve func() error, shut func()) error {
	ctx, end := context.WithCancel(ctx)
	var closing sync.WaitGroup
	closing.Go(func() {
		<-ctx.Done()
		shut()
	})
	defer closing.Wait()
	defer end()
	return serve()
}

// serveMetrics serves the metrics on the listener of their own, if there is one, and on the next when a reload replaces it.
func (a *Agent) serveMetrics(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.recorder.metrics.Handler())
	for listener := a.metrics; ; {
		serving, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- serveUntil(serving, listener, mux) }()
		select {
		case err := <-ended:
			stop()
			return err
		case next := <-a.nextMetrics:
			stop()
			if err := <-ended; err != nil {
				return err
			}
			listener = next
		}
	}
}

// serveUntil serves l until ctx ends and closes it. Without a listener it waits. When it returns, no call runs.
func serveUntil(ctx context.Context, l net.Listener, handler http.Handler) error {
	if l == nil {
		<-ctx.Done()
		return nil
	}
	var running calls.Running
	server := &http.Server{
		Handler: running.Handler(handler), ReadHeaderTimeout: httpHeaderTime,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	err := untilClosed(ctx, func() error { return server.Serve(l) }, func() {
		_ = server.Close()
		running.Close()
	})
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// tick lets state see the time pass until ctx ends.
func (a *Agent) tick(ctx context.Context) {
	held := false
	every(ctx, tickTime, func() { held = a.tickOnce(held) })
}

// every calls do once in each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// tickOnce says when the wall clock is not believed any more, and when it is again.
func (a *Agent) tickOnce(wasHeld bool) (held bool) {
	now := a.clock.Now()
	if err := a.store.Tick(now); err != nil {
		a.log.Error("state cannot take note of the time", "error", err)
	}
	switch held = a.store.Stats().ClockHeld; {
	case held && !wasHeld:
		a.log.Warn("the wall clock leapt out of reach: no quota resets until it is right again, or has run on for ten minutes", "says", now)
	case wasHeld && !held:
		a.log.Info("the wall clock is believed again", "says", now)
	}
	return held
}

// reloadOnSignal reloads at every signal until ctx ends.
func (a *Agent) reloadOnSignal(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.options.Reload:
			result, err := a.reload(ctx)
			switch {
			case err != nil:
				a.log.Error("reload failed; the last good configuration stays", "error", err)
			case !result.Applied:
				a.log.Error("reload refused; the last good configuration stays", "error", result.Diagnostics.Err())
			}
		}
	}
}

// startAdapters starts the adapters while requests are accepted already: what needs no new lease is served meanwhile.
func (a *Agent) startAdapters(ctx context.Context) {
	if a.reloading.take(ctx) != nil {
		return
	}
	defer a.reloading.give()
	setup := a.setup.Load()
	for _, result := range a.host.Apply(ctx, setup.Specs) {
		if result.Err != nil {
			a.logNotReady(setup, result)
		}
	}
	a.recorder.add(events.Event{At: a.clock.Now(), Component: events.ComponentAgent, Operation: events.OperationReady})
}

// logNotReady tells why an adapter does not serve; of a configuration that it refused, what is wrong at which line.
func (a *Agent) logNotReady(setup *Setup, result plugin.Result) {
	about := []any{"plugin", result.Name, "error", result.Err}
	var failure *plugin.Failure
	if errors.As(result.Err, &failure) {
		about = append(about, "do", PluginRemedy(result.Name, string(failure.Reason)))
		if found := placed(setup.File, setup.providerOf(result.Name), failure.Diagnostics); len(found) > 0 {
			about = append(about, "findings", inFull(found))
		}
	}
	a.log.Error("adapter is not ready", about...)
}

// demonstrate tells what to try and lets sessions arrive by themselves until ctx ends.
func (a *Agent) demonstrate(ctx context.Context) error {
	executable, err := os.Executable()
	if err != nil {
		executable = "noria"
	}
	greetDev(a.options.Stdout, executable, a.options.ConfigPath, a.baseURL())
	devTraffic(ctx, a.baseURL(), a.keys.Client, a.log.Named("dev"))
	return nil
}
