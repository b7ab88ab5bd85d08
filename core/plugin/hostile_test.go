package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noria-dev/noria/core/internal/printable"
	"github.com/noria-dev/noria/sdk/wire"
)

// hostileBench has one good adapter beside the hostile one; whatever that does, the good one must not notice.
func hostileBench(t *testing.T) (b *bench, good Spec) {
	t.Helper()
	b = newBench(t, quick(), Hooks{})
	good = b.spec(b.script("noria-provider-good", fakeScript(t)), fakeConfig{})
	good.Name = "good"
	b.ready(good)
	return b, good
}

// hostile is the spec of an executable with that text, for a provider of its own.
func (b *bench) hostile(text string) Spec {
	b.t.Helper()
	spec := b.spec(b.script("hostile", text), fakeConfig{})
	spec.Name, spec.Provider = "hostile", "hostile"
	return spec
}

func (b *bench) infoOf(name string) Info {
	b.t.Helper()
	for _, info := range b.host.List() {
		if info.Name == name {
			return info
		}
	}
	b.t.Fatalf("no adapter %s in the list", name)
	return Info{}
}

// silence is how long a start may take of which nothing is to come.
const silence = time.Second

// allow sets how long the next starts may take: the good adapter is ready and the hostile one not yet begun.
func (b *bench) allow(reason Reason) {
	if b.host.launcher.timing.start = b.host.timing.start; reason == ReasonStartTimeout {
		b.host.launcher.timing.start = silence
	}
}

// failure applies the hostile spec beside the good one and returns how it failed.
func (b *bench) failure(hostile, good Spec) *Failure {
	b.t.Helper()
	var failure *Failure
	if err := b.apply(hostile, good); !errors.As(err, &failure) {
		b.t.Fatalf("apply: %v, want a failure\n%s", err, b.log)
	}
	return failure
}

// untouched checks that the good adapter still is the process it was and answers.
func (b *bench) untouched(pid int) {
	b.t.Helper()
	if now := b.infoOf("good"); now.State != StateReady || now.PID != pid {
		b.t.Errorf("other adapter: %s with pid %d, want ready with pid %d", now.State, now.PID, pid)
	}
	c, err := b.host.Client("fake")
	must(b.t, err)
	if err := c.RefreshQuota(b.t.Context(), "work"); err != nil {
		b.t.Errorf("other adapter does not answer: %v", err)
	}
}

// marked lists living processes that carry a mark of this process's adapters and whose command line holds what.
func marked(t *testing.T, what string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // no such view of processes on this system
	}
	parent := wire.EnvParent + "=" + strconv.Itoa(os.Getpid()) + "\x00"
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		environ, _ := os.ReadFile("/proc/" + entry.Name() + "/environ")
		command, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		ours := bytes.Contains(environ, []byte(envMark+"=")) && bytes.Contains(environ, []byte(parent))
		if ours && bytes.Contains(command, []byte(what)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// noRaw fails when what must not get out of a hostile line did: control characters, and its own words.
func noRaw(t testing.TB, where, text string, words ...string) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if !printable.IsLine(line, len(line)) {
			t.Errorf("%s holds unprintable bytes: %q", where, line)
		}
	}
	for _, word := range words {
		if strings.Contains(text, word) {
			t.Errorf("%s holds %q", where, word)
		}
	}
}

func TestHandshakeThatIsNoneIsRefusedByItsReason(t *testing.T) {
	reasons := map[string]Reason{
		"h01-empty":        ReasonStartTimeout,
		"h02-blank":        ReasonHandshake,
		"h04-core-version": ReasonHandshakeVersion,
		"h05-api-version":  ReasonHandshakeVersion,
		"h06-api-huge":     ReasonHandshakeVersion,
		"h07-api-negative": ReasonHandshakeVersion,
		"h08-udp":          ReasonHandshakeNetwork,
		"h09-tcp-loopback": ReasonHandshakeNetwork,
		"h10-tcp-daemon":   ReasonHandshakeNetwork,
		"h12-unix-outside": ReasonHandshakeAddress,
		"h14-unix-long":    ReasonHandshakeAddress,
		"h15-netrpc":       ReasonHandshakeProtocol,
		"h16-cert-bad-b64": ReasonHandshakeAddress,
		"h17-cert-junk":    ReasonHandshakeAddress,
		"h18-nul":          ReasonHandshake,
		"h19-crlf":         ReasonHandshake,
		"h20-banner-first": ReasonHandshake,
		"h21-escapes":      ReasonHandshake,
		"h23-many-fields":  ReasonHandshake,
		"h24-no-newline":   ReasonStartTimeout,
		"h25-utf16":        ReasonHandshake,
	}
	files, err := filepath.Glob("testdata/hostile/handshake/*.txt")
	must(t, err)
	if len(files) != len(reasons) {
		t.Fatalf("%d files for %d reasons", len(files), len(reasons))
	}
	b, good := hostileBench(t)
	pid := b.infoOf("good").PID
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(file)
			must(t, err)
			b.allow(reasons[name])
			f := b.failure(b.hostile("#!/bin/sh\n# "+name+"\ncat "+path+"; exec sleep 611\n"), good)
			if f.Reason != reasons[name] {
				t.Errorf("reason = %s, want %s", f.Reason, reasons[name])
			}
			raw, err := os.ReadFile(file)
			must(t, err)
			words := strings.FieldsFunc(string(raw), func(r rune) bool { return r == '|' || r == '\n' })
			words = append(words, "owned", "run/user")
			noRaw(t, "error", f.Error(), longOnly(words)...)
			noRaw(t, "log", b.log.String(), "owned", "run/user", "docker.sock")
			b.ready(good)
			if left := marked(t, "sleep\x00611"); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
	t.Run("standard output that ends at once", func(t *testing.T) {
		b.allow("")
		f := b.failure(b.hostile("#!/bin/sh\nexec sleep 611 >&-\n"), good)
		if f.Reason != ReasonHandshake {
			t.Errorf("reason = %s, want %s", f.Reason, ReasonHandshake)
		}
		b.ready(good)
		if left := marked(t, "sleep\x00611"); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	})
	b.untouched(pid)
}

// longOnly leaves out words that any text may hold.
func longOnly(words []string) []string {
	var long []string
	for _, w := range words {
		if len(w) > 6 {
			long = append(long, w)
		}
	}
	return long
}

func TestHandshakeWithoutCertificateIsRefused(t *testing.T) {
	b, good := hostileBench(t)
	for name, field := range map[string]string{
		"none":   "",
		"junk":   strings.Repeat("A", 64),
		"no b64": strings.Repeat("!", 64),
		"short":  "AAAA",
	} {
		t.Run(name, func(t *testing.T) {
			// The socket is where it belongs, so that only the certificate is wrong.
			f := b.failure(b.hostile(fakeScript(t, "socket=listen", "certificate="+field)), good)
			if f.Reason != ReasonHandshakeTLS {
				t.Errorf("reason = %s (%v), want %s", f.Reason, f, ReasonHandshakeTLS)
			}
			b.ready(good)
		})
	}
}

// hostilePlugin is what becomes of one of the executables in testdata.
type hostilePlugin struct {
	file   string
	reason Reason
	exit   string
	check  func(t *testing.T, b *bench, f *Failure)
}

func TestHostileExecutableHarmsNobody(t *testing.T) {
	cases := []hostilePlugin{
		{"p03-exit3-stderr", ReasonExited, "exit status 3", func(t *testing.T, b *bench, f *Failure) {
			if last := strings.Join(f.Stderr, " "); !strings.Contains(last, "boom") || strings.Contains(last, "CANARY") {
				t.Errorf("stderr in the failure = %q, want the line without its credential", last)
			}
			noRaw(t, "log", b.log.String(), "CANARY")
		}},
		{"p05-flood-stderr", ReasonHandshake, "", nil},
		{"p06-long-line-later", ReasonHandshakeNetwork, "", nil},
		{"p07-background-child", ReasonHandshake, "", nil},
		{"p09-stop-self", ReasonHandshakeAddress, "", nil},
		{"p10-daemonize", ReasonHandshake, "", nil},
		{"p11-fork-many", ReasonHandshake, "", nil},
		{"p12-eat-fd", ReasonStartTimeout, "", func(t *testing.T, b *bench, f *Failure) {
			// ls itself, the three standard ones and those the script opened; nothing of the daemon's.
			if got := strings.TrimSpace(strings.Join(f.Stderr, " ")); got != "252" && got != "251" && got != "250" {
				t.Errorf("executable sees %s descriptors", got)
			}
		}},
		{"p15-slow-handshake", ReasonStartTimeout, "", nil},
		{"p16-replace-binary", ReasonExited, "exit status 1", nil},
		{"p17-crash-after", ReasonExited, "signal: segmentation fault", nil},
		{"p18-stdin-reader", ReasonStartTimeout, "", nil},
	}
	for _, c := range cases {
		t.Run(c.file, func(t *testing.T) {
			b, good := hostileBench(t)
			b.allow(c.reason)
			pid := b.infoOf("good").PID
			text, err := os.ReadFile("testdata/hostile/plugins/" + c.file + ".sh")
			must(t, err)
			f := b.failure(b.hostile(string(text)), good)
			if f.Reason != c.reason && !(c.file == "p10-daemonize" && f.Reason == ReasonExited) {
				t.Errorf("reason = %s (%v), want %s", f.Reason, f, c.reason)
			}
			if c.exit != "" && !strings.HasPrefix(f.Exit, c.exit) {
				t.Errorf("exit = %q, want %q", f.Exit, c.exit)
			}
			if c.check != nil {
				c.check(t, b, f)
			}
			b.untouched(pid)
			b.ready(good) // stops the hostile one
			if left := marked(t, "sleep"); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
			noRaw(t, "log", b.log.String())
		})
	}
}

func TestFloodOfStandardErrorIsCappedAndCounted(t *testing.T) {
	b, good := hostileBench(t)
	pid := b.infoOf("good").PID
	fixture, err := filepath.Abs("testdata/hostile/plugins/p05-flood-stderr.sh")
	must(t, err)
	// The shell keeps the standard output open, so that the flood goes on until it is stopped.
	began := time.Now()
	applied := make(chan error, 1)
	go func() { applied <- b.apply(b.hostile("#!/bin/sh\nbash "+fixture+"\n:\n"), good) }()
	b.eventually("dropped lines are counted", func() bool {
		for _, info := range b.host.List() {
			if info.Name == "hostile" && info.DroppedLines > 10*linesBurst {
				return true
			}
		}
		return false
	})
	b.untouched(pid)
	b.ready(good)
	if err := <-applied; err == nil {
		t.Error("a flood is an adapter")
	}
	lines := strings.Count(b.log.String(), "plugin.hostile: eeee")
	most := linesBurst + int(time.Since(began).Seconds()+1)*linesPerSecond
	if lines < linesBurst || lines > most {
		t.Errorf("%d lines logged, want the burst of %d and %d per second", lines, linesBurst, linesPerSecond)
	}
}

// eventually returns when the condition holds.
func (b *bench) eventually(what string, holds func() bool) {
	b.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			b.t.Fatalf("never: %s\n%.4000s", what, b.log)
		}
		<-ticker.C
	}
}

func TestExecutableThatReplacesItselfIsRefusedAtTheNextStart(t *testing.T) {
	b, good := hostileBench(t)
	spec := b.hostile("") // the script replaces the file at its configured path, which it gets as $0
	text := "#!/bin/bash\nset -- " + spec.Path + "\ncp -f /bin/true \"$1.new\"; mv -f \"$1.new\" \"$1\"; exit 1\n"
	spec = b.hostile(text)
	if f := b.failure(spec, good); f.Reason != ReasonExited {
		t.Fatalf("first start: %v", f)
	}
	info := b.awaitState("failed", in(StateFailed))
	if info.Failure.Reason != ReasonDigestMismatch || info.Digest != DigestMismatch {
		t.Errorf("second start: %v, digest %s", info.Failure, info.Digest)
	}
}

func TestStandardOutputOfAReadyAdapterIsDrained(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	// A child that shares the pipes writes a long line and a flood to the standard output that go-plugin reads.
	begin := filepath.Join(b.dir, "begin")
	path := b.script("noria-provider-fake", strings.Replace(fakeScript(t), "exec", `(
while [ ! -e `+begin+` ]; do sleep 0.05; done
head -c 70000 /dev/zero | tr '\0' b; echo; seq 200000
echo '{"@message": 1}' >&2; echo '{"@level": "info", "@message": 1}' >&2
sleep 1; echo drained >&2
) &
exec`, 1))
	b.ready(b.spec(path, fakeConfig{}))
	must(t, os.WriteFile(begin, nil, 0o600))
	b.awaitLog("drained")
	if _, err := b.client().CheckAuth(t.Context(), "work"); err != nil {
		t.Errorf("adapter does not answer after the flood: %v", err)
	}
}

// awaitLog returns when the log holds the text.
func (b *bench) awaitLog(text string) {
	b.t.Helper()
	b.eventually("log holds "+text, func() bool { return strings.Contains(b.log.String(), text) })
}

func TestHostileStringsAreNeverLoggedRaw(t *testing.T) {
	raw, err := os.ReadFile("../internal/printable/testdata/escapes.txt")
	must(t, err)
	log := &syncBuffer{}
	out := newTestOutput(log)
	out.drain(bytes.NewReader(raw))
	for line := range bytes.Lines(raw) {
		entry := fmt.Sprintf(`{"@level":"warn","@message":%s,"key":%s}`+"\n", quoted(line), quoted(line))
		out.drain(strings.NewReader(entry))
	}
	noRaw(t, "log", log.String())
	noRaw(t, "last lines", strings.Join(out.lastLines(), "\n"))
}
