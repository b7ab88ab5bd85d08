package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// maxClientOutput bounds what a client may print.
const maxClientOutput = 1 << 20

// ErrClientOutput is returned when a client printed more than 1 MiB.
var ErrClientOutput = errors.New("client printed more than 1 MiB")

// ClientOutput is what a client answered.
type ClientOutput struct {
	Stdout   []byte
	ExitCode int
}

// RunClient runs an official client to its end: without a shell and without input, in a process group of its own that is
// killed when patience or ctx ends, with its standard error dropped. See [Command] for its environment. An exit status
// other than 0 is no error.
func RunClient(ctx context.Context, command Command, patience time.Duration) (ClientOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	process, err := newClient(ctx, command)
	if err != nil {
		return ClientOutput{}, err
	}
	out := &boundedBuffer{limit: maxClientOutput}
	process.Stdout = out
	err = process.Run()
	endGroup(process)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ClientOutput{}, fmt.Errorf("run %s: %w", command.Argv[0], context.Cause(ctx))
	case out.exceeded:
		return ClientOutput{}, fmt.Errorf("run %s: %w", command.Argv[0], ErrClientOutput)
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		return ClientOutput{}, fmt.Errorf("run %s: %w", command.Argv[0], err)
	}
	return ClientOutput{Stdout: out.data.Bytes(), ExitCode: process.ProcessState.ExitCode()}, nil
}

// newClient prepares a process that ends, with all its children, when ctx does.
func newClient(ctx context.Context, command Command) (*exec.Cmd, error) {
	if len(command.Argv) == 0 || command.Argv[0] == "" {
		return nil, errors.New("run client: no command")
	}
	process := exec.CommandContext(ctx, command.Argv[0], command.Argv[1:]...)
	process.Env = clientEnvironment(os.Environ(), command)
	process.SysProcAttr = clientAttributes()
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
	process.WaitDelay = time.Second
	return process, nil
}

// endGroup ends what a client that has ended left running.
func endGroup(process *exec.Cmd) {
	if process.Process != nil {
		_ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL)
	}
}

// clientEnvironment is that of this process without credentials and base URLs of other kinds of use, which would divert
// the client from the account's own login, and with what the command sets.
func clientEnvironment(own []string, command Command) []string {
	removed := make(map[string]bool, len(command.Unset))
	for _, name := range command.Unset {
		removed[name] = true
	}
	var environment []string
	for _, entry := range own {
		name, _, _ := strings.Cut(entry, "=")
		if _, set := command.Env[name]; set || removed[name] || diverts(name) {
			continue
		}
		environment = append(environment, entry)
	}
	for name, value := range command.Env {
		environment = append(environment, name+"="+value)
	}
	return environment
}

func diverts(name string) bool {
	for _, suffix := range []string{"_API_KEY", "_TOKEN", "_BASE_URL"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// boundedBuffer drops what is above its limit and remembers that there was more.
type boundedBuffer struct {
	data     bytes.Buffer
	limit    int
	exceeded bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := min(b.limit-b.data.Len(), len(p))
	b.data.Write(p[:room])
	b.exceeded = b.exceeded || room < len(p)
	return len(p), nil
}
