package bus_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/bus/boxconn"
	"yardmaster/internal/protocol"
)

func TestDialBeforeTheControlPlaneIsUp(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	x := enrol(t, b, "bx")
	address := b.URL()
	cfg.Listen = hostPort(t, address)
	stop(t, b)

	c := x.dial(t, address)
	x.await(t, "a failed attempt", func(s boxconn.State) bool { return s.Err != nil })
	if err := c.Beat(protocol.Presence{}); !errors.Is(err, boxconn.ErrOffline) {
		t.Errorf("a beat without a connection: %v", err)
	}
	if _, err := c.Publish(testContext(t), envelope("r", 1, 1, 1), 0); !errors.Is(err, boxconn.ErrOffline) {
		t.Errorf("an event without a connection: %v", err)
	}
	b = start(t, cfg)
	if b.URL() != address {
		t.Errorf("the address changed from %s to %s", address, b.URL())
	}
	x.await(t, "connected", connected)
	if _, err := c.Publish(testContext(t), envelope("r", 1, 1, 1), 0); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	cfg := newConfig(t)
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	b := start(t, cfg)
	x := enrol(t, b, "bx")
	trusted := x509.NewCertPool()
	trusted.AddCert(cert)
	c, err := boxconn.Dial(b.URL(), x.id, x.creds, boxconn.Options{TLS: &tls.Config{RootCAs: trusted}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.Wait(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(testContext(t), envelope("r", 1, 1, 1), 0); err != nil {
		t.Error(err)
	}

	// Without the certificate there is no connection, and none without TLS.
	for _, address := range []string{b.URL(), strings.Replace(b.URL(), "tls://", "nats://", 1)} {
		y := enrol(t, b, "by")
		y.dial(t, address)
		y.await(t, "a certificate refused", func(s boxconn.State) bool {
			var unknown x509.UnknownAuthorityError
			return errors.As(s.Err, &unknown)
		})
	}
}

// A box may answer whoever asks on its control subject, and nobody else.
func TestControlAnswers(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	c := enrol(t, b, "bx").connect(t, b)
	verbs := make(chan string, 1)
	if err := c.Control(func(verb string, _ []byte) { verbs <- verb }); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(testContext(t), envelope("r", 1, 1, 1), 0); err != nil { // the subscription went ahead of it
		t.Fatal(err)
	}
	account, err := nkeys.FromSeed([]byte(cfg.Keys.AccountSeed))
	if err != nil {
		t.Fatal(err)
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := user.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.NewUserClaims(public).Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	operator, _, err := rawConnect(t, b.URL(), token, seed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := operator.RequestWithContext(testContext(t), protocol.ControlSubject("bx", "halt"), nil); err != nil {
		t.Errorf("no answer: %v", err)
	}
	if verb := receive(t, "verb", verbs); verb != "halt" {
		t.Errorf("verb is %q", verb)
	}
}
