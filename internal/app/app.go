// Package app puts the program together: it opens what the domains stand on,
// wires them to each other, serves their capabilities over HTTP, and starts
// and stops everything in order. domains.go is the one visible list of what
// there is.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/bus"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/lease"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/prompt"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/event/notary"
	"yardmaster/internal/flow"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/mail"
	"yardmaster/internal/seal"
)

// Options are what a program, not its user, decides.
type Options struct {
	Version string
	SHA     string // commit of a released build
	Logger  *slog.Logger
	// Ready is called once requests are answered.
	Ready func(*App)
}

// App is a running control plane.
type App struct {
	cfg     *config.Config
	opts    Options
	log     *slog.Logger
	lock    *os.File
	file    *os.File     // the lock of SQLite's file
	lease   *lease.Lease // nil: the files that the database is are locked
	db      *db.DB
	bus     *bus.Bus
	hub     *event.Hub
	relay   *event.Relay // nil: no other node shares the database
	ring    *seal.Keyring
	clients *seal.Keyring // for what outlives master keys
	mail    *mail.Outbox
	notary  *notary.Notary
	host    *builtin.Host  // for its HTTP door and its lost folders; domains are given hosts
	readers *event.Readers // of what is done after an event
	model   *scripted.Server
	prices  *llm.Prices
	cache   *limit.Shared // nil: requests are counted in this process alone
	base    string        // address others reach us at
	// What tests replace; complete fills in the rest.
	clock       func() time.Time // of what is kept in memory
	line        box.Bus          // to boxes
	hosts       *codehost.Hosts
	repoFolders repo.Folders // of the built-in host
	foresight   task.Foresight
	backoff     []time.Duration // of tasks that are tried again
	setup       string
	parts       parts
	watching    watching
	// stopping is true from when the process was asked to end.
	stopping atomic.Bool
}

// Run is the control plane from start to stop: it returns nil once ctx has
// ended and everything accepted is stored.
func Run(ctx context.Context, cfg *config.Config, o Options) (err error) {
	a := &App{cfg: cfg, opts: o, log: o.Logger}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	if a.base = cfg.BaseURL; a.base == "" {
		a.base = "http://" + listener.Addr().String()
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.watch(ctx); err != nil {
		return err
	}
	if err := a.open(ctx); err != nil {
		return explain(cfg, err)
	}
	return a.serve(ctx, listener)
}

// complete fills in what no test has replaced.
func (a *App) complete() {
	if a.clock == nil {
		a.clock = time.Now
	}
	if a.line == nil {
		a.line = a.bus
	}
	if a.hosts == nil {
		a.hosts = codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: a.host, Forge: a.host}})
	}
	if a.repoFolders == nil {
		a.repoFolders = a.host
	}
	if a.foresight == nil {
		a.foresight = flow.Foresight{DB: a.db, Hosts: a.hosts}
	}
}

func (a *App) open(ctx context.Context) (err error) {
	if err := prompt.Check(a.cfg.SystemPrompt); err != nil {
		return err
	}
	undo := untouched(a.cfg.Data)
	if a.lock, err = lock(a.cfg.Data); err != nil {
		return err
	}
	ring, err := readKeys(ctx, a.cfg)
	if err != nil {
		undo()
		return err
	}
	if err := a.lockFile(); err != nil {
		undo()
		return err
	}
	var taken error
	before := func(ctx context.Context, d *db.DB) error {
		taken = a.takeLease(ctx, d)
		return taken
	}
	if a.db, err = db.Open(ctx, a.cfg.Database, db.Options{Logger: a.log, Before: before, Observe: a.watching.transactions()}); err != nil {
		if taken != nil {
			undo()
			return taken
		}
		return fmt.Errorf("open the database: %w", err)
	}
	if err := a.takeLease(ctx, a.db); err != nil { // of a database that is new
		undo()
		return err
	}
	if a.ring, err = keyring(ctx, a.db, a.cfg, ring, a.log); err != nil {
		undo()
		return err
	}
	if a.clients, err = clientKeys(ctx, a.db, a.ring); err != nil {
		return err
	}
	if a.setup, err = setupToken(ctx, a.db, a.cfg); err != nil {
		return err
	}
	if a.model, err = scriptedModel(a.cfg.Scenario); err != nil {
		return err
	}
	if a.prices, err = priceTable(a.cfg.Prices); err != nil {
		return err
	}
	if a.cache, err = shareLimits(a.cfg, a.log); err != nil {
		return err
	}
	a.hub = event.NewHub()
	if a.cfg.Cluster == "on" {
		a.relay = event.NewRelay(a.db, a.hub, a.log)
	}
	if a.db.Engine() == db.SQLite {
		if err := a.ledger().Restarted(ctx); err != nil {
			return err
		}
	}
	if a.mail, err = outbox(a); err != nil {
		return err
	}
	if err := a.startNotary(ctx); err != nil {
		return err
	}
	if a.host, err = builtin.New(builtin.Config{Root: filepath.Join(a.cfg.Data, "git"), BaseURL: a.base, Logger: a.log}); err != nil {
		return err
	}
	if err := a.startBus(ctx); err != nil {
		return fmt.Errorf("start the message bus: %w", err)
	}
	a.parts = a.wire()
	if err := a.readers.Begin(ctx); err != nil {
		return err
	}
	return a.parts.repo.FindLost(ctx)
}

// outbox sends through the configured server, or into a folder.
func outbox(a *App) (*mail.Outbox, error) {
	o := &mail.Outbox{DB: a.db, Hub: a.hub, Ring: a.ring, From: a.cfg.MailFrom, Logger: a.log, Transport: mail.Folder{Dir: filepath.Join(a.cfg.Data, "mail")}}
	if a.cfg.SMTPURL != "" {
		helo := ""
		if u, err := url.Parse(a.cfg.BaseURL); err == nil {
			helo = u.Hostname()
		}
		server, err := mail.ParseSMTP(a.cfg.SMTPURL, helo)
		if err != nil {
			return nil, fmt.Errorf("smtp-url: %w", err)
		}
		o.Transport = server
	}
	return o, nil
}

func (a *App) startBus(ctx context.Context) error {
	keys, err := busKeys(ctx, a.db, a.ring)
	if err != nil {
		return err
	}
	// Earlier versions kept events there that boxes hold in their spools, too.
	if err := os.RemoveAll(filepath.Join(a.cfg.Data, "nats")); err != nil {
		return err
	}
	owner := func(ctx context.Context, account string) (boxID string, ok bool, err error) {
		err = a.db.Read(ctx, func(tx *db.Tx) error {
			boxID, ok, err = box.Owner(tx, account)
			return err
		})
		return boxID, ok, err
	}
	return natsListen(ctx, a.db, a.cfg, func(listen string) (string, error) {
		var err error
		a.bus, err = bus.Start(ctx, bus.Config{Listen: listen, URL: a.cfg.NATSURL, Keys: keys, Owner: owner, Logger: a.log, Observe: a.watching.boxCalls()})
		if err != nil {
			return "", err
		}
		return a.bus.Addr(), nil
	})
}

// serve answers requests and runs the loops until ctx ends. Requests in
// flight get a moment; long polls and streams are ended at once.
func (a *App) serve(ctx context.Context, listener net.Listener) error {
	base, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	server := &http.Server{
		Handler:           rest.Hurry(a.cfg.BodyTime, a.handler()),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: a.cfg.HeaderTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	alive, end := context.WithCancel(a.watching.counting(context.WithoutCancel(ctx)))
	defer end()
	g, running := errgroup.WithContext(alive)
	g.Go(func() error {
		a.farewell(ctx, running)
		end()
		return nil
	})
	for _, loop := range a.loops() {
		g.Go(func() error { return loop(running) })
	}
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-running.Done()
		cancelRequests()
		stop, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := server.Shutdown(stop); err != nil {
			server.Close()
		}
		return nil
	})
	if a.opts.Ready != nil {
		a.opts.Ready(a)
	}
	err := g.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // a loop that was still on its way up
	}
	return err
}

// farewell returns when the process has been asked to end and has told so for
// long enough, or when something has ended it.
func (a *App) farewell(ctx, running context.Context) {
	select {
	case <-ctx.Done():
	case <-running.Done():
		return
	}
	a.stopping.Store(true)
	a.log.InfoContext(ctx, "stopping", slog.Duration("in", a.cfg.StopDelay))
	if a.cfg.StopDelay <= 0 {
		return
	}
	wait := time.NewTimer(a.cfg.StopDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-running.Done():
	}
}

func (a *App) close() error {
	var errs []error
	if a.bus != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, a.bus.Close(ctx))
	}
	if a.parts.gateway != nil {
		a.parts.gateway.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, a.parts.budget.Close(ctx))
	}
	if a.cache != nil {
		errs = append(errs, a.cache.Close())
	}
	if a.notary != nil {
		errs = append(errs, a.closeNotary())
	}
	if a.lease != nil && a.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, a.lease.Release(ctx))
	}
	if a.db != nil {
		errs = append(errs, a.db.Close())
	}
	if a.file != nil {
		errs = append(errs, a.file.Close())
	}
	if a.lock != nil {
		errs = append(errs, a.lock.Close())
	}
	errs = append(errs, a.watching.close())
	return errors.Join(errs...)
}

// URL is the address others reach the server at.
func (a *App) URL() string { return a.base }

// NATSURL is the address boxes connect to.
func (a *App) NATSURL() string { return a.bus.URL() }

// SetupURL is the first-boot address; empty once there is a user.
func (a *App) SetupURL(ctx context.Context) (string, error) {
	var done bool
	err := a.db.Read(ctx, func(tx *db.Tx) (err error) {
		done, err = people.HasUsers(tx)
		return err
	})
	if err != nil || done {
		return "", err
	}
	return a.base + "/setup/" + a.setup, nil
}

// builtinScenario is what the scripted model answers without a file: it says
// that it has none.
var builtinScenario = []byte(`scenarios:
  - name: none
    match: ""
    steps:
      - text: This is the scripted model without a scenario. Start the server with --scenario FILE, or add a real model key.
`)

// priceTable is the built-in one, behind the rows of a file if there is one.
func priceTable(path string) (*llm.Prices, error) {
	if path == "" {
		return llm.DefaultPrices(), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	own, err := llm.ParsePrices(text)
	if err != nil {
		return nil, fmt.Errorf("prices %s: %w", path, err)
	}
	return own.Before(llm.DefaultPrices()), nil
}

func scriptedModel(path string) (*scripted.Server, error) {
	text := builtinScenario
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("scenario: %w", err)
		}
	}
	s, err := scripted.ParseScenarios(text)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", path, err)
	}
	return scripted.New(s), nil
}
