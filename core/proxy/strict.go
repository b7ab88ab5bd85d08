package proxy

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
)

// strictListener makes connections refuse request headers that net/http would accept although two programs could read
// them differently: a length beside a transfer coding, two lengths, any coding but chunked, folded lines. net/http drops the
// length, joins the lines and serves the request; what stands in front of the daemon may have counted otherwise, and then
// the end of one request is the beginning of another that nobody checked. A handler sees nothing of it any more.
type strictListener struct{ net.Listener }

func (l strictListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &strictConn{Conn: conn}, nil
}

// strictConn watches what is read. In the place of a header that is not to be accepted it reads as one that cannot be,
// which net/http answers with 400 before it closes the connection; an error would not be answered everywhere.
type strictConn struct {
	net.Conn
	head    headWatch
	refused bool
	// instead is what is left of unreadable.
	instead string
}

// unreadable breaks a request line, a header's name and a header's value alike.
const unreadable = "\x00 \r\n\r\n"

func (c *strictConn) Read(p []byte) (int, error) {
	if !c.refused {
		n, err := c.Conn.Read(p)
		if c.head.accept(p[:n]) {
			return n, err
		}
		c.refused, c.instead = true, unreadable
	}
	if c.instead == "" {
		return 0, io.EOF
	}
	n := copy(p, c.instead)
	c.instead = c.instead[n:]
	return n, nil
}

// maxWatchedLine is more than any of the lines that matter has.
const maxWatchedLine = 128

// headWatch follows the requests of a connection byte by byte: header, body, header. When it loses the thread (a chunk
// without a size), so does net/http, which then closes the connection.
type headWatch struct {
	state watchState
	// line is the beginning of the line being read.
	line []byte
	// left of the body or chunk.
	left int64
	// what the header said.
	requestLine, length, chunked bool
}

type watchState uint8

const (
	watchHead watchState = iota
	watchBody
	watchChunkSize
	watchChunk
	watchChunkEnd
	watchTrailer
	watchLost
)

// accept takes the next bytes and reports whether they may go on.
func (w *headWatch) accept(p []byte) bool {
	for len(p) > 0 {
		switch w.state {
		case watchLost:
			return true
		case watchBody, watchChunk:
			n := min(w.left, int64(len(p)))
			p = p[n:]
			if w.left -= n; w.left == 0 {
				w.bodyPartEnded()
			}
		default:
			if w.state == watchHead && !w.requestLine && len(w.line) == 0 && (p[0] <= ' ' || p[0] >= 0x7f) {
				// No request begins like this; a TLS client does, and would wait for an answer.
				return false
			}
			end := bytes.IndexByte(p, '\n')
			if end < 0 {
				w.keep(p)
				return true
			}
			w.keep(p[:end])
			p = p[end+1:]
			line := bytes.TrimSuffix(w.line, []byte("\r"))
			ok := w.takeLine(line)
			w.line = w.line[:0]
			if !ok {
				return false
			}
		}
	}
	return true
}

func (w *headWatch) keep(p []byte) {
	w.line = append(w.line, p[:min(len(p), maxWatchedLine-len(w.line))]...)
}

func (w *headWatch) bodyPartEnded() {
	if w.state == watchChunk {
		w.state = watchChunkEnd
		return
	}
	w.nextRequest()
}

func (w *headWatch) nextRequest() { *w = headWatch{line: w.line[:0]} }

func (w *headWatch) takeLine(line []byte) bool {
	switch w.state {
	case watchHead:
		return w.headLine(line)
	case watchChunkSize:
		w.chunkSize(line)
	case watchChunkEnd:
		w.state = watchChunkSize
	case watchTrailer:
		if len(line) == 0 {
			w.nextRequest()
		}
	}
	return true
}

func (w *headWatch) headLine(line []byte) bool {
	switch {
	case !w.requestLine:
		w.requestLine = true
		return true
	case len(line) == 0:
		return w.headEnded()
	case line[0] == ' ' || line[0] == '\t':
		return false
	}
	name, value, _ := strings.Cut(string(line), ":")
	switch {
	case strings.EqualFold(name, "Content-Length"):
		n, err := strconv.ParseInt(strings.Trim(value, " \t"), 10, 64)
		if err != nil || n < 0 || w.length {
			return false
		}
		w.length, w.left = true, n
	case strings.EqualFold(name, "Transfer-Encoding"):
		if w.chunked || !strings.EqualFold(strings.Trim(value, " \t"), "chunked") {
			return false
		}
		w.chunked = true
	}
	return true
}

func (w *headWatch) headEnded() bool {
	switch {
	case w.length && w.chunked:
		return false
	case w.chunked:
		w.state = watchChunkSize
	case w.left > 0:
		w.state = watchBody
	default:
		w.nextRequest()
	}
	return true
}

func (w *headWatch) chunkSize(line []byte) {
	digits, _, _ := strings.Cut(string(line), ";")
	n, err := strconv.ParseInt(strings.Trim(digits, " \t"), 16, 64)
	switch {
	case err != nil || n < 0:
		w.state = watchLost
	case n == 0:
		w.state = watchTrailer
	default:
		w.state, w.left = watchChunk, n
	}
}
