package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/noria-dev/noria/core/quota"
	"github.com/noria-dev/noria/core/state"
)

// BenchmarkAgainstBareProxy measures what a streamed turn costs through nothing, through a bare httputil.ReverseProxy
// and through the daemon's proxy over its real state, in one run: the time to the first byte (ttfb), the CPU time of the
// whole process per request (client, proxy and upstream together, so that differences count), and the share of streams
// that did not arrive whole. "closed" keeps as many clients busy as there are processors; "low" sends one request every
// two milliseconds, where wake-ups are what costs.
func BenchmarkAgainstBareProxy(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"small", 4 << 10}, {"2MB", 2 << 20}} {
		for _, load := range []string{"closed", "low"} {
			for _, through := range []string{"direct", "bare", "noria"} {
				b.Run(fmt.Sprintf("%s/%s/%s", size.name, load, through), func(b *testing.B) {
					upstream := serveHTTP(b, http.HandlerFunc(benchmarkUpstream))
					base := upstream
					switch through {
					case "bare":
						base = serveHTTP(b, bareProxy(b, upstream))
					case "noria":
						base = benchmarkProxy(b, upstream)
					}
					measure(b, base, load, size.bytes)
				})
			}
		}
	}
}

// benchmarkUpstream reads the request and streams a short answer with the headers and events of a real one.
func benchmarkUpstream(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, name := range []string{"status", "5h-status", "5h-reset", "5h-utilization", "7d-status", "7d-reset", "7d-utilization", "representative-claim"} {
		h.Set("anthropic-ratelimit-unified-"+name, "1")
	}
	flush := http.NewResponseController(w)
	_, _ = io.WriteString(w, claudeStart)
	_ = flush.Flush()
	for range 20 {
		_, _ = io.WriteString(w, claudeDelta)
		_ = flush.Flush()
	}
	_, _ = io.WriteString(w, claudeStop)
}

func bareProxy(b *testing.B, upstream string) http.Handler {
	target, err := url.Parse(upstream)
	if err != nil {
		b.Fatal(err)
	}
	transport := newTransport()
	b.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
}

func benchmarkProxy(b *testing.B, upstream string) string {
	store := openStore(b)
	r := newRig(b, func(_ *rig, o *Options) { o.State = store })
	for account := range r.adapters.bases {
		r.adapters.bases[account] = upstream
	}
	r.proxy.events = discardEvents{}
	return "http://" + r.addr + "/claude"
}

type discardEvents struct{}

func (discardEvents) Record(Event) {}

// openStore opens the real state over three accounts of claude with the usual windows.
func openStore(t testing.TB) *state.Store {
	t.Helper()
	return openStoreOn(t, state.NewMemoryLog(false))
}

func openStoreOn(t testing.TB, log state.Log) *state.Store {
	t.Helper()
	store, err := state.Open(log, state.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var configs []state.AccountConfig
	for _, id := range []quota.AccountID{claudeA, claudeB, claudeC} {
		configs = append(configs, state.AccountConfig{ID: id, Enabled: true, Windows: []quota.Declaration{
			{ID: "five_hour", Kind: quota.KindSession, Length: 5 * time.Hour}, {ID: "seven_day", Kind: quota.KindWeekly, Length: 7 * 24 * time.Hour},
		}})
	}
	if err := store.ApplyAccounts(configs, time.Now()); err != nil {
		t.Fatal(err)
	}
	return store
}

// measure runs b.N requests of bound sessions.
func measure(b *testing.B, base, load string, size int) {
	body := `{"model":"` + testModel + `","stream":true,"messages":["` + strings.Repeat("x", size) + `"]}`
	clients := 1
	if load == "closed" {
		clients = runtime.GOMAXPROCS(0)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	sessions := make([]*benchmarkClient, clients)
	for i := range sessions {
		sessions[i] = &benchmarkClient{transport: transport, url: base + "/v1/messages", session: fmt.Sprintf("s%d", i), body: body}
		sessions[i].turn(b) // binds, and opens the connections
		sessions[i].firstBytes = nil
	}
	var next atomic.Int64
	var all sync.WaitGroup
	before := cpuTime(b)
	b.ResetTimer()
	for _, c := range sessions {
		all.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if load == "low" {
					time.Sleep(2 * time.Millisecond)
				}
				c.turn(b)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	var firstBytes []time.Duration
	lost := 0
	for _, c := range sessions {
		firstBytes = append(firstBytes, c.firstBytes...)
		lost += c.lost
	}
	slices.Sort(firstBytes)
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e3, "cpu-µs/op")
	b.ReportMetric(float64(firstBytes[len(firstBytes)/2])/1e3, "ttfb-p50-µs")
	b.ReportMetric(float64(firstBytes[len(firstBytes)*99/100])/1e3, "ttfb-p99-µs")
	b.ReportMetric(float64(lost)/float64(b.N)*100, "lost-%")
}

type benchmarkClient struct {
	transport  *http.Transport
	url        string
	session    string
	body       string
	firstBytes []time.Duration
	lost       int
}

func (c *benchmarkClient) turn(b *testing.B) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, c.url, strings.NewReader(c.body))
	if err != nil {
		b.Error(err)
		return
	}
	req.Header.Set("X-Noria-Key", testKey)
	req.Header.Set("X-Claude-Code-Session-Id", c.session)
	began := time.Now()
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		b.Error(err)
		return
	}
	defer resp.Body.Close()
	from := bufio.NewReader(resp.Body)
	_, _ = from.ReadByte()
	c.firstBytes = append(c.firstBytes, time.Since(began))
	answer, err := io.ReadAll(from)
	if resp.StatusCode != 200 {
		b.Errorf("status %d", resp.StatusCode)
	}
	if err != nil || !bytes.HasSuffix(answer, []byte(claudeStop)) {
		c.lost++
	}
}

// cpuTime of this process so far, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}
