package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/noria-dev/noria/core/api"
	"github.com/noria-dev/noria/core/config"
)

// errInUse says that an address is taken. Noria never takes another one in its place.
var errInUse = errors.New("the address is taken")

// listenProxy opens the listeners of the proxy: the configured address, and its twin of the other family when it is
// 127.0.0.1 or [::1] and the machine has one.
func listenProxy(ctx context.Context, cfg config.Listen, certificate *atomic.Pointer[tls.Certificate]) ([]net.Listener, error) {
	first, err := listenOne(ctx, "listen.address", cfg.Address)
	if err != nil {
		return nil, err
	}
	listeners := []net.Listener{first}
	if twin, ok := otherLoopback(first.Addr()); ok {
		second, err := listenOne(ctx, "listen.address", twin)
		switch {
		case err == nil:
			listeners = append(listeners, second)
		case errors.Is(err, errInUse):
			_ = first.Close()
			return nil, err
		default:
			// A machine without that family.
		}
	}
	if cfg.TLSCert == "" {
		return listeners, nil
	}
	loaded, err := loadCertificate(cfg)
	if err != nil {
		closeAll(listeners)
		return nil, err
	}
	certificate.Store(loaded)
	for i, l := range listeners {
		listeners[i] = tls.NewListener(l, &tls.Config{
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.Load(), nil },
			MinVersion:     tls.VersionTLS12,
			NextProtos:     []string{"http/1.1"},
		})
	}
	return listeners, nil
}

// loadCertificate reads the files of TLS; nil when none are configured.
func loadCertificate(cfg config.Listen) (*tls.Certificate, error) {
	if cfg.TLSCert == "" {
		return nil, nil //nolint:nilnil // no TLS is no error
	}
	pair, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("load TLS certificate: %w", err)
	}
	return &pair, nil
}

// listenOne listens on the address of a setting. Errors are *RefusedStartError; errInUse among their causes.
func listenOne(ctx context.Context, setting, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	another := fmt.Sprintf("set another %s in noria.hcl", setting)
	switch {
	case err == nil:
		return l, nil
	case !errors.Is(err, unix.EADDRINUSE):
		return nil, refuseStart(fmt.Errorf("listen on %s: %w", address, systemCause(err)), another)
	case IsNoria(ctx, address):
		return nil, refuseStart(fmt.Errorf("listen on %s: %w by another noria", address, errInUse), "stop that one, or "+another)
	}
	return nil, refuseStart(fmt.Errorf("listen on %s: %w by another program", address, errInUse),
		fmt.Sprintf("find it with \"lsof -i :%s\" and stop it, or %s", portOf(address), another))
}

// systemCause is what the system said, without the address, which is said already.
func systemCause(err error) error {
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

func portOf(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return port
}

// listenControl opens the control socket.
func listenControl(path string) (net.Listener, error) {
	l, err := api.Listen(path)
	if errors.As(err, new(*api.InUseError)) {
		return nil, refuseStart(err, "stop that one, or give this one another state.dir in noria.hcl")
	}
	return l, refuseStart(err, fmt.Sprintf("see that %s is this user's alone (chmod 700) and may be written", filepath.Dir(path)))
}

// closeAll closes those that are not nil.
func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		if l != nil {
			_ = l.Close()
		}
	}
}

// otherLoopback gives the same port on the other family's loopback address.
func otherLoopback(addr net.Addr) (string, bool) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return "", false
	}
	port := fmt.Sprint(tcp.Port)
	switch {
	case tcp.IP.Equal(net.IPv4(127, 0, 0, 1)):
		return net.JoinHostPort("::1", port), true
	case tcp.IP.Equal(net.IPv6loopback):
		return net.JoinHostPort("127.0.0.1", port), true
	}
	return "", false
}

// IsNoria asks who answers at a taken address, for at most half a second. It is for words to people only.
func IsNoria(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var answer readiness
	return json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&answer) == nil && answer.Service == serviceName
}
