package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// stream is a streamed success on its way to the client. Its status, header and preamble are held until an event that
// cannot be taken back, so that an early failure can still move the request without the client seeing anything.
type stream struct {
	*attempt
	resp *http.Response
	scan *scanner

	mu sync.Mutex // guards what follows against the hold's timer
	// holding until commit, or until an early failure was found.
	holding   bool
	committed bool
	held      []byte
	timer     *time.Timer
	// rest of a piece behind an early failure that may still be relayed.
	rest []byte
	// events seen, and whether one of them ended the stream.
	events   int
	complete bool
	// observed events that were not handed over yet.
	observed []*providerv1.Event
	// announced: the answer's headers were handed over.
	announced bool
	// unflushed: something was written since the last flush.
	unflushed bool
	err       error
}

func (a *attempt) newStream(resp *http.Response) *stream {
	s := &stream{attempt: a, resp: resp, scan: newScanner(&a.profile.grammar), holding: true}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(a.limits.HoldTime, s.heldTooLong)
	return s
}

// start reads the stream, and gives back what it held however that ends, but for a throttle that is held on.
func (s *stream) start() (next step) {
	defer func() {
		if next != throttled {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.discard()
		}
	}()
	return s.run()
}

// run reads the stream to its end. It returns early when the request goes elsewhere.
func (s *stream) run() step {
	buffer := s.proxy.pieces.copies.Get().(*[]byte)
	defer s.proxy.pieces.copies.Put(buffer)
	for {
		began := s.proxy.clock.Now()
		n, err := s.resp.Body.Read(*buffer)
		next, decided := s.take((*buffer)[:n], began)
		if decided {
			return next
		}
		if err != nil {
			return s.over(err)
		}
	}
}

// take feeds one piece. decided is true when the stream is not to be read on.
func (s *stream) take(p []byte, began time.Time) (next step, decided bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.committed {
		s.sent.upstream += s.proxy.clock.Now().Sub(began)
		var early *failure
		if p, early = s.hold(p); early != nil {
			s.rest = bytes.Clone(p)
			return s.goOn(early), true
		}
	}
	if s.committed && s.err == nil {
		s.pass(p)
	}
	s.settle()
	if s.err != nil {
		s.endRelay(s.err, "")
	}
	return finished, false
}

// hold keeps what comes before the commit. It returns what is left of the piece: behind the commit, or behind an early
// failure that moves the request.
func (s *stream) hold(p []byte) (rest []byte, early *failure) {
	for len(p) > 0 && !s.committed && s.err == nil {
		n, e, ok := s.scan.next(p)
		// Also what does not fit is held, for the moment that it takes to leave.
		fits := s.proxy.memory.charge(int64(n), s.limits.ReplayMemory)
		s.held = append(s.held, p[:n]...)
		p = p[n:]
		if ok {
			if early = s.heldEvent(e); early != nil {
				return p, early
			}
		}
		switch {
		case s.committed, s.err != nil:
		case s.scan.passive != "":
			s.commitUnread(s.scan.passive)
		case len(s.held) > s.limits.HoldBytes:
			s.commitUnread("hold_bytes")
		case !fits:
			s.commitUnread("replay_memory")
		}
	}
	return p, nil
}

// heldEvent decides on an event before commit.
func (s *stream) heldEvent(e event) *failure {
	class := s.profile.grammar.class([]byte(e.kind))
	s.seen(class, e)
	switch {
	case class&classInspected != 0:
		f := s.inspect(s.ctx, e)
		if s.clientLeft() {
			s.err = errClientWrite
			return nil
		}
		if react(f.verdict, s.circumstances(f)) != relayFailure {
			s.stopHolding()
			return f
		}
		s.keepBlocker(f)
		s.commit(false)
	case class&classPreamble == 0:
		s.commit(s.profile.grammar.provesWork(class))
	}
	return nil
}

// seen counts an event and notes what it is.
func (s *stream) seen(class eventClass, e event) {
	s.events++
	if class&classTerminal != 0 {
		s.complete = true
	}
	if class&classTelemetry != 0 && len(s.observed) < maxObservedEvents {
		s.observed = append(s.observed, &providerv1.Event{Type: e.kind, Data: bytes.Clone(e.data)})
	}
}

// inspect has an event classified.
func (s *stream) inspect(ctx context.Context, e event) *failure {
	evidence := s.evidence(s.resp, s.committed)
	evidence.Evidence = &providerv1.ClassifyRequest_Event{Event: &providerv1.Event{Type: e.kind, Data: bytes.Clone(e.data)}}
	f := &failure{status: s.resp.StatusCode, relay: s.relayHeld, discard: s.discard}
	f.verdict, f.judged = s.classify(ctx, evidence)
	return f
}

// commitUnread commits at a bound. 200 was accepted, so it binds.
func (s *stream) commitUnread(reason string) {
	s.record(Event{Operation: "passive", Attempt: s.number, Account: s.account.Name, Reason: reason})
	s.commit(true)
}

// heldTooLong runs when the time of the hold is over.
func (s *stream) heldTooLong() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holding {
		s.commitUnread("hold_time")
		s.settle()
	}
}

func (s *stream) stopHolding() {
	s.holding = false
	s.timer.Stop()
}

// commit sends what was held, after which nothing can be taken back. An accepted attempt is durable before.
func (s *stream) commit(accepted bool) {
	s.stopHolding()
	s.committed = true
	if accepted {
		if err := s.accept(); err != nil {
			s.err = errClientWrite
			return
		}
	}
	copyResponseHeader(s.w.Header(), s.resp.Header, s.profile.headers.dropResponse)
	s.begin(s.resp.StatusCode)
	s.unflushed = true
	if len(s.held) > 0 {
		s.err = s.writeBody(s.held, false)
	}
	s.dropHeld()
	s.commitBody()
}

func (s *stream) dropHeld() {
	s.proxy.memory.give(int64(len(s.held)))
	s.held = nil
}

// pass relays a piece behind the commit, as it came. Events that the grammar names have their effect before their last
// byte goes on.
func (s *stream) pass(p []byte) {
	eventAt := 0
	for at := 0; at < len(p) && s.scan.passive == ""; {
		n, e, ok := s.scan.next(p[at:])
		at += n
		if !ok {
			break
		}
		class := s.profile.grammar.class([]byte(e.kind))
		s.seen(class, e)
		if class&classInspected != 0 || !s.accepted && !s.ended && s.profile.grammar.provesWork(class) {
			if s.write(p[:eventAt]); s.err != nil {
				return
			}
			p, at = p[eventAt:], at-eventAt
			if s.lateEvent(class, e); s.err != nil {
				return
			}
		}
		eventAt = at
	}
	s.write(p)
}

// lateEvent is an event behind the commit that changes state before it is relayed.
func (s *stream) lateEvent(class eventClass, e event) {
	if class&classInspected == 0 {
		if s.accept() != nil {
			s.err = errClientWrite
		}
		return
	}
	s.flushNow()
	ctx, cancel := s.detached(lateTime)
	defer cancel()
	f := s.inspect(ctx, e)
	if f.judged && f.verdict.blocks() {
		s.rejectWithin(ctx, f.verdict.rejection())
	}
}

// settle flushes and hands telemetry over.
func (s *stream) settle() {
	if !s.committed || s.err != nil {
		return
	}
	s.flushNow()
	if !s.announced || len(s.observed) > 0 {
		s.announced = true
		s.observe(s.resp, s.observed)
		s.observed = nil
	}
}

func (s *stream) write(p []byte) {
	if len(p) > 0 && s.err == nil {
		s.err = s.writeBody(p, false)
		s.unflushed = true
	}
}

func (s *stream) flushNow() {
	if s.unflushed && s.err == nil {
		s.err = s.flush()
		s.unflushed = false
	}
}

// over goes on when the upstream's side has ended.
func (s *stream) over(err error) step {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopHolding()
	clean := errors.Is(err, io.EOF)
	switch {
	case s.clientLeft():
		return s.left()
	case s.committed:
	case clean && len(s.held) == 0 && !s.emptied && s.body.replayable():
		s.emptied = true
		s.recordAttempt(s.resp.StatusCode, "network", "empty_stream")
		return again
	case !clean && (len(s.held) == 0 || !s.livesHere()):
		return s.networkFailed(err, &connection{})
	default:
		s.commit(false)
		s.settle()
	}
	return s.endStream(clean, err)
}

// endStream ends a committed stream as the upstream did.
func (s *stream) endStream(clean bool, err error) step {
	switch {
	case s.err != nil:
		s.endRelay(s.err, "")
	case !clean:
		s.endRelay(err, "")
	case s.complete || s.scan.passive != "" || !s.profile.grammar.terminating:
		s.endRelay(nil, "accepted")
	default:
		// It ends cleanly without an end: the client sees that as it is.
		reason := "stream_cut"
		if s.events == 0 {
			reason = "empty_stream"
		}
		s.close()
		s.record(Event{Operation: "cut", Attempt: s.number, Account: s.account.Name, Status: s.sent.status, Outcome: "cut", Reason: reason})
		s.recordEnd(s.account.Name, "cut", reason)
	}
	return finished
}

// discard drops what is left of the stream. What it told of the account is not lost.
func (s *stream) discard() {
	s.stopHolding()
	s.resp.Body.Close()
	s.dropHeld()
	if len(s.observed) > 0 {
		s.observe(s.resp, s.observed)
		s.observed = nil
	}
}

// relayHeld hands an early failure to the client after all, and what follows it.
func (s *stream) relayHeld() step {
	s.passHeld()
	return s.start()
}

func (s *stream) passHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commit(false)
	if s.err == nil {
		s.pass(s.rest)
	}
	s.settle()
	if s.err != nil {
		s.endRelay(s.err, "")
	}
}
