package sdk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// mutualTLS makes this process's half of go-plugin's automatic mutual TLS: a certificate for one run, presented to and
// asked of nobody but the daemon that started it. encoded is that certificate as the handshake line carries it.
func mutualTLS(hostCertificatePEM string) (provider func() (*tls.Config, error), encoded string, err error) {
	if hostCertificatePEM == "" {
		return nil, "", errors.New("daemon asked for no TLS")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(hostCertificatePEM)) {
		return nil, "", errors.New("read certificate of the daemon: no certificate found")
	}
	certificate, err := runCertificate()
	if err != nil {
		return nil, "", fmt.Errorf("make certificate: %w", err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
		RootCAs:      pool,
		ServerName:   "localhost",
		MinVersion:   tls.VersionTLS12,
	}
	encoded = base64.RawStdEncoding.EncodeToString(certificate.Certificate[0])
	return func() (*tls.Config, error) { return config, nil }, encoded, nil
}

// runCertificate is self-signed and for localhost, the name that go-plugin's client verifies.
func runCertificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"Noria adapter"}},
		DNSNames:              []string{"localhost"},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
