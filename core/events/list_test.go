package events

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func record(l *List, n int) {
	for range n {
		l.Record(Event{Operation: OperationRequest})
	}
}

func sequences(events []Event) (out []uint64) {
	for _, e := range events {
		out = append(out, e.Sequence)
	}
	return out
}

func TestListHoldsTheNewest(t *testing.T) {
	l := NewList(3)
	record(l, 5)
	got := sequences(l.Recent(10, nil))
	if len(got) != 3 || got[0] != 3 || got[2] != 5 {
		t.Fatalf("held %v, want 3 4 5", got)
	}
	if got := sequences(l.Recent(1, nil)); len(got) != 1 || got[0] != 5 {
		t.Fatalf("newest one is %v, want 5", got)
	}
	odd := func(e Event) bool { return e.Sequence%2 == 1 }
	if got := sequences(l.Recent(10, odd)); len(got) != 2 || got[0] != 3 || got[1] != 5 {
		t.Fatalf("matching are %v, want 3 5", got)
	}
	if got := l.Recent(-1, nil); len(got) != 0 {
		t.Fatalf("a negative limit gave %d events", len(got))
	}
}

func TestFollowerSeesEveryEventInOrder(t *testing.T) {
	l := NewList(100)
	record(l, 2)
	f := l.Follow(1)
	record(l, 2)
	for want := uint64(2); want <= 4; want++ {
		event, missed, err := f.Next(t.Context())
		if err != nil || missed != 0 || event.Sequence != want {
			t.Fatalf("got event %d, missed %d, error %v; want event %d", event.Sequence, missed, err, want)
		}
	}
}

func TestSlowFollowerIsToldWhatItMissed(t *testing.T) {
	l := NewList(4)
	f := l.Follow(0)
	record(l, 10)
	event, missed, err := f.Next(t.Context())
	if err != nil || event.Sequence != 7 || missed != 6 {
		t.Fatalf("got event %d, missed %d, error %v; want event 7 after 6 missed", event.Sequence, missed, err)
	}
}

func TestFollowerOfAnEarlierProcessStartsAtTheOldest(t *testing.T) {
	l := NewList(4)
	record(l, 2)
	event, missed, err := l.Follow(900).Next(t.Context())
	if err != nil || event.Sequence != 1 || missed != 0 {
		t.Fatalf("got event %d, missed %d, error %v; want event 1", event.Sequence, missed, err)
	}
}

func TestFollowerStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := NewList(1).Follow(0).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v, want canceled", err)
	}
}

func TestWaitingFollowersAllWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const followers = 8
		l := NewList(50)
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		defer done.Wait()
		defer cancel()
		var awake atomic.Int64
		for range followers {
			done.Go(func() {
				f := l.Follow(0)
				for want := uint64(1); ; want++ {
					event, missed, err := f.Next(ctx)
					if err != nil {
						return
					}
					if missed != 0 || event.Sequence != want {
						t.Errorf("got event %d, missed %d; want event %d", event.Sequence, missed, want)
					}
					awake.Add(1)
				}
			})
		}
		for n := range int64(50) {
			synctest.Wait() // all wait for the next event
			record(l, 1)
			synctest.Wait()
			if got := awake.Swap(0); got != followers {
				t.Fatalf("event %d woke %d of %d followers", n+1, got, followers)
			}
		}
	})
}
