package proxy

import (
	"context"
	"net/http"
	"time"
)

// healthTime that the state lock may take before the daemon counts as unwell.
const healthTime = time.Second

// answerHealth answers /healthz and /readyz, for which no key is needed, and reports whether it did.
func (p *Proxy) answerHealth(x *exchange, path string) bool {
	if x.in.Method != http.MethodGet && x.in.Method != http.MethodHead {
		return false
	}
	switch path {
	case "/healthz":
		ctx, cancel := context.WithTimeout(x.in.Context(), healthTime)
		defer cancel()
		x.answerStatus(p.state.Ping(ctx) == nil, "text/plain; charset=utf-8", []byte("ok\n"), []byte("state lock not obtained\n"))
	case "/readyz":
		ready, body := p.ready()
		x.answerStatus(ready, "application/json", body, body)
	default:
		return false
	}
	return true
}

func (x *exchange) answerStatus(good bool, contentType string, yes, no []byte) {
	header := http.Header{"Content-Type": {contentType}, "Cache-Control": {"no-store"}}
	if good {
		x.write(http.StatusOK, header, yes)
		return
	}
	x.write(http.StatusServiceUnavailable, header, no)
}
