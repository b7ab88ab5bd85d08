package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
)

// succeeded goes on after an answer below 300.
func (a *attempt) succeeded(resp *http.Response) step {
	readable, reason := a.profile.grammar.readable(resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"))
	if readable {
		return a.newStream(resp).run()
	}
	if reason != "" {
		a.record(Event{Operation: "passive", Attempt: a.number, Account: a.account.Name, Reason: reason})
	}
	if a.accept() != nil {
		resp.Body.Close()
		return a.left()
	}
	a.relayRest(resp, nil, "accepted")
	return finished
}

// relayRest relays an answer whose beginning was read already, byte for byte, and records the end.
func (a *attempt) relayRest(resp *http.Response, beginning []byte, outcome string) {
	defer resp.Body.Close()
	err := a.relayBeginning(resp, beginning)
	if err == nil {
		a.commitBody()
		a.observe(resp, nil)
		err = a.copyBody(resp)
	}
	a.endRelay(err, outcome)
}

// endRelay ends the attempt and tells how its answer ended. One that broke is broken for the client too.
func (a *attempt) endRelay(err error, outcome string) {
	a.close()
	switch {
	case err == nil:
		a.recordEnd(a.account.Name, outcome, "")
		return
	case a.clientLeft() || errors.Is(err, errClientWrite):
		reason := "client_left"
		if errors.Is(err, os.ErrDeadlineExceeded) {
			reason = "timeout"
		}
		a.recordEnd(a.account.Name, "canceled", reason)
	default:
		a.record(Event{Operation: "cut", Attempt: a.number, Account: a.account.Name, Status: a.sent.status, Outcome: "cut", Reason: "stream_cut"})
		a.recordEnd(a.account.Name, "cut", "stream_cut")
	}
	panic(http.ErrAbortHandler)
}

var errClientWrite = errors.New("write to client")

// relayBeginning relays the header of an answer and what was read of its body.
func (x *exchange) relayBeginning(resp *http.Response, beginning []byte) error {
	copyResponseHeader(x.w.Header(), resp.Header, x.profile.headers.dropResponse)
	x.begin(resp.StatusCode)
	switch {
	case len(beginning) > 0:
		return x.writeBody(beginning, unbounded(resp))
	case unbounded(resp):
		return x.flush()
	}
	return nil
}

// unbounded reports whether an answer is a stream of some kind: nothing of it is kept back.
func unbounded(resp *http.Response) bool { return resp.ContentLength < 0 }

// copyBody copies the rest of an answer's body to the client.
func (x *exchange) copyBody(resp *http.Response) error {
	buffer := x.proxy.buffers.copies.Get().(*[]byte)
	defer x.proxy.buffers.copies.Put(buffer)
	for {
		n, err := resp.Body.Read(*buffer)
		if n > 0 {
			if err := x.writeBody((*buffer)[:n], unbounded(resp)); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			// What came is the client's, before it sees the rest missing.
			return errors.Join(err, x.flush())
		}
	}
}

// writeBody writes to the client within the time of one write.
func (x *exchange) writeBody(p []byte, flush bool) error {
	x.renewWrite()
	if err := x.relayed(x.w.Write(p)); err != nil {
		return errors.Join(errClientWrite, err)
	}
	if flush {
		return x.flush()
	}
	return nil
}

func (x *exchange) flush() error {
	if err := x.control.Flush(); err != nil {
		return errors.Join(errClientWrite, err)
	}
	return nil
}

// commitBody gives the request's memory back: after commit nothing is sent again.
func (x *exchange) commitBody() {
	if len(x.profile.exposure.fieldPointers) == 0 {
		x.body.release()
	}
}
