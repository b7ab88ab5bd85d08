package plugin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// usage is what must not grow with the number of crashes.
type usage struct{ descriptors, goroutines, children, sockets int }

func (b *bench) usage() usage {
	b.t.Helper()
	fds, _ := os.ReadDir("/dev/fd")
	sockets, _ := filepath.Glob(filepath.Join(b.dir, "run", "*"))
	return usage{len(fds), runtime.NumGoroutine(), len(childrenOf(os.Getpid())), len(sockets)}
}

// childrenOf lists children, zombies included.
func childrenOf(pid int) []int {
	var children []int
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			children = append(children, child)
		}
	}
	return children
}

// calls are what a host asks of an adapter that is ready, each ended by whatever the adapter does.
func (b *bench) calls(rpc string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c := b.client()
	switch rpc {
	case "Lease":
		c.DropLease("work")
		_, _ = c.Lease(ctx, "work")
	case "Classify":
		_, _ = c.Classify(ctx, "work", &providerv1.ClassifyRequest{Status: 429}, time.Now())
	case "Observe":
		c.Observe("work", seen("opus", rand.Uint64(), "x-fake-status", fmt.Sprint(rand.Int())), time.Now())
	case "ReadQuota":
		_ = c.RefreshQuota(ctx, "work")
	case "CheckAuth":
		_, _ = c.CheckAuth(ctx, "work")
	case "Unavailable":
		_, _ = c.Unavailable(ctx, &providerv1.UnavailableRequest{})
	}
}

// crashCampaign makes an adapter crash in every way a number of times, and fails if anything grows or if it is not
// started again every time.
func crashCampaign(t *testing.T, crashes int) {
	timing := quick()
	timing.healthEvery, timing.healthTime, timing.healthMisses = 20*time.Millisecond, 500*time.Millisecond, 2
	timing.classify, timing.call, timing.leaseTime, timing.leaseWait = 200*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	timing.readQuota, timing.observe, timing.configure, timing.start = 200*time.Millisecond, 200*time.Millisecond, 2*time.Second, 5*time.Second
	timing.drain, timing.termGrace = 100*time.Millisecond, 50*time.Millisecond
	b := newBench(t, timing, Hooks{})
	rpcs := []string{"Lease", "Classify", "Observe", "ReadQuota", "CheckAuth", "Unavailable"}
	startRPCs := []string{"start", "Init", "Describe", "Configure", "Profile"}
	actions := []string{actExit, actKill, actStop, actHang}
	b.ready(b.fake(fakeConfig{}))
	// The first crashes fill pools and caches that stay.
	var before usage
	var starts, heap []float64
	for n := range crashes {
		if n == 10 {
			b.settle()
			before = b.usage()
		}
		action := actions[n%len(actions)]
		switch n % 3 {
		case 0: // a signal from outside, while calls run
			pid := b.info().PID
			signal := map[string]syscall.Signal{actExit: syscall.SIGTERM, actKill: syscall.SIGKILL, actStop: syscall.SIGSTOP, actHang: syscall.SIGSEGV}[action]
			_ = syscall.Kill(pid, signal)
			b.calls(rpcs[n%len(rpcs)])
		case 1: // in a call
			rpc := rpcs[n%len(rpcs)]
			b.recovers(b.spec(b.info().Path, fakeConfig{Mark: fmt.Sprint(n), Actions: map[string]string{rpc: action}}))
			b.calls(rpc)
		case 2: // during a start
			rpc := startRPCs[n%len(startRPCs)]
			if err := b.apply(b.fake(fakeConfig{Mark: fmt.Sprint(n)}, rpc+"="+action)); err == nil {
				t.Errorf("crash %d: start with %s=%s succeeded", n, rpc, action)
			}
		}
		began := time.Now()
		b.recovers(b.fake(fakeConfig{Mark: fmt.Sprint("back ", n)}))
		starts = append(starts, time.Since(began).Seconds()*1000)
		if _, err := b.client().Unavailable(t.Context(), &providerv1.UnavailableRequest{Sentence: "x"}); err != nil && !errors.Is(err, ErrAway) {
			t.Errorf("crash %d: %v", n, err)
		}
		if n%100 == 99 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap = append(heap, float64(m.HeapAlloc)/(1<<20))
		}
	}
	b.settle()
	var after usage
	b.eventually(fmt.Sprintf("as little is in use as before the crashes: %+v", before), func() bool {
		after = b.usage()
		return after.descriptors <= before.descriptors+2 && after.goroutines <= before.goroutines+4 &&
			after.children == before.children && after.sockets == before.sockets
	})
	p50, p99 := percentiles(starts)
	t.Logf("%d crashes: %+v, then %+v; apply to ready p50 %.0f ms p99 %.0f ms; heap MiB %.1f", crashes, before, after, p50, p99, heap)
}

// recovers applies the spec; on a busy machine the first start may take too long, and the next is awaited.
func (b *bench) recovers(spec Spec) {
	b.t.Helper()
	if b.apply(spec) != nil {
		b.eventually("adapter is ready again", func() bool { return b.info().State == StateReady })
	}
}

// settle returns when only the present adapter runs, and nothing of those before is on its way out.
func (b *bench) settle() {
	b.t.Helper()
	b.eventually("only one adapter runs", func() bool {
		u := b.usage()
		return u.children == 1 && u.sockets == 1 && b.info().State == StateReady
	})
	runtime.GC()
}

func percentiles(values []float64) (p50, p99 float64) {
	if len(values) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2], sorted[len(sorted)*99/100]
}

func TestCrashesLeaveNothingBehind(t *testing.T) { crashCampaign(t, 24) }

// runHost is a daemon that is going to be killed: it runs adapters and prints their process ids.
func runHost(dir string) {
	var specs []Spec
	raw, err := os.ReadFile(filepath.Join(dir, "specs.json"))
	if err == nil {
		err = json.Unmarshal(raw, &specs)
	}
	if err != nil {
		fmt.Println("error", err)
		return
	}
	host, err := newHost(Options{
		Catalog: CatalogOptions{PluginDir: filepath.Join(dir, "plugins"), CacheDir: filepath.Join(dir, "cache")},
		RunDir:  filepath.Join(dir, "run"),
	}, quick())
	if err != nil {
		fmt.Println("error", err)
		return
	}
	for _, r := range host.Apply(context.Background(), specs) {
		if r.Err != nil {
			fmt.Println("error", r.Err)
			return
		}
	}
	for _, info := range host.List() {
		fmt.Println(info.PID)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// orphanCampaign kills daemons and looks for what they leave: nothing, within the time.
func orphanCampaign(t *testing.T, kills int, within time.Duration) {
	b := newBench(t, quick(), Hooks{})
	specs, err := json.Marshal([]Spec{b.fake(fakeConfig{})})
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	var slowest time.Duration
	for n := range kills {
		dir, err := os.MkdirTemp("", "nk")
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "specs.json"), specs, 0o600))
		host := exec.Command(self, hostCommand, dir)
		stdin, err := host.StdinPipe()
		must(t, err)
		out, err := host.StdoutPipe()
		must(t, err)
		must(t, host.Start())
		pids := readPIDs(t, out)
		must(t, host.Process.Kill())
		killed := time.Now()
		_ = host.Wait()
		_ = stdin.Close()
		for _, pid := range pids {
			for !gone(pid) && !isZombie(pid) {
				if time.Since(killed) > within {
					t.Fatalf("kill %d: adapter %d is left after %v", n, pid, within)
				}
				time.Sleep(time.Millisecond)
			}
		}
		slowest = max(slowest, time.Since(killed))
		must(t, os.RemoveAll(dir))
	}
	t.Logf("%d daemons killed, no adapter left; slowest %v", kills, slowest)
}

func readPIDs(t *testing.T, out io.Reader) []int {
	t.Helper()
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			return pids
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil || pid <= 1 {
			t.Fatalf("daemon says %q", lines.Text())
		}
		pids = append(pids, pid)
	}
	t.Fatal("daemon ended")
	return nil
}

// isZombie is true for one that is dead and whose new parent does not reap it.
func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}

func TestKilledDaemonLeavesNoAdapter(t *testing.T) { orphanCampaign(t, 5, time.Minute) }
