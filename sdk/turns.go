package sdk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ClientTurns lets one official client per login run at a time: two of them can spend the same refresh token. A login is
// named by the directory that holds it, and turns are kept between processes too, by a lock on that directory which
// writes nothing: while a daemon swaps an adapter for a new one, both run. What is no directory, or lies on a file system
// without locks, is kept within this process. The zero value is ready; it is safe for concurrent use.
type ClientTurns struct {
	mu      sync.Mutex // guards turns
	turns   map[string]chan struct{}
	running sync.WaitGroup
}

// Do waits for the login's turn and runs work. When ctx ends first, Do returns its error; work that has begun goes on to
// its own end, because a client that is killed while it refreshes a login can lose it. The context that work gets does
// not end with ctx. A panic of work is an error that tells its class and its place.
func (t *ClientTurns) Do(ctx context.Context, login string, work func(context.Context)) error {
	turn := t.turn(login)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	unlock, err := lockLogin(ctx, login)
	if err != nil {
		<-turn
		return err
	}
	done := make(chan error, 1)
	t.running.Go(func() {
		defer func() { <-turn }()
		defer unlock()
		done <- guarded(context.WithoutCancel(ctx), work)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// loginPoll is how often a login that another process uses is looked at.
const loginPoll = 50 * time.Millisecond

// lockLogin waits until no other process has the login. The kernel lets go of it with the process, however that ends.
func lockLogin(ctx context.Context, directory string) (unlock func(), err error) {
	fd, err := unix.Open(directory, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}, nil
	}
	unlock = func() { _ = unix.Close(fd) }
	for errors.Is(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		select {
		case <-time.After(loginPoll):
		case <-ctx.Done():
			unlock()
			return nil, ctx.Err()
		}
	}
	return unlock, nil
}

func guarded(ctx context.Context, work func(context.Context)) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("work with the official client: panic of class %T at %s", value, panicPlace())
		}
	}()
	work(ctx)
	return nil
}

// Wait returns when nothing runs any more or ctx has ended. No Do may begin meanwhile.
func (t *ClientTurns) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *ClientTurns) turn(login string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn, ok := t.turns[login]
	if !ok {
		if t.turns == nil {
			t.turns = map[string]chan struct{}{}
		}
		turn = make(chan struct{}, 1)
		t.turns[login] = turn
	}
	return turn
}
