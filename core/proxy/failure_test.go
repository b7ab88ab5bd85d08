package proxy

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noria-dev/noria/core/quota"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

const rejectedHead = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: 200\r\n" +
	"Anthropic-Ratelimit-Unified-Status: rejected\r\nAnthropic-Ratelimit-Unified-Reset: 1796015225\r\n\r\n"

// A header is an answer: what becomes of its body makes it no trouble of the network.
func TestARejectionIsOneWhateverBecomesOfItsBody(t *testing.T) {
	for name, body := range map[string]func(net.Conn){
		"it never comes":          func(net.Conn) { time.Sleep(time.Hour) },
		"it stands still":         func(conn net.Conn) { _, _ = conn.Write([]byte(`{"type":"error"`)); time.Sleep(time.Hour) },
		"it is cut":               func(conn net.Conn) { _, _ = conn.Write([]byte(`{"type":"error"`)) },
		"it is cut at its border": func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, u := newBubbleRig(t, func(conn net.Conn, n int) {
					if n > 1 {
						goodStream(conn, n)
						return
					}
					_, _ = conn.Write([]byte(rejectedHead))
					body(conn)
				})
				wantServed(t, r.do(turn("s1")))
				if got := r.state.bound("claude/s1", testModel); u.count() != 2 || got != "b" {
					t.Errorf("bound to %q after %d requests, want b after 2", got, u.count())
				}
				if !r.state.blocked(claudeA) {
					t.Error("the account that was rejected is not blocked")
				}
			})
		})
	}
}

func TestAFailureThatSaysNothingAndIsCutIsTheNetworks(t *testing.T) {
	r := newRig(t)
	newRawUpstream(r, func(conn net.Conn, _ int) {
		_, _ = conn.Write([]byte("HTTP/1.1 404 Not Found\r\nContent-Length: 200\r\n\r\n"))
	})
	wantOwn(t, r.do(turn("s1")), 503, "could not reach the claude service over the network")
}

func TestAChangeOfProtocolThatNobodyAskedForIsAnsweredForTheUpstream(t *testing.T) {
	r := newRig(t)
	newRawUpstream(r, func(conn net.Conn, _ int) {
		_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"))
	})
	wantOwn(t, r.do(turn("s1")), 503, "changed the protocol (HTTP 101)")
	if got := r.state.bound("claude/s1", testModel); got != "" {
		t.Errorf("bound to %q by no answer", got)
	}
}

func TestAccountsWithoutLeaseUseUpNoAttempt(t *testing.T) {
	r := newRig(t, withLimits(Limits{Attempts: 1}))
	for _, account := range []quota.AccountID{claudeA, claudeB} {
		r.refuse(account, &LeaseRefusedError{Code: providerv1.RefusalCode_REFUSAL_CODE_SIGNED_OUT, Reason: "sign in"})
	}
	wantServed(t, r.do(turn("s1")))
	if got := r.accountsOf(); got != "c" {
		t.Errorf("turns reached %q, want c", got)
	}
}

func TestARefusalOfWhatIsNoTurnTellsNothingOfTheAccountsWindows(t *testing.T) {
	for status, observed := range map[int]int{200: 1, 429: 0} {
		r := newRig(t)
		r.state.bind("claude/s1", testModel, claudeA)
		newRawUpstream(r, func(conn net.Conn, _ int) {
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d Status\r\nAnthropic-Ratelimit-Unified-Status: rejected\r\nContent-Length: 2\r\n\r\n{}", status)
		})
		if got := r.do(count("s1")); got.status != status {
			t.Errorf("status %d, want the upstream's %d", got.status, status)
		}
		if got := len(r.adapters.observations()); got != observed {
			t.Errorf("%d observations of an answer with status %d, want %d", got, status, observed)
		}
	}
}
