package plugin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// testCertificate is one as an adapter puts it into its handshake.
func testCertificate(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	return base64.RawStdEncoding.EncodeToString(der)
}

func TestSocketThatNobodyServesIsNoAdapter(t *testing.T) {
	timing := quick()
	timing.start = 3 * time.Second
	b := newBench(t, timing, Hooks{})
	for name, mode := range map[string]string{"bound and not listened to": "bind", "listened to and silent": "listen"} {
		t.Run(name, func(t *testing.T) {
			var failure *Failure
			err := b.apply(b.spec(b.script("dead", fakeScript(t, "socket="+mode, "certificate="+testCertificate(t))), fakeConfig{}))
			if !errors.As(err, &failure) || failure.Reason != ReasonConnect && failure.Reason != ReasonInit {
				t.Errorf("apply: %v, want no connection", err)
			}
			must(t, b.apply())
		})
	}
}

func TestAdapterThatStopsItselfIsKilledAndStartedAgain(t *testing.T) {
	timing := quick()
	timing.healthEvery, timing.healthTime = 100*time.Millisecond, time.Second
	b := newBench(t, timing, Hooks{})
	b.ready(b.fake(fakeConfig{}))
	first := b.info().PID
	must(t, syscall.Kill(first, syscall.SIGSTOP))
	if lost := b.awaitState("backoff", in(StateBackoff)); lost.Failure.Reason != ReasonHealth {
		t.Errorf("failure = %v, want %s", lost.Failure, ReasonHealth)
	}
	again := b.awaitState("ready", in(StateReady))
	if again.PID == first || again.Restarts != 1 {
		t.Errorf("pid %d after %d, restarts %d", again.PID, first, again.Restarts)
	}
	if !gone(first) {
		t.Errorf("process %d is left", first)
	}
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestStoppedAdapterCannotHoldUpTheClose(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{}))
	pid := b.info().PID
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	b.close()
	if !gone(pid) {
		t.Errorf("process %d is left", pid)
	}
}

func TestChildrenOfAnAdapterGoWithIt(t *testing.T) {
	for name, child := range map[string]string{
		"in its group, holding the pipes":   "sleep 612 &",
		"in its group, ignoring SIGTERM":    "(trap '' TERM; sleep 612) &",
		"in a session of its own (escaped)": "setsid sleep 612 &",
		"escaped twice, and of the pipes":   "(setsid setsid sleep 612 >/dev/null 2>&1 &) ",
		"in a group of its own and stopped": "setsid sh -c 'kill -STOP $$; sleep 612' sleep612 &",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, quick(), Hooks{})
			path := b.script("noria-provider-fake", strings.Replace(fakeScript(t), "exec", child+"\nexec", 1))
			b.ready(b.spec(path, fakeConfig{}))
			if len(marked(t, "612")) == 0 {
				t.Fatal("no child to begin with")
			}
			b.close()
			if left := marked(t, "612"); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
}

func TestEnvironmentIsTheListAndNothingElse(t *testing.T) {
	for name, value := range map[string]string{
		"FAKE_SETTING": "seen", "FAKE_API_KEY": "canary", "OTHER_SETTING": "canary", "ANTHROPIC_BASE_URL": "canary",
		"XDG_CONFIG_HOME": "/xdg", "XDG_ACTIVATION_TOKEN": "canary", "NORIA_CANARY": "canary", "LANG": "C",
	} {
		t.Setenv(name, value)
	}
	b := newBench(t, quick(), Hooks{})
	spec := b.fake(fakeConfig{}, "environment")
	spec.Environment = []string{"FAKE_SETTING", "FAKE_API_KEY", "ANTHROPIC_BASE_URL"}
	b.ready(spec)
	b.awaitLog("FAKE_SETTING=seen")
	if strings.Contains(b.log.String(), "canary") {
		t.Errorf("adapter sees what it must not:\n%s", b.log)
	}
	if !strings.Contains(b.log.String(), "XDG_CONFIG_HOME=/xdg") {
		t.Error("adapter does not see XDG_CONFIG_HOME")
	}
	spec.Environment = nil
	b.ready(spec)
	if text := b.log.String(); strings.Count(text, "FAKE_SETTING=seen") != 1 {
		t.Error("adapter sees what its configuration does not allow")
	}
}

func TestEnvironment(t *testing.T) {
	host := []string{"PATH=/bin", "HOME=/h", "TMPDIR=/t", "LANG=C", "LC_ALL=C", "XDG_RUNTIME_DIR=/r", "A=1", "B=2", "A_TOKEN=x",
		"a_api_key=x", "X_BASE_URL=x", "PLUGIN_MIN_PORT=1", "NORIA_KEY=x", "DB_PASSWORD=x", "SOME_KEY=x", "=C:=x", "bad name=1"}
	all := []string{"A", "B", "A_TOKEN", "a_api_key", "X_BASE_URL", "PLUGIN_MIN_PORT", "NORIA_KEY", "DB_PASSWORD", "SOME_KEY", "bad name"}
	usual := []string{"HOME=/h", "LANG=C", "PATH=/bin", "TMPDIR=/t", "XDG_RUNTIME_DIR=/r"}
	cases := []struct {
		name               string
		described, allowed []string
		want               []string
	}{
		{"the usual without any wish", nil, nil, usual},
		{"a wish alone is not enough", []string{"A"}, nil, usual},
		{"a permission alone is not enough", nil, []string{"A"}, usual},
		{"wish and permission", []string{"A", "B"}, []string{"A"}, append([]string{"A=1"}, usual...)},
		{"keys, tokens, base URLs never", all, all, append([]string{"A=1", "B=2"}, usual...)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := environment(host, c.described, c.allowed); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDescriptorsOfTheDaemonStayWithIt(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "secret-descriptor"))
	must(t, err)
	defer file.Close()
	inherited, err := unix.Dup(int(file.Fd())) // without close-on-exec, as if from our own parent
	must(t, err)
	defer unix.Close(inherited)
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{}))
	pid := b.info().PID
	links, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	must(t, err)
	for _, link := range links {
		if target, _ := os.Readlink(link); strings.Contains(target, "secret-descriptor") {
			t.Errorf("adapter has inherited %s", target)
		}
	}
}

func TestMessageLargerThanTheLimitFailsTheCallAndNothingElse(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{Actions: map[string]string{"CheckAuth": actHuge}}))
	if _, err := b.client().CheckAuth(t.Context(), "work"); !errors.Is(err, ErrFailed) {
		t.Errorf("CheckAuth: %v, want %v", err, ErrFailed)
	}
	if _, err := b.client().Lease(t.Context(), "work"); err != nil {
		t.Errorf("Lease: %v", err)
	}
}

func TestErrorOfAnAdapterIsToldWithoutItsText(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	b.ready(b.fake(fakeConfig{Actions: map[string]string{"CheckAuth": actError}}))
	_, err := b.client().CheckAuth(t.Context(), "work")
	if !errors.Is(err, ErrFailed) {
		t.Fatalf("CheckAuth: %v, want %v", err, ErrFailed)
	}
	if strings.Contains(err.Error(), "refused") || strings.Contains(b.log.String(), "CANARY") {
		t.Errorf("text of the adapter gets out: %v", err)
	}
}

func TestRunDirectoryIsSweptAtStart(t *testing.T) {
	dir, err := os.MkdirTemp("", "nh")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	run := filepath.Join(dir, "run")
	must(t, os.MkdirAll(filepath.Join(run, socketDirPrefix+"123"), 0o700))
	must(t, os.Chmod(run, 0o700))
	l, err := net.Listen("unix", filepath.Join(run, socketDirPrefix+"123", "s"))
	must(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, l.Close())
	must(t, os.WriteFile(filepath.Join(run, "other"), nil, 0o600))
	h, err := newHost(Options{Catalog: CatalogOptions{CacheDir: filepath.Join(dir, "cache")}, RunDir: run}, quick())
	must(t, err)
	defer h.Close(t.Context())
	entries, err := os.ReadDir(run)
	must(t, err)
	if len(entries) != 1 || entries[0].Name() != "other" {
		t.Errorf("run directory holds %v, want what is not ours to sweep", entries)
	}
}

func TestRunDirectoryMustBePrivateAndShort(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	must(t, os.Mkdir(open, 0o700))
	must(t, os.Chmod(open, 0o755))
	for name, run := range map[string]string{
		"readable by others": open,
		"relative":           "run",
		"too long":           filepath.Join(dir, strings.Repeat("x", 60)),
	} {
		t.Run(name, func(t *testing.T) {
			h, err := newHost(Options{Catalog: CatalogOptions{CacheDir: filepath.Join(dir, "cache")}, RunDir: run}, quick())
			if err == nil {
				_ = h.Close(t.Context())
				t.Error("accepted")
			}
		})
	}
}
