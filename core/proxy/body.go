package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// A client has to send this much of a body within Limits.BodyTime, or the rest of it.
const bodyProgress = 4 << 10

// Reasons why a body could not be read.
var (
	errBodyTooLarge = errors.New("read body: too large")
	errBodyStalled  = errors.New("read body: no progress")
	errBodyBroken   = errors.New("read body: connection broken")
	errBodySpent    = errors.New("replay body: it was not kept")
)

// body is a request's body, kept so that it can be sent more than once. What does not fit into the memory budget is
// left in the connection and can be sent only once, behind what was kept.
type body struct {
	pool   *piecePool
	memory *memory
	pieces []*[]byte
	// kept bytes in pieces; all pieces but the last are full.
	kept int64
	// rest is what was not kept, nil when all was. length is that of the whole, -1 when the client did not say.
	rest   io.Reader
	length int64

	mu       sync.Mutex // guards what follows, and the pieces while readers are open
	readers  int
	released bool
	spent    bool
}

// readBody reads the request's body up to the bounds.
func (p *Proxy) readBody(r *http.Request, control *http.ResponseController, limits *Limits) (*body, error) {
	b := &body{pool: p.buffers, memory: &p.memory, length: r.ContentLength}
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		b.length = 0
		return b, nil
	}
	if r.ContentLength > limits.Body {
		return nil, errBodyTooLarge
	}
	source := &bodySource{from: r.Body, control: control, patience: limits.BodyTime, left: limits.Body}
	source.renew()
	done, err := b.keep(source, limits.ReplayMemory)
	switch {
	case err != nil:
		b.release()
		return nil, err
	case !done:
		b.rest = source
		return b, nil
	}
	b.length = b.kept
	return b, nil
}

// keep reads until the end, or until the memory budget is used up, which makes done false.
func (b *body) keep(source io.Reader, budget int64) (done bool, err error) {
	for {
		size := int64(largePiece)
		if len(b.pieces) == 0 && b.length >= 0 {
			size = b.length
		}
		piece := b.pool.get(int(min(size, largePiece)))
		if !b.memory.take(int64(len(*piece)), budget) {
			b.pool.put(piece)
			return false, nil
		}
		b.pieces = append(b.pieces, piece)
		n, err := io.ReadFull(source, *piece)
		b.kept += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return true, nil
		case err != nil:
			return false, err
		case b.kept == b.length:
			// The end is known without one more piece; this read makes net/http see it too.
			_, err := source.Read(make([]byte, 1))
			return true, ignoreEOF(err)
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// replayable reports whether the body can be sent again.
func (b *body) replayable() bool { return b.rest == nil }

// each yields what was kept, piece by piece.
func (b *body) each(yield func([]byte) bool) {
	left := b.kept
	for _, piece := range b.pieces {
		n := min(left, int64(len(*piece)))
		if left -= n; n > 0 && !yield((*piece)[:n]) {
			return
		}
	}
}

// open gives the body to one attempt. The transport may go on reading after an attempt has ended, so the pieces stay
// until every reader was closed.
func (b *body) open() (io.ReadCloser, error) {
	if b.length == 0 {
		return http.NoBody, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.released || b.spent {
		return nil, errBodySpent
	}
	b.spent = b.rest != nil
	b.readers++
	return &bodyReader{body: b}, nil
}

// release gives the memory back, at once or when the last reader is closed.
func (b *body) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.released = true
	b.recycle()
}

// recycle puts the pieces back when nobody needs them any more. The caller holds mu.
func (b *body) recycle() {
	if !b.released || b.readers > 0 {
		return
	}
	for _, piece := range b.pieces {
		b.memory.give(int64(len(*piece)))
		b.pool.put(piece)
	}
	b.pieces = nil
}

// bodyReader reads a body from its beginning. Close may come while Read runs: both take the body's lock.
type bodyReader struct {
	body   *body
	piece  int
	offset int
	read   int64
	closed bool
}

func (r *bodyReader) Read(p []byte) (int, error) {
	b := r.body
	b.mu.Lock()
	if r.closed {
		b.mu.Unlock()
		return 0, errBodySpent
	}
	if left := b.kept - r.read; left > 0 {
		from := (*b.pieces[r.piece])[r.offset:]
		n := copy(p, from[:min(left, int64(len(from)))])
		r.read += int64(n)
		if r.offset += n; r.offset == len(*b.pieces[r.piece]) {
			r.piece, r.offset = r.piece+1, 0
		}
		b.mu.Unlock()
		return n, nil
	}
	b.mu.Unlock()
	if b.rest == nil {
		return 0, io.EOF
	}
	return b.rest.Read(p)
}

func (r *bodyReader) Close() error {
	b := r.body
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.closed {
		r.closed = true
		b.readers--
		b.recycle()
	}
	return nil
}

// bodySource reads from the client: at most so many bytes, and only while it makes progress.
type bodySource struct {
	from     io.Reader
	control  *http.ResponseController
	patience time.Duration
	left     int64
	// fresh bytes since the deadline was set.
	fresh int64
}

func (s *bodySource) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if s.left -= int64(n); s.left < 0 {
		return 0, errBodyTooLarge
	}
	if s.fresh += int64(n); s.fresh >= bodyProgress {
		s.renew()
	}
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		s.end()
		return n, io.EOF
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, errBodyStalled
	}
	return n, errBodyBroken
}

// renew gives the client time again. Deadlines of sockets are of the system's clock, whatever the daemon's is. A
// writer without a connection has none.
func (s *bodySource) renew() {
	s.fresh = 0
	_ = s.control.SetReadDeadline(time.Now().Add(s.patience))
}

// end takes the deadline away: from the end of the body on net/http reads, to see the client leave, and would take the
// deadline for that.
func (s *bodySource) end() { _ = s.control.SetReadDeadline(time.Time{}) }
