package plugintest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/noria-dev/noria/sdk/wire"
)

// Waits of the suite. An adapter that needs more is not fit for a daemon.
const (
	startTime = 10 * time.Second
	endTime   = 5 * time.Second
	killTime  = 2 * time.Second
)

// maxOutput bounds what is kept of an adapter's output.
const maxOutput = 1 << 20

// command makes the command line of the adapter with the given arguments.
type command func(args ...string) *exec.Cmd

// process is an adapter that was started the way a daemon starts it.
type process struct {
	cmd    *exec.Cmd
	conn   *grpc.ClientConn
	stdin  io.Closer
	output *output
	dir    string
	exited chan struct{}
}

// output keeps what an adapter prints, bounded.
type output struct {
	mu   sync.Mutex // guards data
	data bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data.Write(p[:min(len(p), maxOutput-o.data.Len())])
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}

// start starts an adapter and connects to it.
func (s *suite) start(ctx context.Context) (*process, error) {
	dir, err := os.MkdirTemp("", "noria-test-")
	if err != nil {
		return nil, err
	}
	p := &process{cmd: s.command(), output: s.output, dir: dir, exited: make(chan struct{})}
	if err := p.run(ctx, s.environment(dir), s.listen); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

func (p *process) run(ctx context.Context, environment []string, listen grpc.UnaryClientInterceptor) error {
	certificate, err := clientCertificate()
	if err != nil {
		close(p.exited)
		return err
	}
	pemText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	p.cmd.Env = append(environment,
		wire.Handshake.MagicCookieKey+"="+wire.Handshake.MagicCookieValue,
		"PLUGIN_PROTOCOL_VERSIONS="+strconv.FormatUint(uint64(wire.Handshake.ProtocolVersion), 10),
		plugin.EnvUnixSocketDir+"="+p.dir,
		"PLUGIN_CLIENT_CERT="+string(pemText),
		wire.EnvStdinPipe+"=1",
		wire.EnvParent+"="+strconv.Itoa(os.Getpid()),
	)
	line, err := p.spawn(ctx)
	if err != nil {
		return err
	}
	socket, server, err := readHandshake(line, p.dir)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(server)
	p.conn, err = grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
			Certificates: []tls.Certificate{certificate}, RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS12})),
		grpc.WithUnaryInterceptor(listen),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage)))
	return err
}

// spawn starts the process and returns the first line that it prints.
func (p *process) spawn(ctx context.Context) (string, error) {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = p.output
	p.cmd.WaitDelay = time.Second
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		close(p.exited)
		return "", err
	}
	p.stdin = stdin
	reader, writer := io.Pipe()
	p.cmd.Stdout = writer
	if err := p.cmd.Start(); err != nil {
		close(p.exited)
		return "", fmt.Errorf("start adapter: %w", err)
	}
	lines := make(chan string, 1)
	go func() {
		buffered := bufio.NewReaderSize(reader, 8<<10)
		first, _ := buffered.ReadSlice('\n')
		lines <- string(first)
		_, _ = io.Copy(p.output, buffered)
	}()
	go func() {
		_ = p.cmd.Wait()
		// What it left running goes with it.
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		_ = writer.Close()
		close(p.exited)
	}()
	select {
	case line := <-lines:
		return line, nil
	case <-time.After(startTime):
		return "", fmt.Errorf("adapter printed no handshake within %s", startTime)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// readHandshake takes the handshake line apart: core version, protocol version, network, address, protocol, certificate.
func readHandshake(line, dir string) (socket string, certificate *x509.Certificate, err error) {
	if line == "" {
		return "", nil, errors.New("adapter ended, or closed its standard output, without a handshake line")
	}
	fields := strings.Split(strings.TrimSuffix(line, "\n"), "|")
	version := strconv.FormatUint(uint64(wire.Handshake.ProtocolVersion), 10)
	switch {
	case len(fields) != 6 && len(fields) != 7:
		return "", nil, fmt.Errorf("handshake line has %d fields instead of 6: core version, protocol version, network, address, protocol, certificate", len(fields))
	case fields[0] != strconv.Itoa(plugin.CoreProtocolVersion):
		return "", nil, fmt.Errorf("handshake's first field, the core version, is not %d", plugin.CoreProtocolVersion)
	case fields[1] != version:
		return "", nil, fmt.Errorf("handshake's second field, the protocol version, is not %s", version)
	case fields[2] != "unix":
		return "", nil, errors.New("handshake's third field, the network, is not unix")
	case filepath.Dir(fields[3]) != dir:
		return "", nil, fmt.Errorf("handshake's fourth field, the socket, is not inside the directory that %s names", plugin.EnvUnixSocketDir)
	case fields[4] != string(plugin.ProtocolGRPC):
		return "", nil, errors.New("handshake's fifth field, the protocol, is not grpc")
	}
	der, err := base64.RawStdEncoding.DecodeString(fields[5])
	if err == nil {
		certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return "", nil, errors.New("handshake's sixth field is no certificate: it takes the DER bytes in base64 without padding")
	}
	return fields[3], certificate, nil
}

func clientCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func (p *process) exits(within time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(within):
		return false
	}
}

// kill ends the process group and frees what the process held. The group is gone when it returns.
func (p *process) kill() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	if p.cmd.Process != nil && !p.exits(0) {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		if !p.exits(killTime) {
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	<-p.exited
	_ = os.RemoveAll(p.dir)
}
