package api

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
)

// FollowedEvent is an event as a follower gets it. Missed counts the events between the last one that the follower got and
// this one: it was too slow, and the list holds them no longer.
type FollowedEvent struct {
	Event
	Missed uint64 `json:"missed,omitempty"`
}

func (s *Server) events(r *http.Request) ([]Event, error) {
	query := r.URL.Query()
	after, err := number(query.Get("after"), 0, math.MaxUint64)
	if err != nil {
		return nil, err
	}
	limit, err := number(query.Get("limit"), defaultEvents, maxEvents)
	if err != nil {
		return nil, err
	}
	return list(s.daemon.Events(r.Context(), after, int(limit)))
}

// followEvents streams one JSON object per line until the client leaves or the daemon ends.
func (s *Server) followEvents(w http.ResponseWriter, r *http.Request) {
	after, err := number(r.URL.Query().Get("after"), 0, math.MaxUint64)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	control := http.NewResponseController(w)
	if err := control.Flush(); err != nil {
		return
	}
	encoder := json.NewEncoder(w)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	// However it ends, the connection ends with it and there is nothing more to say.
	_ = s.daemon.WatchEvents(ctx, after, func(event FollowedEvent) error {
		if err := encoder.Encode(event); err != nil {
			return err
		}
		return control.Flush()
	})
}
