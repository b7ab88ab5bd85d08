package plugin

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/noria-dev/noria/sdk/wire"
)

// envMark names the variable by which processes that left their group are found.
const envMark = "NORIA_PLUGIN_MARK"

// Waits for a process that is to end.
const (
	termGrace = 2 * time.Second        // between SIGTERM and SIGKILL
	killGrace = time.Second            // after SIGKILL; longer only when the kernel holds the process
	pipeGrace = 250 * time.Millisecond // for the pipes after the process, when an escaped child holds them
)

// process is one running executable in a process group of its own. It is go-plugin's runner, made so that nothing which
// the executable does to its pipes, or does not do, reaches go-plugin: it is handed one checked line of standard output
// and an empty standard error, and both end when the process does.
type process struct {
	spawner *spawner
	output  *output
	cmd     *exec.Cmd
	// dir is the private directory of its socket, removed with the process.
	dir  string
	mark string

	stdin          *os.File // our end of its standard input; it ends with the daemon
	stdout, stderr *os.File
	readers        sync.WaitGroup
	// takeStdout gets the standard output of a process that is no adapter; nil: the handshake is expected.
	takeStdout io.Writer

	line       *io.PipeWriter // to go-plugin
	lineReader *io.PipeReader
	empty      *io.PipeWriter
	emptyRead  *io.PipeReader

	mu      sync.Mutex // guards below
	refused *Failure
	// greeted: its handshake was good.
	greeted bool
	// ordered: we told it to end.
	ordered bool
	// status says how it ended by itself; empty when it was told to.
	status string

	// reaped is closed, under mu, when the group's number may be another one's from now on.
	reaped chan struct{}
	// exited is closed when the process was reaped, its group killed and its pipes closed.
	exited chan struct{}
	stop   sync.Once
	// grace is between SIGTERM and SIGKILL, killGrace after that.
	grace, killGrace time.Duration
}

var _ runner.Runner = (*process)(nil)

// newProcess prepares cmd, whose environment go-plugin filled in.
func newProcess(spawner *spawner, out *output, cmd *exec.Cmd, dir string) *process {
	p := &process{spawner: spawner, output: out, cmd: cmd, dir: dir, grace: termGrace, killGrace: killGrace,
		reaped: make(chan struct{}), exited: make(chan struct{})}
	p.mark = envMark + "=" + rand.Text()
	p.lineReader, p.line = io.Pipe()
	p.emptyRead, p.empty = io.Pipe()
	cmd.Env = append(cmd.Env, p.mark, wire.EnvStdinPipe+"=1", wire.EnvParent+"="+strconv.Itoa(os.Getpid()))
	return p
}

// Start starts it. The context does nothing: there is nothing to wait for.
func (p *process) Start(context.Context) error {
	theirs, err := p.openPipes()
	defer closeAll(theirs...)
	if err == nil {
		err = p.spawn()
	}
	if err != nil {
		p.neverStarted(err)
		return err
	}
	p.readers.Go(func() { p.readStdout(p.stdout) })
	p.readers.Go(func() { p.output.drain(p.stderr) })
	go p.reap()
	return nil
}

// spawn holds the lock, so that whoever ends the process meanwhile ends the one that came of it.
func (p *process) spawn() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ordered {
		return context.Canceled
	}
	return p.spawner.start(p.cmd)
}

// neverStarted leaves it as one that has ended.
func (p *process) neverStarted(err error) {
	p.refuse(&Failure{Reason: ReasonExecFailed, Detail: execDetail(err)})
	close(p.reaped)
	p.finish()
}

func execDetail(err error) string {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return "executable is not one for this machine"
	case errors.Is(err, syscall.ENOENT):
		return "interpreter of the executable is missing"
	case errors.Is(err, syscall.EACCES):
		return "executable may not be run; its cache must not be on a noexec file system"
	}
	return "executable cannot be started"
}

func (p *process) openPipes() (theirs []*os.File, err error) {
	in, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin = ours
	out, stdout, err := os.Pipe()
	if err != nil {
		return []*os.File{in}, err
	}
	p.stdout = out
	errs, stderr, err := os.Pipe()
	if err != nil {
		return []*os.File{in, stdout}, err
	}
	p.stderr = errs
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, stdout, stderr
	return []*os.File{in, stdout, stderr}, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// readStdout takes the first line as the handshake and logs the rest, to the end of the pipe.
func (p *process) readStdout(r io.Reader) {
	if p.takeStdout != nil {
		_, _ = io.Copy(p.takeStdout, r)
		return
	}
	seen, refused := false, false
	readLines(r, func(line []byte, cut bool) {
		switch {
		case refused:
			// What follows a refused handshake may be another one; none of it is shown.
		case seen:
			p.output.line(line, cut)
		default:
			seen = true
			refused = !p.greet(string(line), cut)
		}
	})
	if !seen {
		p.silent()
	}
}

// greet hands the first line of output to go-plugin if it is a good handshake.
func (p *process) greet(line string, cut bool) bool {
	failure := checkHandshake(line, p.dir)
	if cut {
		failure = malformed()
	}
	if failure != nil {
		p.refuse(failure)
		return false
	}
	p.mu.Lock()
	p.greeted = true
	p.mu.Unlock()
	_, _ = io.WriteString(p.line, line+"\n")
	return true
}

// silent is for a standard output that ended before a line. Mostly the process has ended too, which says more.
func (p *process) silent() {
	timer := time.NewTimer(pipeGrace)
	defer timer.Stop()
	select {
	case <-p.reaped:
	case <-timer.C:
		p.refuse(&Failure{Reason: ReasonHandshake, Detail: "standard output ended without a handshake"})
	}
}

// refuse notes why it will not do, and lets go-plugin see the end of the output, at which it gives up.
func (p *process) refuse(f *Failure) {
	p.mu.Lock()
	// What comes out of it when it is told to end is no reason.
	if !p.ordered {
		p.refused = f
	}
	p.mu.Unlock()
	_ = p.line.Close()
}

// startFailure says why a start did not succeed, once the process is gone.
func (p *process) startFailure() *Failure {
	p.end(p.grace)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.refused != nil:
		f := *p.refused
		f.Exit = p.status
		return &f
	case p.status != "":
		return &Failure{Reason: ReasonExited, Detail: "adapter ended before it was connected", Exit: p.status}
	case p.greeted:
		return &Failure{Reason: ReasonConnect, Detail: "nobody answers at the socket of the adapter"}
	}
	return &Failure{Reason: ReasonStartTimeout, Detail: "adapter sent no handshake in time"}
}

// reap waits for the process and ends all that is left of it.
func (p *process) reap() {
	awaitExit(p.cmd.Process.Pid)
	p.signal(syscall.SIGKILL)
	alone := p.markReaped()
	status := exitStatus(p.cmd.Wait())
	if alone {
		p.mu.Lock()
		p.status = status
		p.mu.Unlock()
	}
	killEscaped(p.mark)
	deadline := time.Now().Add(pipeGrace)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
	_ = p.line.Close()
	p.readers.Wait()
	p.finish()
}

// finish gives up the pipes and the directory.
func (p *process) finish() {
	closeAll(p.stdin, p.stdout, p.stderr)
	_ = p.line.Close()
	_ = p.empty.Close()
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
	close(p.exited)
}

// signal sends to the whole group, unless it is gone.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.reaped:
	default:
		if p.cmd.Process != nil {
			_ = syscall.Kill(-p.cmd.Process.Pid, sig)
		}
	}
}

// markReaped reports whether the process ended by itself.
func (p *process) markReaped() (alone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.reaped)
	return !p.ordered
}

// end stops the process: SIGTERM to the group, SIGKILL after grace. It returns when the process is gone, or when SIGKILL
// did not help within killGrace. Later calls wait for the first.
func (p *process) end(grace time.Duration) {
	p.stop.Do(func() {
		p.order()
		if grace > 0 {
			p.signal(syscall.SIGTERM)
			p.signal(syscall.SIGCONT) // a stopped process takes no other signal
			if p.exitsWithin(grace) {
				return
			}
		}
		p.signal(syscall.SIGKILL)
		p.exitsWithin(p.killGrace)
	})
}

func (p *process) order() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ordered = true
}

func (p *process) exitsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

func exitStatus(err error) string {
	if err == nil {
		return "exit status 0"
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ProcessState.String()
	}
	return "exit status unknown"
}

// Wait returns when the process is gone.
func (p *process) Wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill ends the process. go-plugin calls it when a start fails.
func (p *process) Kill(context.Context) error {
	p.end(p.grace)
	return nil
}

func (p *process) done() <-chan struct{} { return p.exited }

// exit says how it ended by itself.
func (p *process) exit() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// Diagnose tells go-plugin nothing: of its error no more is used than that there is one.
func (*process) Diagnose(context.Context) string { return "" }

// Stdout gives the handshake line if it was a good one.
func (p *process) Stdout() io.ReadCloser { return p.lineReader }

// Stderr gives nothing: go-plugin's reader stops at long lines and panics at some.
func (p *process) Stderr() io.ReadCloser { return p.emptyRead }

// Name of the executable.
func (p *process) Name() string { return p.cmd.Path }

// ID is the process id.
func (p *process) ID() string { return strconv.Itoa(p.pid()) }

func (p *process) pid() int {
	if p.cmd.Process == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// PluginToHost changes nothing: both run in one file system.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin changes nothing.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
