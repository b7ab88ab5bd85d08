package sdk_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

func TestAClientDoesNotOutliveAnAdapterThatIsKilled(t *testing.T) {
	path, variable := began(t)
	d := startAdapter(t, "running", variable)
	d.configure(t, 1, goodProvider, account("a", `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = d.provider.Lease(ctx, &providerv1.LeaseRequest{Account: "a"}) }()
	await(t, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	signalProcess(t, d.command.Process, syscall.SIGKILL)
	deadline := time.After(patience)
	for !gone(client) {
		select {
		case <-deadline:
			t.Fatal("the client outlives its adapter")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// gone reports whether a process has ended; nobody may have taken notice of it yet.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(after, "Z")
}
