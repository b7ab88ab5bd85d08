package agent

import "context"

// turn is had by one at a time. Who waits for it can give up, so it may be held for long.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take returns nil when the caller has the turn; give must follow.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t turn) give() { <-t }
