// Package app puts the program together: it opens what the domains stand on,
// wires them to each other, serves their capabilities over HTTP, and starts
// and stops everything in order.
//
//	app.go                    App, and its life from start to stop
//	open.go                   opens the data folder, the database, the bus and the hosts;
//	                          locks.go, keys.go and keyring.go keep others out and open secrets
//	domains.go, subscribe.go  the one list of the domains, and of what they tell each other;
//	                          topics.go and clock.go list what clients follow and what waits
//	start.go, http.go         the server and the loops; limits.go, providers.go, notary.go and
//	                          observe.go are settings of theirs
//	stop.go                   ends them in order
//	objects.go                opens the store of objects
//	cluster.go                other nodes
//	probes.go, storage.go     what the health of the server is made of
//	describe.go, …            the documents of the API: describe_events.go, samples.go
//	rotate.go                 changes the keys of a server that does not run
package app

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"yardmaster/internal/api/held"
	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/limit/drawn"
	"yardmaster/internal/api/op"
	"yardmaster/internal/blob"
	"yardmaster/internal/bus"
	"yardmaster/internal/certificate"
	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/codehost/homes"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/db/lease"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/quota"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/event/notary"
	"yardmaster/internal/flow"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/scripted"
	"yardmaster/internal/mail"
	"yardmaster/internal/proxies"
	"yardmaster/internal/remote"
	"yardmaster/internal/seal"
	"yardmaster/internal/webpush"
)

// Options are the settings that a program, not its user, chooses.
type Options struct {
	Version string
	SHA     string // commit of a released build
	Logger  *slog.Logger
	// Still has it reach nobody: it runs no loop, connects to no code host, and its bus takes any
	// port. It is for a copy that is being tried.
	Still bool
	// Grace is how many seconds a merge waits that a person has ordered, where no policy file
	// says it. The demo and tests wait for nobody's second thoughts.
	Grace int
	// Ready is called once requests are answered.
	Ready func(*App)
}

// App is a running control plane.
type App struct {
	cfg       *config.Config
	opts      Options
	log       *slog.Logger
	lock      *os.File
	file      *os.File     // the lock of SQLite's file
	lease     *lease.Lease // nil: the files that the database is are locked
	db        *db.DB
	bus       *bus.Bus
	hub       *event.Hub
	due       *due.Kernel
	relay     *event.Relay      // nil: no other node shares the database
	peers     *bus.Cluster      // nil: no other node shares the database
	nodes     *nodes.Registry   // nil: no other node shares the database
	door      net.Listener      // for other nodes
	secure    *tls.Config       // of the listener; nil: it speaks no TLS
	authority *certificate.ACME // nil: nobody is asked for its certificate
	// neighbours is the built-in host of all nodes.
	neighbours *homes.Host
	ring       *seal.Keyring
	clients    *seal.Keyring // for what outlives master keys
	pushKeys   webpush.Keys
	sshKey     *remote.Key // nil: no machine can be dialled
	mail       *mail.Outbox
	blob       blob.Store
	notary     *notary.Notary
	host       builtInHost       // its folders and its door; domains are given hosts
	roads      http.RoundTripper // to code hosts
	readers    *event.Readers    // of what is done after an event
	model      *scripted.Server
	prices     *llm.Prices
	cache      *limit.Shared  // nil: requests are not counted in Redis
	counts     *drawn.Limiter // nil: nor in the database
	base       string         // address others reach us at
	// Tests replace these fields; complete fills in the rest.
	clock       func() time.Time // of what is kept in memory
	after       func(time.Duration) <-chan time.Time
	line        box.Bus // to boxes
	hosts       *codehost.Hosts
	repoFolders repo.Folders // of the built-in host
	commits     queue.Commits
	backoff     []time.Duration // of tasks that are tried again
	setup       string
	listens     string // host and port
	parts       parts
	calls       *op.Pipeline    // of what is served
	conns       *held.Conns     // from when it serves
	lasting     context.Context // of streams, and of all that is no call; nil: nothing is served
	watching    watching
	// stopping is true from when the process was asked to end.
	boot     string // of this process, among all that there were
	stopping atomic.Bool
}

// builtInHost is the built-in host, with the parts that no other host has: its folders
// and its HTTP door.
type builtInHost interface {
	codehost.Host
	repo.Folders
	quota.Sizes
	// Lost answers the repositories whose folders are missing.
	Lost() []codehost.Repo
	// Handler serves git clients.
	Handler(builtin.Hooks) http.Handler
}

// Run runs a control plane until ctx ends. It returns nil once everything that was
// accepted is stored.
func Run(ctx context.Context, cfg *config.Config, o Options) (err error) {
	repo.SetGrace(o.Grace)
	a := &App{cfg: cfg, opts: o, log: o.Logger}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	a.listens = listener.Addr().String()
	if a.base = cfg.BaseURL; a.base == "" {
		a.base = "http://" + listener.Addr().String()
		if cfg.SpeaksTLS() {
			a.base = "https://" + listener.Addr().String()
		}
	}
	proxies.SpareServer(ctx, a.base)
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.certified(); err != nil {
		return err
	}
	if err := a.watch(ctx); err != nil {
		return err
	}
	if err := a.open(ctx); err != nil {
		return explain(cfg, err)
	}
	return a.serve(ctx, listener)
}

// complete fills in the fields that no test has replaced.
func (a *App) complete() {
	if a.clock == nil {
		a.clock = time.Now
	}
	if a.after == nil {
		a.after = time.After
	}
	if a.roads == nil && a.opts.Still {
		a.roads = nowhere{}
	}
	if a.roads == nil {
		a.roads = a.hostRoads()
	}
	if a.due == nil {
		a.due = due.New(due.Config{DB: a.db, Hub: a.hub, Logger: a.log})
	}
	if a.line == nil {
		a.line = a.bus
	}
	if a.hosts == nil {
		a.hosts = codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: a.host, Forge: builtin.Forge{}}})
	}
	if a.repoFolders == nil {
		a.repoFolders = a.host
	}
	if a.commits == nil {
		a.commits = flow.QueueCommits{DB: a.db, Hosts: a.hosts}
	}
}

// URL is the address others reach the server at.
func (a *App) URL() string { return a.base }

// NATSURL is the address boxes connect to.
func (a *App) NATSURL() string { return a.bus.URL() }

// SignInURL returns the address of a page whose button signs a user in, once and within
// an hour, and leads to an address of this server.
func (a *App) SignInURL(ctx context.Context, userID, accountID, returnTo string) (string, error) {
	path, err := a.parts.signin.Link(ctx, userID, accountID, returnTo)
	return a.base + path, err
}

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
