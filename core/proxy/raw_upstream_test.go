package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// rawUpstream answers every request on every connection by a function that writes bytes.
type rawUpstream struct {
	t        testing.TB
	listener net.Listener
	answer   func(conn net.Conn, n int)

	mu       sync.Mutex // guards what follows
	requests int
	conns    map[net.Conn]bool
	wait     sync.WaitGroup
}

// newRawUpstream makes all accounts live there. answer gets the number of the request, from 1;
// the connection is closed after it.
func newRawUpstream(r *rig, answer func(conn net.Conn, n int)) *rawUpstream {
	r.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	return startRawUpstream(r, listener, answer)
}

func startRawUpstream(r *rig, listener net.Listener, answer func(conn net.Conn, n int)) *rawUpstream {
	for _, account := range r.state.accounts {
		r.adapters.bases[account] = "http://" + listener.Addr().String()
	}
	u := &rawUpstream{t: r.t, listener: listener, answer: answer, conns: map[net.Conn]bool{}}
	u.wait.Go(u.serve)
	r.t.Cleanup(u.close)
	return u
}

func (u *rawUpstream) serve() {
	for {
		conn, err := u.listener.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		u.conns[conn] = true
		u.mu.Unlock()
		u.wait.Go(func() {
			defer u.drop(conn)
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			u.mu.Lock()
			u.requests++
			n := u.requests
			u.mu.Unlock()
			u.answer(conn, n)
		})
	}
}

func (u *rawUpstream) drop(conn net.Conn) {
	u.mu.Lock()
	delete(u.conns, conn)
	u.mu.Unlock()
	conn.Close()
}

func (u *rawUpstream) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests
}

func (u *rawUpstream) close() {
	u.listener.Close()
	u.mu.Lock()
	for conn := range u.conns {
		conn.Close()
	}
	u.mu.Unlock()
	u.wait.Wait()
}

// reset makes closing the connection a reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// sseHead says that the connection will be closed: a proxy that used it again would find that out only then.
const sseHead = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// goodStream answers with a short whole stream.
func goodStream(conn net.Conn, _ int) {
	_, _ = conn.Write([]byte(sseHead))
	writeChunks(conn, []byte(claudeStart+claudeDelta+claudeStop), 1<<15, true)
}

// writeChunks sends body in chunks of size; whole ends the chunks as a clean end does.
func writeChunks(conn net.Conn, body []byte, size int, whole bool) {
	w := bufio.NewWriterSize(conn, 1<<16)
	for len(body) > 0 {
		n := min(size, len(body))
		_, _ = w.WriteString(hexLength(n))
		_, _ = w.Write(body[:n])
		_, _ = w.WriteString("\r\n")
		if size < 64 {
			// Each byte is a packet of its own.
			_ = w.Flush()
		}
		body = body[n:]
	}
	if whole {
		_, _ = w.WriteString("0\r\n\r\n")
	}
	_ = w.Flush()
}

func hexLength(n int) string {
	const digits = "0123456789abcdef"
	out := []byte("\r\n")
	for {
		out = append([]byte{digits[n&15]}, out...)
		if n >>= 4; n == 0 {
			return string(out)
		}
	}
}
