package proxy

import (
	"errors"
	"io"
	"time"
)

// errTimeUp says that no piece came in time.
var errTimeUp = errors.New("read answer: time is up")

// answerReader reads the body of an answer piece by piece. It belongs to one goroutine.
type answerReader struct {
	body   io.ReadCloser
	pool   *piecePool
	buffer *[]byte
	// running is the read that was not waited for to its end, if there is one.
	running chan finishedRead
}

// finishedRead is what a read in a goroutine of its own came to.
type finishedRead struct {
	n        int
	err      error
	panicked any
}

func (p *piecePool) read(body io.ReadCloser) *answerReader {
	return &answerReader{body: body, pool: p, buffer: p.copies.Get().(*[]byte)}
}

// next blocks until the next piece, which is valid until the call after it.
func (r *answerReader) next() ([]byte, error) {
	if r.running != nil {
		return r.take(<-r.running)
	}
	n, err := r.body.Read(*r.buffer)
	return (*r.buffer)[:n], err
}

// nextBefore is like next, but gives up with errTimeUp once expired delivers. The call after it gets the piece then.
func (r *answerReader) nextBefore(expired <-chan time.Time) ([]byte, error) {
	if r.running == nil {
		r.running = make(chan finishedRead, 1)
		go readOnce(r.body, *r.buffer, r.running)
	}
	select {
	case done := <-r.running:
		return r.take(done)
	case <-expired:
		return nil, errTimeUp
	}
}

// readOnce hands a panic on to the goroutine that waits: nobody else would catch it.
func readOnce(from io.Reader, buffer []byte, done chan<- finishedRead) {
	var read finishedRead
	defer func() {
		read.panicked = recover()
		done <- read
	}()
	read.n, read.err = from.Read(buffer)
}

func (r *answerReader) take(done finishedRead) ([]byte, error) {
	r.running = nil
	if done.panicked != nil {
		panic(done.panicked)
	}
	return (*r.buffer)[:done.n], done.err
}

// close ends the answer, and waits for a read that runs. It may be called more than once.
func (r *answerReader) close() {
	r.body.Close()
	if r.running != nil {
		<-r.running
		r.running = nil
	}
	if r.buffer != nil {
		r.pool.copies.Put(r.buffer)
		r.buffer = nil
	}
}
