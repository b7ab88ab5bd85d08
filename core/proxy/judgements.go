package proxy

import (
	"sync"
	"time"

	"github.com/noria-dev/noria/sdk/wire"
)

// judgedTime that the answer to an equal question holds. A client asks for token counts by dozens.
const judgedTime = 5 * time.Second

// judgements joins equal questions to an adapter: who comes while one is asked waits for its answer, who comes shortly
// after gets it again.
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

// once gives the judgement for key, made by ask unless there is one that holds.
func (j *judgements) once(key string, now time.Time, ask func() wire.Lease) wire.Lease {
	j.mu.Lock()
	for other, judged := range j.all {
		if now.Sub(judged.asked) > judgedTime {
			delete(j.all, other)
		}
	}
	judged, known := j.all[key]
	if !known {
		if j.all == nil {
			j.all = map[string]*judgement{}
		}
		judged = &judgement{ready: make(chan struct{}), asked: now}
		j.all[key] = judged
	}
	j.mu.Unlock()
	if known {
		<-judged.ready
		return judged.lease
	}
	defer close(judged.ready)
	judged.lease = ask()
	return judged.lease
}
