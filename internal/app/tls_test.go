package app

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/meta"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/seal"
)

// trust is what the station was told of the bus.
func (s *station) trust() conn.Trust {
	ca := ""
	if s.NATSCA != nil {
		ca = *s.NATSCA
	}
	return conn.TrustOf(s.NATSURL, ca)
}

// A box learns with its enrolment by which authority it knows the bus; the authority
// survives a restart, and what the database keeps of it is sealed. After a rotation
// the bus is another one, and a box learns that over HTTPS.
func TestBusHasAnAuthority(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		flags = append(flags, "--nats-tls", "on")
		y := start(t, e, flags...)
		s := y.station(y.owner)
		if s.NATSCA == nil || len(*s.NATSCA) != 64 || !strings.HasPrefix(s.NATSURL, "tls://") {
			t.Fatalf("a box is told %v at %s", s.NATSCA, s.NATSURL)
		}
		var kept string
		y.in(y.acct, func(tx *db.Tx) (err error) {
			kept, _, err = meta.Read(tx, meta.BusCA)
			return err
		})
		if kept == "" || strings.Contains(kept, "PRIVATE") || strings.Contains(kept, "CERTIFICATE") {
			t.Errorf("the database keeps %q", kept)
		}
		probe := func() error { return conn.Probe(patience.Context(t), y.NATSURL(), s.trust()) }
		y.stop()
		y = y.again(e, flags)
		if err := probe(); err != nil {
			t.Errorf("after a restart: %v", err)
		}
		y.stop()
		cfg, err := config.Load("test", flags, func(string) (string, bool) { return "", false }, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		chest, err := OpenKeys(t.Context(), cfg, true)
		if err == nil {
			err = errors.Join(chest.RotateBus(t.Context(), io.Discard), chest.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		y = y.again(e, flags)
		if err := probe(); !conn.IsForeign(err) {
			t.Errorf("after a rotation the bus is still taken for the one before: %v", err)
		}
		pair, err := nkeys.FromSeed(s.seed)
		if err != nil {
			t.Fatal(err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		before := *s.NATSCA
		decode(t, y.send("POST", "/v1/runners/creds/reissue", "", `{"public_key": "`+public+`"}`, "Authorization",
			"Bearer "+*s.RunToken).want(http.StatusOK), &s.Credentials)
		if err := probe(); err != nil || *s.NATSCA == before {
			t.Errorf("what the box was told then (%s, before %s): %v", *s.NATSCA, before, err)
		}
	})
}

// On this machine alone boxes connect in the clear, and nothing is made for TLS.
func TestBusOnThisMachineIsInTheClear(t *testing.T) {
	t.Parallel()
	y := start(t, dbtest.Engines()[0])
	s := y.station(y.owner)
	if s.NATSCA != nil || !strings.HasPrefix(s.NATSURL, "nats://") {
		t.Errorf("a box is told %v at %s", s.NATSCA, s.NATSURL)
	}
	y.in(y.acct, func(tx *db.Tx) error {
		if _, ok, err := meta.Read(tx, meta.BusCA); ok || err != nil {
			t.Errorf("there is an authority: %v", err)
		}
		return nil
	})
}

// Servers that start together on one database have one authority.
func TestServersShareAnAuthority(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		ring, err := seal.Parse(seal.New().Reveal())
		if err != nil {
			t.Fatal(err)
		}
		var all sync.Map
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				a, err := busAuthority(t.Context(), d, ring)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key)); err != nil {
					t.Error(err)
				}
				all.Store(a.Certificate, true)
			})
		}
		wg.Wait()
		n := 0
		all.Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("8 servers have %d authorities", n)
		}
	})
}
