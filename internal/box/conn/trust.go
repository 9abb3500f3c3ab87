package conn

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Trust is how the bus has to prove itself before a box says anything to it.
//
// Over TLS the handshake comes first, before the greeting of NATS (INFO): what the
// other side says before it has proved itself is neither believed nor answered.
type Trust struct {
	TLS bool // false: the bus speaks in the clear
	// CA is the SHA-256, in hex, of the certificate of the one authority that is
	// believed, for whatever address. Empty: the authorities that this machine
	// trusts are, for the host of the address.
	CA string
	// Here means that a bus in the clear is believed on this machine alone; elsewhere
	// an attempt to connect ends with ErrClear.
	Here bool
}

// TrustOf is how a bus proves itself of which a box was told a list of addresses and the
// authority. Where one of them says TLS, none is spoken to in the clear.
func TrustOf(list, ca string) Trust {
	return Trust{TLS: ca != "" || strings.Contains(strings.ToLower(list), "tls://"), CA: ca}
}

// ErrClear means that the bus is on another machine and would be spoken to in the
// clear. Nothing was sent to it.
var ErrClear = errors.New("the bus is on another machine, and nothing protects the way there")

// ForeignError means that whoever listens at the address of the bus has not proved
// to be the bus. Nothing was sent to it.
type ForeignError struct {
	Address string
	Err     error
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("what listens at %s is not the bus that this box knows, and was sent nothing: %s", e.Address, e.Err)
}

func (e *ForeignError) Unwrap() error { return e.Err }

// IsForeign tells whether State.Err means that the box refuses what listens at the
// address: a ForeignError or ErrClear.
func IsForeign(err error) bool {
	var f *ForeignError
	return errors.As(err, &f) || errors.Is(err, ErrClear)
}

// config is the TLS configuration for a connection to a host, over what base has.
func (t Trust) config(base *tls.Config, host string) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if base != nil {
		cfg = base.Clone()
	}
	cfg.ServerName = host
	if t.CA != "" {
		cfg.InsecureSkipVerify = true // VerifyConnection does all of it
		cfg.VerifyConnection = func(s tls.ConnectionState) error {
			if err := verify(s.PeerCertificates, t.CA); err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
			}
			return nil
		}
	}
	return cfg
}

// verify checks that the first certificate is one for a server that the authority
// with the fingerprint ca has signed. The authority's own certificate is among
// shown.
func verify(shown []*x509.Certificate, ca string) error {
	roots, others, last := x509.NewCertPool(), x509.NewCertPool(), ""
	found := false
	for _, c := range shown {
		sum := sha256.Sum256(c.Raw)
		if last = hex.EncodeToString(sum[:]); last == ca {
			roots.AddCert(c)
			found = true
			continue
		}
		others.AddCert(c)
	}
	if !found {
		return fmt.Errorf("it shows a certificate of another authority (SHA-256 %s, not %s)", last, ca)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: others, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}

// The limits of one attempt to connect.
const (
	dialLimit      = 5 * time.Second
	handshakeLimit = 5 * time.Second
)

// dialer connects to the bus, and has it prove itself first. The NATS client calls
// it under a lock.
type dialer struct {
	ctx     context.Context // ends what is under way
	trust   func() Trust
	base    *tls.Config
	secured bool // the last connection is one over TLS
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.secured = false
	t := d.trust()
	c, err := t.dial(d.ctx, network, address, d.base)
	d.secured = err == nil && t.TLS
	return c, err
}

// SkipTLSHandshake tells the NATS client that the handshake is done. After a
// connection in the clear to a bus that demands TLS the client makes one of its own.
func (d *dialer) SkipTLSHandshake() bool { return d.secured }

func (t Trust) dial(ctx context.Context, network, address string, base *tls.Config) (net.Conn, error) {
	plain, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return t.protect(ctx, plain, address, base)
}

// protect returns the connection that the box may speak over, and closes plain if there
// is none.
func (t Trust) protect(ctx context.Context, plain net.Conn, address string, base *tls.Config) (net.Conn, error) {
	if !t.TLS {
		if at, ok := plain.RemoteAddr().(*net.TCPAddr); t.Here && (!ok || !at.IP.IsLoopback()) {
			return nil, errors.Join(ErrClear, plain.Close())
		}
		return plain, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	secured := tls.Client(plain, t.config(base, host))
	if err := secured.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, explain(address, err)
	}
	return secured, nil
}

// explain makes a ForeignError of the failure of a handshake that shows who answers.
func explain(address string, err error) error {
	var clear tls.RecordHeaderError
	var refused *tls.CertificateVerificationError
	switch {
	case errors.As(err, &clear):
		return &ForeignError{address, errors.New("it does not speak TLS")}
	case errors.As(err, &refused):
		return &ForeignError{address, refused}
	}
	return fmt.Errorf("TLS with %s: %w", address, err)
}

// Probe connects to one of the addresses of the bus and has it prove itself and greet,
// without a credential. Of several errors it answers that of a ForeignError.
func Probe(ctx context.Context, list string, t Trust) error {
	err := errors.New("the box knows no address of the bus")
	for _, address := range addresses(list) {
		one := t.probe(ctx, address)
		if one == nil {
			return nil
		}
		if !IsForeign(err) {
			err = one
		}
	}
	return err
}

func (t Trust) probe(ctx context.Context, address string) error {
	c, err := t.dial(ctx, "tcp", address, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	unhook := context.AfterFunc(ctx, func() { c.Close() })
	defer unhook()
	if err := c.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return err
	}
	greeting, err := bufio.NewReader(c).ReadString(' ')
	if err != nil {
		return fmt.Errorf("%s says nothing: %w", address, err)
	}
	if greeting != "INFO " {
		return fmt.Errorf("%s does not speak NATS", address)
	}
	return nil
}
