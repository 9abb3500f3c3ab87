package bus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/bus"
	"yardmaster/internal/certificate"
	"yardmaster/internal/proof/patience"
)

func newAuthority(t testing.TB) *bus.Authority {
	t.Helper()
	a, err := bus.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

// trusting dials with a trust.
func (x *box) trusting(t testing.TB, url string, trust conn.Trust) *conn.Conn {
	t.Helper()
	c, err := conn.Dial(url, x.id, x.creds, conn.Options{
		OnState: func(s conn.State) { x.states <- s },
		Trust:   func() conn.Trust { return trust },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// pair makes a certificate for 127.0.0.1, signed by itself, in two files.
func pair(t testing.TB, dir string, serial int64) (certificate, key string, parsed *x509.Certificate) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	if parsed, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	bytes, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: bytes},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key, parsed
}

// A certificate from files is believed if the machine of the box trusts whoever has
// signed it, and the listener says nothing to who dials in the clear.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, parsed := pair(t, t.TempDir(), 1)
	cfg := newConfig(t)
	var err error
	if cfg.TLS, err = certificate.FileTLS(cert, key, cfg.Logger); err != nil {
		t.Fatal(err)
	}
	b := start(t, cfg)
	url := "tls://" + b.Addr()
	if b.CA() != "" || b.URL() != url {
		t.Errorf("the bus is known by %q at %s", b.CA(), b.URL())
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(parsed)
	x := enrol(t, b, "bx")
	c, err := conn.Dial(url, x.id, x.creds, conn.Options{TLS: &tls.Config{RootCAs: trusted}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Wait(patience.Context(t)); err != nil {
		t.Fatal(err)
	}
	echo(t, b)
	works(t, c, "bx")

	y := enrol(t, b, "by")
	y.dial(t, url)
	y.await(t, "a certificate refused", func(s conn.State) bool {
		var unknown x509.UnknownAuthorityError
		return conn.IsForeign(s.Err) && errors.As(s.Err, &unknown)
	})

	clear, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer clear.Close()
	if _, err := io.WriteString(clear, "CONNECT {}\r\nPING\r\n"); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(clear)
	if strings.Contains(string(said), "INFO") || strings.Contains(string(said), "PONG") {
		t.Errorf("in the clear the bus says %q", said)
	}
}

// A box that knows the authority of the bus works over TLS, whatever the name in the
// address is, and with a certificate that was made anew meanwhile.
func TestBusIsKnownByItsAuthority(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	cfg := newConfig(t)
	cfg.Authority = newAuthority(t)
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	b := start(t, cfg)
	echo(t, b)
	if !strings.HasPrefix(b.URL(), "tls://") {
		t.Errorf("the address is %s", b.URL())
	}
	serial := func() string {
		c, err := tls.Dial("tcp", b.Addr(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	ahead.Store(int64(30 * 24 * time.Hour))
	if serial() != first {
		t.Error("the certificate changed after 30 days of 90")
	}
	ahead.Store(int64(46 * 24 * time.Hour))
	if serial() == first {
		t.Error("the certificate is the same after 46 days of 90")
	}
	ahead.Store(0) // and the next certificate is one of now
	_, port, _ := net.SplitHostPort(b.Addr())
	x := enrol(t, b, "bx")
	c := x.trusting(t, "tls://localhost:"+port, conn.Trust{TLS: true, CA: b.CA()})
	if err := c.Wait(patience.Context(t)); err != nil {
		t.Fatal(err)
	}
	works(t, c, "bx")
	if err := conn.Probe(patience.Context(t), b.URL(), conn.Trust{TLS: true, CA: b.CA()}); err != nil {
		t.Errorf("the bus, asked without a credential: %v", err)
	}
}

// between is somebody at the address of the bus who takes connections, and counts
// the bytes that come over each after the handshake, if serve makes one.
func between(t testing.TB, serve func(net.Conn) net.Conn) (url string, told func() int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var n atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				got, _ := io.Copy(io.Discard, serve(c))
				n.Add(got)
			}()
		}
	}()
	return "tls://" + l.Addr().String(), n.Load
}

// Whoever stands between a box and the bus with another certificate is told nothing,
// neither a credential nor a call, and the box says what is wrong.
func TestNobodyBetweenABoxAndTheBus(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.Authority = newAuthority(t)
	b := start(t, cfg)
	genuine, err := tls.X509KeyPair([]byte(cfg.Authority.Certificate), []byte(cfg.Authority.Key))
	if err != nil {
		t.Fatal(err)
	}
	trust := conn.Trust{TLS: true, CA: b.CA()}

	// Another authority that is made in the same way, and has signed the same name.
	another := newConfig(t)
	another.Authority = newAuthority(t)
	forged := start(t, another)
	err = conn.Probe(patience.Context(t), forged.URL(), trust)
	if !conn.IsForeign(err) || !strings.Contains(err.Error(), b.CA()) || !strings.Contains(err.Error(), forged.CA()) {
		t.Errorf("a bus of another authority: %v", err)
	}

	certificate, key, _ := pair(t, t.TempDir(), 1)
	own, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	over := func(c tls.Certificate) func(net.Conn) net.Conn {
		return func(plain net.Conn) net.Conn {
			return tls.Server(plain, &tls.Config{Certificates: []tls.Certificate{c}})
		}
	}
	// The certificate of the true authority is no secret: anybody can show it.
	with := own
	with.Certificate = append([][]byte{own.Certificate[0]}, genuine.Certificate...)
	for name, serve := range map[string]func(net.Conn) net.Conn{
		"another certificate":                        over(own),
		"another certificate and the true authority": over(with),
	} {
		url, told := between(t, serve)
		x := enrol(t, b, "bx")
		x.trusting(t, url, trust)
		for range 3 {
			x.await(t, "a bus refused", func(s conn.State) bool { return conn.IsForeign(s.Err) && !s.Connected })
		}
		if told() != 0 {
			t.Errorf("%s: is told %d bytes", name, told())
		}
	}
	// In the clear, with the greeting of a bus that wants no TLS.
	var hello atomic.Pointer[[]byte]
	url, _ := between(t, func(plain net.Conn) net.Conn {
		io.WriteString(plain, `INFO {"server_id":"S","nonce":"abc","max_payload":1048576,"headers":true}`+"\r\n")
		got, _ := io.ReadAll(plain)
		hello.Store(&got)
		return plain
	})
	x := enrol(t, b, "bx")
	x.trusting(t, url, trust)
	for range 3 {
		x.await(t, "a bus refused", func(s conn.State) bool { return conn.IsForeign(s.Err) && !s.Connected })
	}
	token, _ := x.creds()
	if got := hello.Load(); got == nil || strings.Contains(string(*got), "CONNECT") || strings.Contains(string(*got), token) {
		t.Errorf("in the clear it is told %q", got)
	}
}
