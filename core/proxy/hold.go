package proxy

import (
	"bytes"
	"errors"
	"time"
)

// hold reads until the commit. decided is true when the stream ended before it, or the request goes elsewhere.
func (s *stream) hold() (next step, decided bool) {
	timer := time.NewTimer(s.limits.HoldTime)
	defer timer.Stop()
	for !s.committed {
		began := s.proxy.clock.Now()
		piece, err := s.from.nextBefore(timer.C)
		s.sent.upstream += s.proxy.clock.Now().Sub(began)
		if errors.Is(err, errTimeUp) {
			err = nil
			s.commitUnread("hold_time")
		}
		rest, early := s.keep(piece)
		if early != nil {
			s.rest = bytes.Clone(rest)
			return s.goOn(early), true
		}
		if s.committed {
			s.relayPiece(rest)
		}
		if err != nil {
			return s.over(err), true
		}
	}
	return finished, false
}

// keep holds what comes before the commit. It returns what is left of the piece: behind the commit, or behind an early
// failure that moves the request.
func (s *stream) keep(p []byte) (rest []byte, early *failure) {
	for len(p) > 0 && !s.committed {
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
		case s.committed:
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

// heldEvent decides on an event before commit. It returns a failure that is not to be relayed.
func (s *stream) heldEvent(e event) *failure {
	class := s.profile.grammar.class(e.kind)
	s.seen(class, e)
	switch {
	case class&classInspected != 0:
		f := s.inspect(s.ctx, e)
		if s.clientLeft() || react(f.verdict, s.circumstances(f)) != relayFailure {
			return f
		}
		s.recordFailure(f)
		s.keepBlocker(f)
		s.commit(false)
	case class&classPreamble == 0:
		s.commit(s.profile.grammar.provesWork(class))
	}
	return nil
}

// commitUnread commits at a bound. 200 was accepted, so it binds.
func (s *stream) commitUnread(reason string) {
	s.record(Event{Operation: "passive", Attempt: s.number, Account: s.account.Name, Reason: reason})
	s.commit(true)
}

// commit sends what was held, after which nothing can be taken back. An accepted attempt is durable before.
func (s *stream) commit(accepted bool) {
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
