package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/bus"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/db/meta"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/prompt"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/mail"
	"yardmaster/internal/rlimit"
)

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
	a.db, err = db.Open(ctx, a.cfg.Database, db.Options{Logger: a.log, Program: a.opts.Version, Before: before,
		Observe: a.watching.transactions()})
	if err != nil {
		if newer, is := errors.AsType[*db.NewerError](err); is {
			undo()
			return newer
		}
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
	if a.pushKeys, err = pushKeys(ctx, a.db, a.ring); err != nil {
		return err
	}
	if a.sshKey, err = sshKey(a.cfg.SSHKey); err != nil {
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
	if err := a.shareLimits(); err != nil {
		return err
	}
	a.hub, a.boot = event.NewHub(), id.New()
	if a.cfg.Cluster == "on" {
		a.relay = event.NewRelay(a.db, a.hub, a.log)
	}
	a.due = due.New(due.Config{DB: a.db, Hub: a.hub, Logger: a.log, Node: a.boot})
	if a.db.Engine() == db.SQLite {
		if err := errors.Join(a.ledger().Restarted(ctx), a.db.Write(ctx, a.due.Restarted), a.db.Write(ctx, webhook.Restarted)); err != nil {
			return err
		}
	}
	if a.mail, err = mailbox(a); err != nil {
		return err
	}
	if a.blob, err = a.objects(ctx); err != nil {
		return err
	}
	if err := a.startNotary(ctx); err != nil {
		return err
	}
	root := filepath.Join(a.cfg.Data, "git")
	local, err := builtin.New(builtin.Config{Root: root, BaseURL: a.base, Logger: a.log, Deleting: a.deleting})
	if err != nil {
		return err
	}
	a.host = local
	if err := a.startBus(ctx); err != nil {
		return fmt.Errorf("start the message bus: %w", err)
	}
	if err := a.enterCluster(ctx, local); err != nil {
		return err
	}
	a.parts = a.wire()
	if err := a.configuredHost(); err != nil {
		return fmt.Errorf("connect GitHub: %w", err)
	}
	// Before any loop calls a host: what a host that is not connected refuses waits long.
	if a.opts.Still {
		return a.parts.repo.FindLost(ctx)
	}
	if err := a.parts.hosts.Connect(ctx); err != nil {
		a.log.ErrorContext(ctx, "connect the code hosts", slog.Any("error", err)) // and its loop tries again
	}
	if err := a.readers.Begin(ctx); err != nil {
		return err
	}
	return a.parts.repo.FindLost(ctx)
}

// days is a time that the configuration gives in days.
func days(n int) time.Duration { return time.Duration(n) * config.Day }

// mailbox sends through the configured server, or into a folder.
func mailbox(a *App) (*mail.Outbox, error) {
	o := &mail.Outbox{DB: a.db, Hub: a.hub, Ring: a.ring, From: a.cfg.MailFrom, ReplyTo: a.cfg.MailReplyTo, Logger: a.log,
		Hears: people.Hears, Keep: days(a.cfg.KeepMails),
		Transport: mail.Folder{Dir: filepath.Join(a.cfg.Data, "mail")}}
	if a.cfg.SMTPURL != "" {
		server, err := mailServer(a.cfg)
		if err != nil {
			return nil, err
		}
		o.Transport = server
	}
	return o, nil
}

// mailServer is the server of smtp-url, greeted with the host of base-url.
func mailServer(c *config.Config) (*mail.SMTP, error) {
	helo := ""
	if u, err := url.Parse(c.BaseURL); err == nil {
		helo = u.Hostname()
	}
	server, err := mail.ParseSMTP(c.SMTPURL, helo)
	if err != nil {
		return nil, fmt.Errorf("smtp-url: %w", err)
	}
	return server, nil
}

func (a *App) startBus(ctx context.Context) error {
	keys, err := busKeys(ctx, a.db, a.ring)
	if err != nil {
		return err
	}
	own, given, err := a.busTLS(ctx)
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
	cluster, err := a.busCluster(ctx)
	if err != nil {
		return err
	}
	if a.cfg.NATSServers != "" && !a.opts.Still { // those are the original's, and a copy empties none of its accounts
		outside, err := a.busOutside()
		if err != nil {
			return err
		}
		a.bus, err = bus.Start(ctx, bus.Config{URL: a.cfg.NATSURL, Keys: keys, Owner: owner, Logger: a.log, External: outside,
			Observe: a.watching.boxCalls()})
		return err
	}
	listen := natsListen
	if a.opts.Still {
		listen = natsAnywhere
	}
	return listen(ctx, a.db, a.cfg, a.log, func(listen string) (string, error) {
		var err error
		a.bus, err = bus.Start(ctx, bus.Config{Listen: listen, URL: a.cfg.NATSURL, Keys: keys, Authority: own, TLS: given,
			Owner: owner, Logger: a.log, Connections: busConnections(rlimit.Files()),
			Cluster: cluster, Observe: a.watching.boxCalls()})
		if err != nil {
			return "", err
		}
		return a.bus.Addr(), nil
	})
}

// busConnections are the most connections of the bus, for a process that may have so many open files:
// an eighth of them, so that whoever opens more keeps neither requests nor the database from theirs.
func busConnections(files uint64) int { return int(max(min(files, math.MaxInt32)/8, 64)) }

// natsListen starts the bus at the configured address. If the configuration leaves
// the port open, it is the one of the last start, because boxes store the address; or another
// where a program has taken that one meanwhile, which boxes learn when they renew their credentials.
func natsListen(ctx context.Context, d *db.DB, c *config.Config, log *slog.Logger,
	started func(listen string) (addr string, err error)) error {
	listen := c.NATSListen
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	var kept string
	if port == "0" && c.Cluster != "on" { // the nodes of a cluster have one table, and a port each
		err := d.Read(ctx, func(tx *db.Tx) (err error) {
			kept, _, err = meta.Read(tx, natsAddress)
			return err
		})
		if err != nil {
			return err
		}
		if strings.HasPrefix(kept, net.JoinHostPort(host, "")) {
			listen = kept
		}
	}
	addr, err := started(listen)
	var taken bus.TakenError
	if errors.As(err, &taken) && listen != c.NATSListen { // nobody has named this port
		log.WarnContext(ctx, "another program listens at the bus's last address; boxes find the new one by themselves", "was", listen)
		addr, err = started(c.NATSListen)
	}
	if err != nil || port != "0" || addr == kept || c.Cluster == "on" {
		return err
	}
	return d.Write(ctx, func(tx *db.Tx) error {
		if kept == "" {
			return meta.Add(tx, natsAddress, addr)
		}
		_, err := meta.Replace(tx, natsAddress, kept, addr)
		return err
	})
}

// natsAddress is the name of the bus's last address in meta.
const natsAddress = "nats-listen"

// author signs commits of agents and merges.
func (a *App) author() codehost.Person {
	name, address := a.cfg.Author()
	return codehost.Person{Name: name, Email: address}
}

// post queues a mail to an address in the transaction.
func (a *App) post(tx *db.Tx, to, subject, text string) error {
	return a.mail.Post(tx, mail.Message{To: to, Subject: subject, Text: text})
}

// builtinScenario is the answer of the scripted model without a file: that it has
// none.
var builtinScenario = []byte(`scenarios:
  - name: none
    match: ""
    steps:
      - text: This is the scripted model without a scenario. Start the server with --scenario FILE, or add a real model key.
`)

// priceTable returns the built-in prices, after the rows of a file if there is one.
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
