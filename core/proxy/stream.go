package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// stream is a streamed success on its way to the client. Its status, header and preamble are held until an event that
// cannot be taken back, so that an early failure can still move the request without the client seeing anything. Only the
// request's own goroutine touches it, and writes to the client.
type stream struct {
	*attempt
	resp *http.Response
	from *answerReader
	scan *scanner

	committed bool
	// held before the commit.
	held []byte
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
	return &stream{attempt: a, resp: resp, from: a.proxy.buffers.read(resp.Body), scan: newScanner(&a.profile.grammar)}
}

// run reads the stream to its end, or until the request goes elsewhere. It gives back what it held however that ends, but
// for a throttle that is held on.
func (s *stream) run() (next step) {
	defer func() {
		if next != throttled {
			s.discard()
		}
	}()
	if !s.committed {
		var decided bool
		if next, decided = s.hold(); decided {
			return next
		}
	}
	for {
		piece, err := s.from.next()
		s.relayPiece(piece)
		if err != nil {
			return s.over(err)
		}
	}
}

// relayPiece relays a piece behind the commit.
func (s *stream) relayPiece(p []byte) {
	if s.err == nil {
		s.pass(p)
	}
	s.settle()
	if s.err != nil {
		s.endRelay(s.err, "")
	}
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
	s.judge(ctx, f, evidence)
	return f
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
		class := s.profile.grammar.class(e.kind)
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
	s.recordFailure(f)
	if f.blocks() {
		s.rejectWithin(ctx, f.verdict.Rejection)
	}
}

// settle flushes and hands telemetry over.
func (s *stream) settle() {
	if s.err != nil {
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
	clean := errors.Is(err, io.EOF)
	switch {
	case s.committed:
	case s.clientLeft():
		return s.left()
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

// discard drops what is left of the stream. What it told of the account is not lost. It may be called more than once.
func (s *stream) discard() {
	s.from.close()
	s.dropHeld()
	if len(s.observed) > 0 {
		s.observe(s.resp, s.observed)
		s.observed = nil
	}
}

// relayHeld hands an early failure to the client after all, and what follows it.
func (s *stream) relayHeld() step {
	defer s.discard()
	s.commit(false)
	s.relayPiece(s.rest)
	return s.run()
}
