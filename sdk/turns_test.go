package sdk

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestOneClientPerLoginRunsAtATime(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var turns ClientTurns
	var mu sync.Mutex
	running, most := 0, 0
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			_ = turns.Do(context.Background(), "home", func(context.Context) {
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				running--
				mu.Unlock()
			})
		})
	}
	callers.Wait()
	if most != 1 {
		t.Errorf("%d clients of one login ran at a time", most)
	}
}

// Two of them are as two processes to the lock: it belongs to the open directory.
func TestOneClientPerLoginRunsAtATimeInAllProcesses(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var one, other ClientTurns
	home := t.TempDir()
	begun, finish := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		if err := one.Do(t.Context(), home, func(context.Context) { close(begun); <-finish }); err != nil {
			t.Errorf("first: %v", err)
		}
	})
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 3*loginPoll)
	defer cancel()
	if err := other.Do(ctx, home, func(context.Context) { t.Error("ran beside a client of another process") }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("out of turn: %v", err)
	}
	if err := other.Do(t.Context(), t.TempDir(), func(context.Context) {}); err != nil {
		t.Errorf("another login: %v", err)
	}
	close(finish)
	if err := other.Do(t.Context(), home, func(context.Context) {}); err != nil {
		t.Errorf("in turn: %v", err)
	}
	first.Wait()
}

func TestWorkThatBeganOutlivesItsCaller(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var turns ClientTurns
	ctx, cancel := context.WithCancel(t.Context())
	finish, finished := make(chan struct{}), make(chan error, 1)
	err := turns.Do(ctx, "home", func(ctx context.Context) {
		cancel()
		<-finish
		finished <- ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Do = %v, want a cancelled context", err)
	}
	if err := turns.Do(ctx, "home", func(context.Context) { t.Error("ran beside another client") }); !errors.Is(err, context.Canceled) {
		t.Errorf("Do out of turn = %v", err)
	}
	if err := turns.Do(t.Context(), "other", func(context.Context) {}); err != nil {
		t.Errorf("Do of another login = %v", err)
	}
	close(finish)
	if err := turns.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-finished; err != nil {
		t.Errorf("the context of work ended with its caller: %v", err)
	}
}

func TestAPanicOfWorkIsAnErrorThatTellsNothingOfItsValue(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var turns ClientTurns
	err := turns.Do(t.Context(), "home", func(context.Context) { panic(errors.New("CANARY")) })
	if err == nil || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "turns_test.go:") {
		t.Errorf("Do = %v", err)
	}
	if err := turns.Do(t.Context(), "home", func(context.Context) {}); err != nil {
		t.Errorf("Do after a panic = %v", err)
	}
}
