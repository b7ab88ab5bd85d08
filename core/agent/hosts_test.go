package agent_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// certify writes a certificate for a name that says when it was made, and its key.
func (s *scene) certify(name string, serial int64) {
	s.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), DNSNames: []string{name},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		s.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.Fatal(err)
	}
	s.Write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})))
	s.Write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// healthAs is the status of /healthz at a port of this machine, for who addresses that host.
func (s *scene) healthAs(client *http.Client, port, host string) int {
	s.Helper()
	req, err := http.NewRequest(http.MethodGet, "https://127.0.0.1:"+port+"/healthz", nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Host = host
	resp, err := client.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestADaemonBeyondThisMachineAnswersToItsNamesAlone(t *testing.T) {
	s := newScene(t, "ada")
	s.certify("noria.example", 1)
	s.Write("noria.hcl", fmt.Sprintf(`listen {
  address      = "0.0.0.0:0"
  allow_remote = true
  hosts        = ["Noria.Example"]
  tls_cert     = "cert.pem"
  tls_key      = "key.pem"
}
state {
  dir = "state"
}
provider "claude" {
  upstream = %q
%s}
`, s.upstream.URL, s.account("ada")))
	d := s.Start()
	_, port, err := net.SplitHostPort(d.Address)
	if err != nil {
		t.Fatal(err)
	}
	var serial int64
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error { //nolint:gosec // the test looks at the certificate itself
			serial = state.PeerCertificates[0].SerialNumber.Int64()
			return nil
		}},
	}}
	for host, want := range map[string]int{
		"noria.example:" + port: http.StatusOK, "NORIA.example:" + port: http.StatusOK, "127.0.0.1:" + port: http.StatusOK, "localhost:" + port: http.StatusOK,
		"noria.example": http.StatusForbidden, "noria.example:1": http.StatusForbidden, "other.example:" + port: http.StatusForbidden,
		"0.0.0.0:" + port: http.StatusForbidden, "a.noria.example:" + port: http.StatusForbidden,
	} {
		if status := s.healthAs(client, port, host); status != want {
			t.Errorf("host %s: status %d, want %d", host, status, want)
		}
	}
	stdout, stderr, code := d.Run("doctor")
	if strings.Contains(stdout, "does not answer") {
		t.Errorf("doctor: code %d\n%s%s", code, stdout, stderr)
	}

	s.certify("noria.example", 2)
	if _, stderr, code := d.Run("reload"); code != 0 {
		t.Fatalf("reload: code %d: %s", code, stderr)
	}
	s.healthAs(client, port, "noria.example:"+port)
	if serial != 2 {
		t.Errorf("after a reload the certificate is still number %d", serial)
	}
}
