// Package rig is what tests of the running program have in common: a control plane
// that is started for one test (rig.go), requests to it (request.go), and the
// repositories, boxes, tokens and blockers that its requests are about (work.go).
// It does not import app, so that the tests inside of app may use it too.
package rig

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/box/coder"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

// ShortLease is the lease of a test in which one has to run out: a flag of Boot,
// "--lease", rig.ShortLease. All other tests have the usual one, which no honest work on a
// busy machine is too slow for.
const ShortLease = "20s"

// Password is ada's.
const Password = "a long password"

//go:embed scenario.yml
var scenario []byte

// Main runs the tests of a package that starts control planes. The test binary is
// also the program that a box starts its agents with. Each of last is called before it
// ends.
func Main(m *testing.M, last ...func()) {
	if len(os.Args) > 1 {
		if inner, ok := box.Inner()[os.Args[1]]; ok {
			os.Exit(inner(os.Args[2:]))
		}
	}
	if len(os.Args) == 2 && os.Args[1] == "agent" { // of boxes in this process
		if err := coder.Main(context.Background(), os.Stdin, os.Stdout, os.Environ()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dbtest.Main(m, last...)
}

// Plane is what a test uses of a running control plane.
type Plane struct {
	URL      string // of the API
	DB       *db.DB
	Tasks    *task.Service
	Blockers *blocker.Service
}

// Program runs a control plane until ctx ends. It calls ready once, when requests
// are answered.
type Program func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(Plane)) error

// Yard is a running control plane. It has no users until Enter.
type Yard struct {
	Plane
	T     *testing.T
	Log   *slog.Logger // of the control plane and its boxes
	DSN   string       // of its database
	Setup string       // token of the first-boot address, which Enter uses up
	Stop  func()       // ends the control plane; the end of the test does otherwise

	Owner   string // a token with everything an owner may hold
	User    string // ada's id
	Account string // acme's id
}

// Log returns what a control plane logs to: the output of a verbose test, and
// nothing otherwise.
func Log(t *testing.T) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return slog.New(slog.DiscardHandler)
}

// Boot runs a control plane that nobody has set up, on a fresh database, until the
// test ends. Tests that poll would soon be refused, so requests are not counted
// unless a flag says so. Its bus does not listen where the kernel chooses: a server that
// is started again on its data would take that port again, which may be another's by then.
// Flags are further ones of `yardmaster serve`.
func Boot(t *testing.T, e db.Engine, log *slog.Logger, run Program, flags ...string) *Yard {
	t.Helper()
	y := &Yard{T: t, Log: log, DSN: dbtest.DSN(t, e), Setup: id.Secret(id.Setup)}
	dir := t.TempDir()
	script := filepath.Join(dir, "scenario.yml")
	if err := os.WriteFile(script, scenario, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--database", y.DSN, "--setup-token", y.Setup,
		"--nats-listen", loopback.Address(), "--rate-limits", "off", "--scenario", script, "--service-token", "the-form",
	}
	cfg, err := config.Load("test", append(args, flags...), func(string) (string, bool) { return "", false }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan Plane, 1), make(chan error, 1)
	go func() { ended <- run(ctx, cfg, log, func(p Plane) { ready <- p }) }()
	select {
	case y.Plane = <-ready:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	y.Stop = sync.OnceFunc(func() {
		cancel()
		y.await(ended, "the control plane", nil)
	})
	t.Cleanup(y.Stop)
	return y
}

// await fails the test unless a part of it stops, without an error or with the one
// that is expected.
func (y *Yard) await(ended <-chan error, what string, expected error) {
	y.T.Helper()
	if err := patience.Receive(y.T, "the end of "+what, ended); err != nil && (expected == nil || !errors.Is(err, expected)) {
		y.T.Errorf("%s: %v", what, err)
	}
}

// Enter does what the first-boot page does, for ada of acme.
func (y *Yard) Enter() *Yard {
	y.T.Helper()
	var made struct {
		User    struct{ ID string }
		Account struct{ ID string }
	}
	resp, body := y.Send(http.MethodPost, "/setup/"+y.Setup, "",
		`{"login": "ada", "email": "ada@example.com", "password": "`+Password+`", "account": "acme"}`)
	if err := json.Unmarshal(body, &made); err != nil || resp.StatusCode != http.StatusCreated {
		y.T.Fatalf("set up: %d %s", resp.StatusCode, body)
	}
	y.User, y.Account = made.User.ID, made.Account.ID
	y.Owner = y.Mint(policy.PAT, y.Account, y.User, policy.Owner.Ceiling()|policy.PlatformRead, nil)
	return y
}

// Eventually polls until is answers true.
func (y *Yard) Eventually(what string, is func() bool) {
	y.T.Helper()
	patience.Until(y.T, what, is)
}
