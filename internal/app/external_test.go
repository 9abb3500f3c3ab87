package app

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/estate"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// enters tries to connect with the credential of a station.
func (s *station) enters() error {
	pair, err := nkeys.FromSeed(s.seed)
	if err != nil {
		s.t.Fatal(err)
	}
	nc, err := nats.Connect(s.NATSURL, nats.UserJWT(func() (string, error) { return s.NATSJWT, nil }, pair.Sign))
	if err == nil {
		nc.Close()
	}
	return err
}

// A server uses the NATS servers of somebody else: a box that enrolls is there at once, is shut out by its
// revocation, and doctor says how those servers are.
func TestNATSServers(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		theirs, dir := estate.New(t, 2, time.Second, true), t.TempDir()
		file := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		creds := file("system.creds", theirs.Creds())
		y := start(t, e, append(flags, "--nats-servers", theirs.At(0)+","+theirs.At(1),
			"--nats-operator-key", file("operator", theirs.Operator()+"\n"),
			"--nats-system-creds", creds)...)
		s := y.station(y.owner)
		if s.NATSURL != theirs.At(0)+","+theirs.At(1) || s.NATSCA != nil {
			t.Errorf("a box is told %s, %v", s.NATSURL, s.NATSCA)
		}
		heard := make(chan string, 1000)
		if err := s.conn.Nudges(func(verb string) { heard <- verb }); err != nil {
			t.Fatal(err)
		}
		patience.Until(t, "a nudge reaches the box", func() bool {
			y.bus.Nudge(s.ID, protocol.NudgeCommands)
			return len(heard) > 0
		})
		y.send("GET", "/readyz", "", "").want(http.StatusOK)
		y.send("POST", "/v1/runners/"+s.ID+"/revoke", y.owner, `{}`).want(http.StatusOK)
		patience.Until(t, "the box is shut out", func() bool { return conn.IsRefused(s.enters()) })
		said := func(change func(*config.Config)) string {
			cfg := *y.cfg
			change(&cfg)
			for _, f := range Examine(context.Background(), &cfg) {
				if strings.HasPrefix(f.What, "message bus") {
					return f.What
				}
			}
			return ""
		}
		if got := said(func(*config.Config) {}); got != "message bus: 2 servers keep the accounts of boxes" {
			t.Error(got)
		}
		if got := said(func(c *config.Config) { c.NATSSystem = filepath.Join(dir, "none") }); !strings.Contains(got, "nats-system-creds") {
			t.Error(got)
		}
		if got := said(func(c *config.Config) { c.NATSServers = "nats://127.0.0.1:1" }); !strings.Contains(got, "no servers available") {
			t.Error(got)
		}
	})
}
