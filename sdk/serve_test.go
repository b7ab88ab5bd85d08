package sdk_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
	"github.com/noria-dev/noria/sdk/wire"
)

func certificatePEM(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestServesUnderAGoPluginClientWithMutualTLS(t *testing.T) {
	d := startAdapter(t, "plain")
	resp, err := d.plugin.Init(t.Context(), &pluginv1.InitRequest{HostVersion: "0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(resp.GetPluginServices(), " "); got != wire.ServicePlugin+" "+wire.ServiceProvider {
		t.Errorf("services %q", got)
	}
	health, err := grpc_health_v1.NewHealthClient(d.conn).Check(t.Context(),
		&grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	if err != nil || health.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health %v, %v", health, err)
	}
}

func TestStandardOutputOfTheAdapterCannotDamageTheHandshake(t *testing.T) {
	d := startAdapter(t, "noisy")
	d.configure(t, 1, goodProvider, account("a", `{"token": "x"}`))
	if _, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "a"}); err != nil {
		t.Fatal(err)
	}
	d.client.Kill()
	for _, line := range []string{"half a line", "by descriptor", "from a child", "while serving"} {
		if !strings.Contains(d.stderr.String(), line) {
			t.Errorf("%q is not on standard error", line)
		}
	}
}

func TestAPanicTellsClassAndPlaceAndNoValue(t *testing.T) {
	d := startAdapter(t, "panicky")
	d.configure(t, 1, goodProvider, account("a", `{}`))
	_, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "a"})
	if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "canary") {
		t.Errorf("lease: %v", err)
	}
	_, err = d.provider.Observe(t.Context(), &providerv1.ObserveRequest{Account: "a"})
	if status.Code(err) != codes.Internal {
		t.Errorf("observe: %v", err)
	}
	if _, err = d.provider.Classify(t.Context(), &providerv1.ClassifyRequest{Account: "a", Status: 429}); err != nil {
		t.Errorf("the adapter does not serve after a panic: %v", err)
	}
	d.client.Kill()
	log := d.stderr.String()
	for _, want := range []string{`"class":"*errors.errorString"`, "adapters_test.go:", `"class":"runtime`} {
		if !strings.Contains(log, want) {
			t.Errorf("log has no %s: %s", want, log)
		}
	}
	if strings.Contains(log, "canary") || strings.Contains(log, "goroutine ") {
		t.Errorf("log holds a value or a stack: %s", log)
	}
}

func TestMessagesAboveTheLimitAreRefusedOnBothSides(t *testing.T) {
	d := startAdapter(t, "full")
	d.configure(t, 1, goodProvider)
	big := strings.Repeat("x", wire.MaxMessage)
	_, err := d.provider.Unavailable(t.Context(), &providerv1.UnavailableRequest{Sentence: big})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("request above the limit: %v", err)
	}
	// The answer repeats the sentence and is a little longer than the request.
	_, err = d.provider.Unavailable(t.Context(), &providerv1.UnavailableRequest{Sentence: big[:wire.MaxMessage-4]})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("answer above the limit: %v", err)
	}
	if _, err = d.provider.Unavailable(t.Context(), &providerv1.UnavailableRequest{Sentence: big[:wire.MaxMessage-64]}); err != nil {
		t.Errorf("below the limit: %v", err)
	}
}

// stuckCall is a call that runs until it is told to finish.
type stuckCall struct {
	path   string
	leased chan *providerv1.LeaseResponse
}

func startStuckCall(t *testing.T) (*daemon, stuckCall) {
	t.Helper()
	path, variable := began(t)
	d := startAdapter(t, "stuck", variable)
	d.configure(t, 1, goodProvider, account("a", `{}`))
	call := stuckCall{path: path, leased: make(chan *providerv1.LeaseResponse, 1)}
	go func() {
		resp, _ := d.provider.Lease(context.WithoutCancel(t.Context()), &providerv1.LeaseRequest{Account: "a"})
		call.leased <- resp
	}()
	await(t, path)
	return d, call
}

func (c stuckCall) finish(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(c.path+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if resp := <-c.leased; resp.GetLease().GetGeneration() != "finished" {
		t.Errorf("running call was cut: %v", resp)
	}
}

// awaitRefusal returns when new calls are refused.
func (d *daemon) awaitRefusal(t *testing.T) {
	t.Helper()
	for refused := false; !refused; {
		_, err := d.provider.Observe(t.Context(), &providerv1.ObserveRequest{Account: "a"})
		refused = status.Code(err) == codes.Unavailable
	}
}

func TestDrainRefusesNewCallsAndWaitsForRunningOnes(t *testing.T) {
	d, running := startStuckCall(t)
	drained := make(chan error, 1)
	go func() {
		_, err := d.plugin.Drain(context.WithoutCancel(t.Context()), &pluginv1.DrainRequest{DeadlineMs: patience.Milliseconds()})
		drained <- err
	}()
	d.awaitRefusal(t)
	select {
	case err := <-drained:
		t.Fatalf("drain returned while a call ran: %v", err)
	default:
	}
	running.finish(t)
	if err := <-drained; err != nil {
		t.Errorf("drain: %v", err)
	}
}

func TestDrainReturnsAtItsDeadline(t *testing.T) {
	path, variable := began(t)
	d := startAdapter(t, "deaf", variable)
	d.configure(t, 1, goodProvider, account("a", `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = d.provider.Lease(ctx, &providerv1.LeaseRequest{Account: "a"}) }()
	await(t, path)
	if _, err := d.plugin.Drain(t.Context(), &pluginv1.DrainRequest{DeadlineMs: 1}); err != nil {
		t.Errorf("drain: %v", err)
	}
}

func TestDrainEndsAWatch(t *testing.T) {
	d := startAdapter(t, "full")
	d.configure(t, 1, goodProvider)
	watch, err := providerv1.NewQuotaClient(d.conn).WatchQuota(t.Context(), &providerv1.WatchQuotaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := watch.Recv(); err != nil || first.GetAccount() != "one" {
		t.Fatalf("first reading %v, %v", first, err)
	}
	if _, err := d.plugin.Drain(t.Context(), &pluginv1.DrainRequest{DeadlineMs: patience.Milliseconds()}); err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("watch ended with %v", err)
	}
}

func TestSIGTERMLetsARunningCallFinish(t *testing.T) {
	d, running := startStuckCall(t)
	signalProcess(t, d.command.Process, syscall.SIGTERM)
	d.awaitRefusal(t)
	running.finish(t)
	deadline := time.After(patience)
	for !d.client.Exited() {
		select {
		case <-deadline:
			t.Fatal("adapter did not end")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestSIGINTIsIgnored(t *testing.T) {
	d := startAdapter(t, "plain")
	for range 3 {
		signalProcess(t, d.command.Process, os.Interrupt)
	}
	if _, err := d.plugin.Describe(t.Context(), &pluginv1.DescribeRequest{}); err != nil {
		t.Errorf("describe after SIGINT: %v", err)
	}
}

func signalProcess(t *testing.T, process *os.Process, sig os.Signal) {
	t.Helper()
	if err := process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func TestTheAdapterEndsWhenTheDaemonsPipeDoes(t *testing.T) {
	command := bare(t, "plain", nil, append(served(t), wire.EnvStdinPipe+"=1"))
	pipe, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	startWithHandshake(t, command)
	if err := pipe.Close(); err != nil {
		t.Fatal(err)
	}
	if code := ended(t, command.Wait); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestTheAdapterEndsWhenTheDaemonsProcessDoes(t *testing.T) {
	parent := exec.Command("sleep", "600")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	command := bare(t, "plain", nil, append(served(t), wire.EnvParent+"="+strconv.Itoa(parent.Process.Pid)))
	startWithHandshake(t, command)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if code := ended(t, command.Wait); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestTheDeathOfTheDaemonIsNotHeldUpByADeafCall(t *testing.T) {
	path, variable := began(t)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// go-plugin hands on the daemon's own standard input.
	defer func(own *os.File) { os.Stdin = own }(os.Stdin)
	os.Stdin = reader
	command := exec.Command(os.Args[0])
	command.Env = []string{adapterVariable + "=deaf", variable, wire.EnvStdinPipe + "=1", "TMPDIR=" + shortDir(t)}
	d := attach(t, &plugin.ClientConfig{Cmd: command, AutoMTLS: true, SkipHostEnv: true})
	_ = reader.Close()
	d.configure(t, 1, goodProvider, account("a", `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = d.provider.Lease(ctx, &providerv1.LeaseRequest{Account: "a"}) }()
	await(t, path)
	_ = writer.Close()
	deadline := time.After(patience)
	for !d.client.Exited() {
		select {
		case <-deadline:
			t.Fatal("adapter outlived its daemon")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// startWithHandshake starts an adapter and checks its first line.
func startWithHandshake(t *testing.T, command *exec.Cmd) {
	t.Helper()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("read handshake: %v", err)
	}
	if fields := strings.Split(strings.TrimSuffix(line, "\n"), "|"); len(fields) != 6 || fields[0] != "1" || fields[1] != "1" ||
		fields[2] != "unix" || fields[4] != "grpc" || len(fields[5]) < 100 {
		t.Fatalf("handshake %q", line)
	}
}

func TestWithoutADaemonItSaysWhatItIs(t *testing.T) {
	tests := []struct {
		name           string
		args, env      []string
		code           int
		stdout, stderr string
	}{
		{name: "by hand", code: 2, stderr: "This is a provider adapter of Noria."},
		{name: "unknown argument", args: []string{"sing"}, code: 2, stderr: "describe, version, -debug"},
		{name: "two arguments", args: []string{"describe", "all"}, code: 2, stderr: "describe, version, -debug"},
		{name: "help", args: []string{"-help"}, stdout: "describe, version, -debug"},
		{name: "version", args: []string{"version"}, stdout: "plain 1.2.3 (sdk 0.1.0)\n"},
		{name: "a daemon without TLS", code: 1, stderr: "daemon asked for no TLS",
			env: []string{wire.Handshake.MagicCookieKey + "=" + wire.Handshake.MagicCookieValue}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			command := bare(t, "plain", test.args, test.env)
			var stdout, stderr bytes.Buffer
			command.Stdout, command.Stderr = &stdout, &stderr
			if code := ended(t, command.Run); code != test.code {
				t.Errorf("exit code %d, expected %d", code, test.code)
			}
			if !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("printed %q and %q", stdout.String(), stderr.String())
			}
			if test.stdout == "" && stdout.Len() > 0 {
				t.Errorf("standard output %q", stdout.String())
			}
		})
	}
}

func TestAnAdapterWithoutAUsableNameSaysSo(t *testing.T) {
	for _, args := range [][]string{nil, {"describe"}} {
		command := bare(t, "unnamed", args, served(t))
		var stderr bytes.Buffer
		command.Stderr = &stderr
		if code := ended(t, command.Run); code != 1 || !strings.Contains(stderr.String(), "Not a Name") {
			t.Errorf("%v: exit code %d, %s", args, code, stderr.String())
		}
	}
}

func TestDebugPrintsALineThatAttachesOneDaemonAfterAnother(t *testing.T) {
	command := bare(t, "plain", []string{"-debug"}, nil)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	text, found := strings.CutPrefix(strings.TrimSuffix(line, "'\n"), wire.EnvReattach+"='")
	var reattach wire.Reattach
	if err := json.Unmarshal([]byte(text), &reattach); err != nil || !found || reattach.Name != "plain" {
		t.Fatalf("line %q: %v", line, err)
	}
	for range 2 {
		d := attach(t, &plugin.ClientConfig{Reattach: &plugin.ReattachConfig{Protocol: plugin.Protocol(reattach.Protocol),
			ProtocolVersion: reattach.ProtocolVersion, Pid: reattach.Pid,
			Addr: &net.UnixAddr{Net: reattach.Network, Name: reattach.Address}, Test: true}})
		if _, err := d.plugin.Init(t.Context(), &pluginv1.InitRequest{}); err != nil {
			t.Fatal(err)
		}
		d.configure(t, 1, goodProvider, account("a", `{"token": "t"}`))
		d.configure(t, 2, goodProvider, account("a", `{"token": "t"}`))
		if _, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "a"}); err != nil {
			t.Errorf("lease: %v", err)
		}
		if _, err := d.plugin.Drain(t.Context(), &pluginv1.DrainRequest{DeadlineMs: patience.Milliseconds()}); err != nil {
			t.Errorf("drain: %v", err)
		}
		if _, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "a"}); status.Code(err) != codes.Unavailable {
			t.Errorf("lease after the drain: %v", err)
		}
	}
	signalProcess(t, command.Process, syscall.SIGTERM)
	if code := ended(t, command.Wait); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(reattach.Address); !os.IsNotExist(err) {
		t.Errorf("socket is left: %v", err)
	}
}

func TestASecondClientIsNotLetIn(t *testing.T) {
	command := bare(t, "plain", nil, served(t))
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	conn, err := grpc.NewClient("unix:"+strings.Split(line, "|")[3], grpc.WithTransportCredentials(strangerCredentials(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = pluginv1.NewPluginClient(conn).Describe(t.Context(), &pluginv1.DescribeRequest{})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("describe by a stranger: %v", err)
	}
}

// strangerCredentials present a certificate that the daemon did not announce.
func strangerCredentials(t *testing.T) credentials.TransportCredentials {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
}
