package proxy

import (
	"context"
	"sync"
	"time"

	"github.com/noria-dev/noria/sdk/wire"
)

// judgedTime that the answer to an equal question holds. A client asks for token counts by dozens.
const judgedTime = 5 * time.Second

// judgements joins equal questions to an adapter: who comes while one is asked waits for its answer, who comes shortly
// after gets it again. Who asks does so in its own goroutine: singleflight, which could be waited for with a context,
// would leave one that nobody waits for, and end the process when it panics.
type judgements struct {
	mu  sync.Mutex // guards all
	all map[string]*judgement
}

// judgement is the lease to go on with; without a base URL there is none. It may be read once ready is closed.
type judgement struct {
	ready chan struct{}
	asked time.Time
	lease wire.Lease
}

// once gives the judgement for key, made by ask unless there is one that holds. It waits for another's no longer than ctx.
func (j *judgements) once(ctx context.Context, key string, now time.Time, ask func() wire.Lease) wire.Lease {
	judged, mine := j.find(key, now)
	if mine {
		defer close(judged.ready)
		judged.lease = ask()
		return judged.lease
	}
	select {
	case <-judged.ready:
		return judged.lease
	case <-ctx.Done():
		return wire.Lease{}
	}
}

// find gives the judgement for key; mine: the caller has to make it.
func (j *judgements) find(key string, now time.Time) (judged *judgement, mine bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for other, judged := range j.all {
		if now.Sub(judged.asked) > judgedTime {
			delete(j.all, other)
		}
	}
	if judged, known := j.all[key]; known {
		return judged, false
	}
	if j.all == nil {
		j.all = map[string]*judgement{}
	}
	judged = &judgement{ready: make(chan struct{}), asked: now}
	j.all[key] = judged
	return judged, true
}
