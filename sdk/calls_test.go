package sdk

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestEveryDrainEndsWithTheLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCalls(hclog.NewNullLogger())
		for range 2 {
			if !c.enter() {
				t.Fatal("a call was refused before draining")
			}
		}
		c.refuse()
		if c.enter() {
			t.Error("a call was let in while draining")
		}
		started := time.Now()
		waited := make(chan time.Duration)
		for range 2 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c.idle(ctx)
				waited <- time.Since(started)
			}()
		}
		time.Sleep(time.Second)
		c.leave()
		time.Sleep(time.Second)
		c.leave()
		for range 2 {
			if took := <-waited; took != 2*time.Second {
				t.Errorf("a drain waited %v for calls that ended after 2s", took)
			}
		}
	})
}

func TestADrainWithoutCallsDoesNotWait(t *testing.T) {
	c := newCalls(hclog.NewNullLogger())
	c.idle(t.Context())
	c.enter()
	c.leave()
	c.idle(t.Context())
}
