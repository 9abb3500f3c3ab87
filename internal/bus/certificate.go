package bus

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Authority is a certificate authority that signs the certificates of the bus's
// listeners and nothing else. Boxes know it by the fingerprint of its certificate.
// It is a secret: the caller seals and stores it, and every server on one database
// has the same.
type Authority struct {
	Certificate string `json:"certificate"` // PEM
	Key         string `json:"key"`         // PEM, PKCS #8
}

const (
	authorityLife = 30 * 365 * 24 * time.Hour
	listenerLife  = 90 * 24 * time.Hour // of a listener's certificate, which is renewed at half of it
	// clockSlack is how far the clock of a box may be behind.
	clockSlack = 24 * time.Hour
	// listenerName is the only name in a listener's certificate. Boxes do not compare
	// it with the address: the authority signs for the bus alone, which may have
	// several addresses and be reached through forwarded ports.
	listenerName = "bus.yardmaster.internal"
)

// NewAuthority makes an authority.
func NewAuthority(now time.Time) (Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, fmt.Errorf("bus: make an authority: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Yardmaster bus"}, NotBefore: now.Add(-clockSlack), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Authority{}, fmt.Errorf("bus: make an authority: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Authority{}, fmt.Errorf("bus: make an authority: %w", err)
	}
	return Authority{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	}, nil
}

// issuer is an Authority, parsed, with the certificate that it has signed last. The
// key of that certificate exists in this process alone.
type issuer struct {
	certificate *x509.Certificate
	key         crypto.Signer
	now         func() time.Time
	name        string             // the only one in the certificates
	usage       []x509.ExtKeyUsage // of them

	mu   sync.Mutex
	last *tls.Certificate
	made time.Time // when last was
}

func (a Authority) parse(now func() time.Time) (*issuer, error) {
	pair, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
	if err != nil {
		return nil, fmt.Errorf("read the authority of the bus: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("read the authority of the bus: it cannot sign certificates")
	}
	return &issuer{
		certificate: pair.Leaf, key: key, now: now, name: listenerName, usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, nil
}

// fingerprint is the SHA-256 of the authority's certificate, in hex.
func (i *issuer) fingerprint() string {
	sum := sha256.Sum256(i.certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// get answers the certificate of the listener, followed by that of the authority:
// boxes know of it no more than the fingerprint.
func (i *issuer) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if age := now.Sub(i.made); i.last != nil && age < listenerLife/2 && age > -clockSlack/2 { // the clock may have been set back
		return i.last, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key for the listener: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: i.name}, DNSNames: []string{i.name},
		NotBefore: now.Add(-clockSlack), NotAfter: now.Add(listenerLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: i.usage,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, key.Public(), i.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of the listener: %w", err)
	}
	i.last, i.made = &tls.Certificate{Certificate: [][]byte{der, i.certificate.Raw}, PrivateKey: key}, now
	return i.last, nil
}

// protect sets how the listener proves itself: by a certificate of the authority,
// by that of Config.TLS, or not at all.
func (b *Bus) protect() error {
	if b.cfg.Authority == nil {
		return nil
	}
	i, err := b.cfg.Authority.parse(b.cfg.Now)
	if err != nil {
		return err
	}
	if _, err := i.get(nil); err != nil {
		return err
	}
	b.ca = i.fingerprint()
	b.cfg.TLS = &tls.Config{GetCertificate: i.get, MinVersion: tls.VersionTLS13}
	return nil
}

// CA is the fingerprint of the authority by which boxes know the bus: the SHA-256
// of its certificate, in hex. It is empty for a bus in the clear, and for one with a
// certificate of an authority that the machines of the boxes trust.
func (b *Bus) CA() string { return b.ca }
