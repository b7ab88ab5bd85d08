package plugin

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-plugin"
)

func TestHostAttachesToARunningAdapterInDevOnly(t *testing.T) {
	b := newBench(t, quick(), Hooks{})
	path := b.script("noria-provider-fake", fakeScript(t))
	debugged := exec.Command(path, "debug=1")
	debugged.Env = append(os.Environ(), plugin.EnvUnixSocketDir+"="+filepath.Join(b.dir, "debug"))
	must(t, os.Mkdir(filepath.Join(b.dir, "debug"), 0o700))
	stdin, err := debugged.StdinPipe()
	must(t, err)
	stdout, err := debugged.StdoutPipe()
	must(t, err)
	must(t, debugged.Start())
	defer func() {
		_ = stdin.Close()
		_ = debugged.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)

	spec := b.spec(path, fakeConfig{Mark: "debug"})
	spec.Reattach = line
	var f *Failure
	if err := b.apply(spec); !errors.As(err, &f) || f.Reason != ReasonReattach {
		t.Errorf("without dev: %v", err)
	}
	spec.Dev = true
	b.ready(spec)
	if info := b.info(); info.PID != debugged.Process.Pid || info.Digest != DigestDev || info.SHA256 != "" {
		t.Errorf("info %+v, want no digest: the file need not be what runs", info)
	}
	if !strings.Contains(b.log.String(), "adapter is not checked: dev = true: attached=true") {
		t.Error("no warning")
	}
	if lease, err := b.client().Lease(t.Context(), "work"); err != nil || lease.Generation != "login-debug" {
		t.Errorf("lease: %q, %v", lease.Generation, err)
	}
	b.close()
	if gone(debugged.Process.Pid) {
		t.Error("the host ended a process that is not its own")
	}
}

func TestReattachLineIsChecked(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	must(t, err)
	defer l.Close()
	file := filepath.Join(dir, "f")
	must(t, os.WriteFile(file, nil, 0o600))
	line := func(network, address, protocol string, version, pid int) string {
		return fmt.Sprintf(`{"protocol":%q,"protocol_version":%d,"pid":%d,"network":%q,"address":%q}`, protocol, version, pid, network, address)
	}
	cases := []struct {
		name, line string
		ok         bool
	}{
		{"bare JSON", line("unix", socket, "grpc", 1, 42), true},
		{"whole line", "NORIA_REATTACH='" + line("unix", socket, "grpc", 1, 42) + "'\n", true},
		{"nonsense", "nonsense", false},
		{"tcp", line("tcp", "127.0.0.1:1", "grpc", 1, 42), false},
		{"another protocol", line("unix", socket, "netrpc", 1, 42), false},
		{"another version", line("unix", socket, "grpc", 2, 42), false},
		{"no process", line("unix", socket, "grpc", 1, 0), false},
		{"no socket", line("unix", file, "grpc", 1, 42), false},
		{"missing", line("unix", filepath.Join(dir, "none"), "grpc", 1, 42), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := parseReattach(c.line); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	must(t, os.Chmod(dir, 0o755))
	if _, err := parseReattach(cases[0].line); err == nil {
		t.Error("socket in a directory that others can enter")
	}
}
