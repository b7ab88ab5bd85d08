package sdk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
)

// callLimit bounds a call for which the daemon set no deadline.
const callLimit = 30 * time.Second

// maxErrorText bounds the text of an adapter's error on its way to the daemon.
const maxErrorText = 512

// calls counts running calls of the adapter's services, refuses new ones while draining, and keeps panics and error
// texts inside the process.
type calls struct {
	logger hclog.Logger

	mu       sync.Mutex // guards running, ended, draining and refused
	running  int
	draining bool
	// ended is closed when no call runs any more.
	ended chan struct{}
	// refused is closed when draining begins; it ends streams, which would otherwise run on.
	refused chan struct{}
	// leaving is closed when the process is about to end; it ends go-plugin's own streams, which last as long as the
	// connection and would hold up a graceful stop.
	leaving chan struct{}
}

func newCalls(logger hclog.Logger) *calls {
	c := &calls{logger: logger, ended: make(chan struct{}), refused: make(chan struct{}), leaving: make(chan struct{})}
	close(c.ended)
	return c
}

func (c *calls) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	if !counted(info.FullMethod) {
		return handler(ctx, req)
	}
	if !c.enter() {
		return nil, status.Error(codes.Unavailable, "adapter is draining")
	}
	defer c.leave()
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callLimit)
		defer cancel()
	}
	defer func() {
		if value := recover(); value != nil {
			resp, err = nil, c.panicked(info.FullMethod, value)
		}
	}()
	resp, err = handler(ctx, req)
	if err != nil {
		c.logger.Debug("call failed", "rpc", info.FullMethod, "error", oneLine(err.Error()))
	}
	return resp, rpcError(err)
}

func (c *calls) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	if !counted(info.FullMethod) {
		return c.untilLeaving(srv, stream, handler)
	}
	if !c.enter() {
		return status.Error(codes.Unavailable, "adapter is draining")
	}
	defer c.leave()
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-c.refusals():
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel()
		<-watched
		if value := recover(); value != nil {
			err = c.panicked(info.FullMethod, value)
		}
	}()
	return rpcError(handler(srv, &boundStream{ServerStream: stream, ctx: ctx}))
}

// untilLeaving runs a stream of go-plugin. Some of them only wait for the other side, so the stream is ended over their
// heads; they return when they find it closed.
func (c *calls) untilLeaving(srv any, stream grpc.ServerStream, handler grpc.StreamHandler) error {
	done := make(chan error, 1)
	go func() { done <- handler(srv, stream) }()
	select {
	case err := <-done:
		return err
	case <-c.leaving:
		return status.Error(codes.Unavailable, "adapter ends")
	}
}

// boundStream is a stream whose context also ends with draining.
type boundStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *boundStream) Context() context.Context { return s.ctx }

// counted tells the services of adapters from those of go-plugin. A drain does not wait for itself, and Init is no work.
func counted(method string) bool {
	return strings.HasPrefix(method, "/noria.") &&
		method != pluginv1.Plugin_Drain_FullMethodName && method != pluginv1.Plugin_Init_FullMethodName
}

func (c *calls) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	if c.running == 0 {
		c.ended = make(chan struct{})
	}
	c.running++
	return true
}

func (c *calls) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if c.running == 0 {
		close(c.ended)
	}
}

// refuse lets no further call in.
func (c *calls) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.draining {
		c.draining = true
		close(c.refused)
	}
}

// admit lets calls in again.
func (c *calls) admit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		c.draining = false
		c.refused = make(chan struct{})
	}
}

func (c *calls) refusals() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}

// idle waits until no call runs or ctx ends.
func (c *calls) idle(ctx context.Context) {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

func (c *calls) wait(atMost time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	c.idle(ctx)
}

// panicked logs the class and the place of a panic. Its value and the stack can hold credentials.
func (c *calls) panicked(method string, value any) error {
	c.logger.Error("adapter panicked", "rpc", method, "class", fmt.Sprintf("%T", value), "at", panicPlace())
	return status.Error(codes.Internal, "adapter panicked")
}

// panicPlace is the innermost frame outside the runtime, below the panic.
func panicPlace() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	below := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if below && !inRuntime {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
		below = below || frame.Function == "runtime.gopanic"
		if !more {
			return "unknown"
		}
	}
}

// rpcError gives an adapter's error a gRPC code and a bounded text in one printable line.
func rpcError(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		return status.Error(s.Code(), oneLine(s.Message()))
	}
	var refusal *RefusalError
	switch {
	case errors.As(err, &refusal):
		return status.Error(codes.FailedPrecondition, oneLine(refusal.Reason))
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, "adapter ran out of time")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "call was cancelled")
	}
	return status.Error(codes.Unknown, oneLine(err.Error()))
}

func oneLine(text string) string {
	var line strings.Builder
	for _, r := range text {
		if !unicode.IsPrint(r) {
			r = ' '
		}
		if line.Len() >= maxErrorText {
			break
		}
		line.WriteRune(r)
	}
	return line.String()
}
