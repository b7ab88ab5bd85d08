package simulation

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/noria-dev/noria/core/placement"
)

// event is one line of a trace. Times are whole milliseconds of the trace's own clock.
type event struct {
	Event   string   `json:"ev"`
	T       int64    `json:"t"`
	Version int      `json:"v"`
	Account string   `json:"account"`
	Enabled *bool    `json:"enabled"`
	Models  []string `json:"models"`
	Windows []window `json:"windows"`
	Taken   *int64   `json:"taken"`
	Source  string   `json:"src"`
	Request uint64   `json:"req"`
	Session string   `json:"session"`
	Model   string   `json:"model"`
	Class   string   `json:"class"`
	Window  string   `json:"window"`
	Reset   *int64   `json:"reset"`
	outcome
}

type window struct {
	ID       string   `json:"id"`
	LengthMS int64    `json:"dur_ms"`
	Model    string   `json:"model"`
	Used     *float64 `json:"used"`
	Reset    *int64   `json:"reset"`
	Awaiting bool     `json:"awaiting"`
}

// outcome is what a decision says, in an answer of ours and in a recorded trace.
type outcome struct {
	D        string    `json:"d,omitempty"`
	How      string    `json:"how,omitempty"`
	Score    *float64  `json:"score,omitempty"`
	Forecast *forecast `json:"forecast,omitempty"`
}

type forecast struct {
	At   *int64 `json:"at"` // null: unknown
	Kind string `json:"kind"`
}

// answer is a decision line.
type answer struct {
	Event   string `json:"ev"`
	Request uint64 `json:"req"`
	Account string `json:"account,omitempty"`
	outcome
}

// at is a time of the trace; its zero is the Unix epoch.
func at(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func optional(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return at(*ms)
}

func parse(line []byte) (event, error) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return e, fmt.Errorf("parse event: %w", err)
	}
	return e, nil
}

func answerTo(request uint64, d placement.Decision) answer {
	a := answer{Event: "decision", Request: request}
	if !d.Placed {
		a.D, a.Forecast = "unavailable", &forecast{Kind: string(d.Forecast.Kind)}
		if d.Forecast.Kind != placement.ForecastUnknown {
			ms := d.Forecast.At.UnixMilli()
			a.Forecast.At = &ms
		}
		return a
	}
	a.D, a.Account, a.How = "place", d.Account.Name, string(d.How)
	switch d.How {
	case placement.HowBound, placement.HowFollow:
		a.How = string(placement.HowBound)
		return a
	case placement.HowSibling:
		a.How = string(placement.HowKnown)
	}
	score := math.Round(d.Score*1e6) / 1e6
	a.Score = &score
	return a
}

// scoreTolerance is the relative difference up to which scores are the same.
const scoreTolerance = 1e-4

// matches reports whether the answer is the recorded one.
func (a answer) matches(recorded event) bool {
	if a.D != recorded.D || a.Account != recorded.Account || a.How != recorded.How {
		return false
	}
	if want := recorded.Score; want != nil && (a.Score == nil || math.Abs(*a.Score-*want) > scoreTolerance*(1+math.Abs(*want))) {
		return false
	}
	want := recorded.Forecast
	if want == nil {
		return true
	}
	if a.Forecast == nil || a.Forecast.Kind != want.Kind || (a.Forecast.At == nil) != (want.At == nil) {
		return false
	}
	return want.At == nil || *a.Forecast.At == *want.At
}
