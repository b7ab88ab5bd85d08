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
	"time"

	"golang.org/x/sys/unix"

	"github.com/noria-dev/noria/core/config"
)

// AddressInUseError says that the proxy's address is taken. Noria never takes another one in its place.
type AddressInUseError struct {
	Address string
	// Noria: another Noria answers there.
	Noria bool
}

func (e *AddressInUseError) Error() string {
	if e.Noria {
		return fmt.Sprintf("listen on %s: another noria serves there; stop it, or give this one another address in noria.hcl (listen { address = … })", e.Address)
	}
	return fmt.Sprintf("listen on %s: the address is taken by another program; stop that, or set another one in noria.hcl (listen { address = … })", e.Address)
}

// listenProxy opens the listeners of the proxy: the configured address, and its twin of the other family when it is
// 127.0.0.1 or [::1] and the machine has one.
func listenProxy(ctx context.Context, cfg config.Listen) ([]net.Listener, error) {
	first, err := listenOne(ctx, cfg.Address)
	if err != nil {
		return nil, err
	}
	listeners := []net.Listener{first}
	if twin, ok := otherLoopback(first.Addr()); ok {
		second, err := listenOne(ctx, twin)
		switch {
		case err == nil:
			listeners = append(listeners, second)
		case errors.As(err, new(*AddressInUseError)):
			_ = first.Close()
			return nil, err
		default:
			// A machine without that family.
		}
	}
	if cfg.TLSCert == "" {
		return listeners, nil
	}
	certificate, err := tls.LoadX509KeyPair(cfg.TLSCert, cfg.TLSKey)
	if err != nil {
		closeAll(listeners)
		return nil, fmt.Errorf("load TLS certificate: %w", err)
	}
	for i, l := range listeners {
		listeners[i] = tls.NewListener(l, &tls.Config{
			Certificates: []tls.Certificate{certificate},
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"http/1.1"},
		})
	}
	return listeners, nil
}

func listenOne(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, &AddressInUseError{Address: address, Noria: isNoria(ctx, address)}
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
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

// isNoria asks who answers at a taken address. It is for the words of an error only.
func isNoria(ctx context.Context, address string) bool {
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
