package plugin

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
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
	// reaped: the group's number may be another one's from now on.
	reaped bool

	// exited is closed when the process was reaped, its group killed and its pipes closed.
	exited chan struct{}
	// status is set before exited is closed.
	status string
	stop   sync.Once
}

var _ runner.Runner = (*process)(nil)

// newProcess prepares cmd, whose environment go-plugin filled in; path is what is executed.
func newProcess(spawner *spawner, out *output, cmd *exec.Cmd, dir string) *process {
	p := &process{spawner: spawner, output: out, cmd: cmd, dir: dir, exited: make(chan struct{})}
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
		err = p.spawner.start(p.cmd)
	}
	if err != nil {
		closeAll(p.stdin, p.stdout, p.stderr)
		_ = os.RemoveAll(p.dir)
		return err
	}
	p.readers.Go(func() { p.readStdout(p.stdout) })
	p.readers.Go(func() { p.output.drain(p.stderr) })
	go p.reap()
	return nil
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
	first := true
	readLines(r, func(line []byte, cut bool) bool {
		if !first {
			p.output.line(line, cut)
			return true
		}
		first = false
		failure := checkHandshake(string(line), p.dir)
		if cut {
			failure = &Failure{Reason: ReasonHandshake, Detail: "first line of output is no handshake"}
		}
		if failure == nil {
			_, _ = p.line.Write(append(line, '\n'))
			return true
		}
		p.refuse(failure)
		// go-plugin gives up at the end of the pipe.
		_ = p.line.Close()
		return true
	})
}

func (p *process) refuse(f *Failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = f
}

func (p *process) refusal() *Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// reap waits for the process and ends all that is left of it.
func (p *process) reap() {
	awaitExit(p.cmd.Process.Pid)
	p.signal(syscall.SIGKILL)
	p.markReaped()
	p.status = exitStatus(p.cmd.Wait())
	killEscaped(p.mark)
	deadline := time.Now().Add(pipeGrace)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
	_ = p.line.Close()
	_ = p.empty.Close()
	p.readers.Wait()
	closeAll(p.stdin, p.stdout, p.stderr)
	_ = os.RemoveAll(p.dir)
	close(p.exited)
}

// signal sends to the whole group, unless it is gone.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

func (p *process) markReaped() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
}

// end stops the process: SIGTERM to the group, SIGKILL after grace. It returns when the process is gone, or after a
// second in which SIGKILL did not help. Later calls wait for the first.
func (p *process) end(grace time.Duration) {
	p.stop.Do(func() {
		if grace > 0 {
			p.signal(syscall.SIGTERM)
			p.signal(syscall.SIGCONT) // a stopped process takes no other signal
			if p.exitsWithin(grace) {
				return
			}
		}
		p.signal(syscall.SIGKILL)
		p.exitsWithin(killGrace)
	})
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
	p.end(termGrace)
	return nil
}

// Diagnose says why a start failed; go-plugin puts it into its error.
func (p *process) Diagnose(context.Context) string {
	if f := p.refusal(); f != nil {
		return string(f.Reason)
	}
	return strings.Join(p.output.lastLines(), "; ")
}

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
