package simulation

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/noria-dev/noria/core/placement"
	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
)

// Options of a run.
type Options struct {
	// Serve answers every arrival and rejection at once, for a world model that waits for it. Otherwise answers are
	// buffered, and decisions that the trace recorded are compared with.
	Serve bool
	// Explain prints the reasoning of every decision as comment lines behind it.
	Explain bool
}

// Result counts the decisions of a run and, of those, the ones that differ from what the trace recorded.
type Result struct {
	Decisions int
	Differing int
	// Entries that went into the log.
	Entries uint64
}

// maxLine bounds a line of a trace.
const maxLine = 1 << 20

// provider of all accounts of a trace.
const provider = "trace"

// Run reads a trace until its end and writes a decision line for every arrival and every rejection.
func Run(r io.Reader, w io.Writer, options Options) (Result, error) {
	s := &simulator{
		options: options, out: bufio.NewWriter(w), log: state.NewMemoryLog(true),
		requests: make(map[uint64]*request),
	}
	if err := s.open(); err != nil {
		return Result{}, err
	}
	err := s.read(r)
	s.result.Entries += s.store.Stats().Entries
	return s.result, errors.Join(err, s.out.Flush(), s.store.Close())
}

type simulator struct {
	options  Options
	out      *bufio.Writer
	log      *state.MemoryLog
	store    *state.Store
	accounts []state.AccountConfig
	requests map[uint64]*request
	attempts uint64
	ticked   time.Time
	last     answer
	result   Result
}

// request is one request of the trace, over all its attempts.
type request struct {
	placement.Request
}

func (s *simulator) open() error {
	store, err := state.Open(s.log, state.Settings{})
	if err != nil {
		return fmt.Errorf("open state: %w", err)
	}
	s.store = store
	return nil
}

func (s *simulator) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		end, err := s.line(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if end {
			break
		}
	}
	return lines.Err()
}

func (s *simulator) line(line []byte) (end bool, err error) {
	e, err := parse(line)
	if err != nil {
		return false, err
	}
	switch e.Event {
	case "decision":
		s.compare(e)
		return false, nil
	case "end":
		return true, nil
	case "hello":
		if e.Version != 1 {
			return false, fmt.Errorf("trace version %d is not known", e.Version)
		}
		return false, nil
	}
	if err := s.pass(at(e.T)); err != nil {
		return false, err
	}
	return false, s.event(e)
}

func (s *simulator) event(e event) error {
	now := at(e.T)
	switch e.Event {
	case "account":
		return s.account(e, now)
	case "telemetry":
		return s.telemetry(e, now)
	case "arrival":
		r := &request{placement.Request{Session: provider + "/" + e.Session, Provider: provider, Model: e.Model, Binds: true}}
		s.requests[e.Request] = r
		return s.place(e.Request, r, now)
	case "restart":
		return s.restart(now)
	case "accepted", "completed", "aborted", "rejected":
		if r := s.requests[e.Request]; r != nil { // nil: cut by a restart, or refused before
			return s.progress(e, r, now)
		}
		return nil
	}
	return fmt.Errorf("event %q is not known", e.Event)
}

// progress is what happens to a request under way.
func (s *simulator) progress(e event, r *request, now time.Time) error {
	switch e.Event {
	case "accepted":
		_, err := s.store.Accept(r.Attempt, now)
		return err
	case "rejected":
		return s.rejected(e, r, now)
	default: // completed, aborted
		s.store.End(r.Attempt, now)
	}
	delete(s.requests, e.Request)
	return nil
}

// pass lets the trace's time pass, as the daemon's ticker does.
func (s *simulator) pass(now time.Time) error {
	if !s.ticked.IsZero() && now.Sub(s.ticked) < time.Second {
		return nil
	}
	s.ticked = now
	if err := s.store.Tick(now); err != nil {
		return err
	}
	select {
	case <-s.log.SnapshotWanted():
		return s.store.Snapshot()
	default:
		return nil
	}
}

func (s *simulator) account(e event, now time.Time) error {
	id := quota.AccountID{Provider: provider, Name: e.Account}
	config := state.AccountConfig{ID: id, Enabled: e.Enabled == nil || *e.Enabled, Models: e.Models, Windows: declarations(e.Windows)}
	known := false
	for i := range s.accounts {
		if s.accounts[i].ID == id {
			s.accounts[i], known = config, true
		}
	}
	if !known {
		s.accounts = append(s.accounts, config)
	}
	if err := s.store.ApplyAccounts(s.accounts, now); err != nil {
		return err
	}
	if known && config.Enabled {
		_, err := s.store.ClearAuth(id, "", now)
		return err
	}
	return nil
}

func declarations(windows []window) []quota.Declaration {
	list := make([]quota.Declaration, 0, len(windows))
	for _, w := range windows {
		d := quota.Declaration{ID: w.ID, Kind: quota.KindRolling, Length: time.Duration(w.LengthMS) * time.Millisecond}
		if w.Model != "" {
			d.Kind, d.Models = quota.KindModel, []string{w.Model}
		}
		list = append(list, d)
	}
	return list
}

func (s *simulator) telemetry(e event, now time.Time) error {
	id := quota.AccountID{Provider: provider, Name: e.Account}
	taken := now
	if e.Taken != nil {
		taken = at(*e.Taken)
	}
	source := quota.SourceOfficialClient
	if e.Source == "header" {
		source = quota.SourceResponseHeader
	}
	declared := s.declared(id)
	readings := make([]quota.Reading, 0, len(e.Windows))
	for _, w := range e.Windows {
		d, ok := declared[w.ID]
		if !ok || (w.Used == nil && !w.Awaiting) {
			continue
		}
		r := quota.Reading{Declaration: d, ResetsAt: optional(w.Reset), State: quota.Observed, Source: source, ObservedAt: taken}
		if w.Used != nil {
			r.UsedPercent, r.HasUsed = *w.Used, true
		}
		if w.Awaiting {
			r.State = quota.AwaitingFirstUse
		}
		readings = append(readings, r)
	}
	return s.store.Observe(id, readings, taken, now)
}

func (s *simulator) declared(id quota.AccountID) map[string]quota.Declaration {
	windows := make(map[string]quota.Declaration)
	for _, c := range s.accounts {
		if c.ID == id {
			for _, d := range c.Windows {
				windows[d.ID] = d
			}
		}
	}
	return windows
}

func (s *simulator) rejected(e event, r *request, now time.Time) error {
	causes := map[string]quota.Cause{"": quota.CauseQuota, "quota": quota.CauseQuota, "auth": quota.CauseAuth, "throttle": quota.CauseThrottle}
	cause, ok := causes[e.Class]
	if !ok {
		return fmt.Errorf("class %q of a rejection is not known", e.Class)
	}
	if _, err := s.store.Reject(r.Attempt, quota.Rejection{Cause: cause, WindowID: e.Window, ClearsAt: optional(e.Reset)}, now); err != nil {
		return err
	}
	return s.place(e.Request, r, now)
}

func (s *simulator) place(number uint64, r *request, now time.Time) error {
	s.attempts++
	r.Attempt, r.At = s.attempts, now
	d, err := s.store.Place(r.Request)
	if err != nil {
		return err
	}
	if d.Placed {
		r.Tried = append(r.Tried, d.Account)
	} else {
		delete(s.requests, number)
	}
	return s.answer(number, d)
}

func (s *simulator) answer(number uint64, d placement.Decision) error {
	s.result.Decisions++
	s.last = answerTo(number, d)
	line, err := json.Marshal(s.last)
	if err != nil {
		return fmt.Errorf("write decision: %w", err)
	}
	s.out.Write(append(line, '\n'))
	if s.options.Explain {
		s.explain(d)
	}
	if s.options.Serve {
		return s.out.Flush()
	}
	return nil
}

func (s *simulator) compare(recorded event) {
	if s.options.Serve || s.last.Request != recorded.Request || s.last.matches(recorded) {
		return
	}
	s.result.Differing++
	line, err := json.Marshal(answer{Event: "recorded", Request: recorded.Request, Account: recorded.Account, outcome: recorded.outcome})
	if err == nil {
		fmt.Fprintf(s.out, "# differs from the trace: %s\n", line)
	}
}

// restart kills the state and recovers it: what was in flight is lost, and what was not written.
func (s *simulator) restart(now time.Time) error {
	s.result.Entries += s.store.Stats().Entries
	s.requests = make(map[uint64]*request)
	if err := s.open(); err != nil {
		return err
	}
	return s.store.ApplyAccounts(s.accounts, now)
}
