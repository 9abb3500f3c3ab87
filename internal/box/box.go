// Package box is the program that runs on a box. It enrolls the machine, keeps
// one connection to the control plane, claims runs, and carries each out: it
// makes a checkout, starts an agent in a sandbox, spools and sends the events,
// and pushes the work. It decides nothing about tasks. Whatever happens to the
// machine, the network or the agent, the control plane receives each event once
// and finds the work saved, and two boxes never work on one task.
//
// One file holds one concern: identity, enroll, credential (who the box is);
// setup, fitness, agents (what it works with, and whether that is enough);
// hello, presence, claim, command (what it exchanges with the control plane);
// bound (what a run may take); attempt, lease, sender, recover (what it keeps of
// a run); execute, conclude, judge (the work itself).
package box

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/box/broker"
	"yardmaster/internal/box/conn"
	"yardmaster/internal/box/limits"
	"yardmaster/internal/box/modelproxy"
	"yardmaster/internal/box/prepared"
	"yardmaster/internal/box/program"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/box/selftest"
	"yardmaster/internal/protocol"
	"yardmaster/internal/proxies"
	"yardmaster/internal/seal"
)

// ErrRevoked is returned by Run when the control plane has revoked the box. Run has
// deleted the credentials by then.
var ErrRevoked = errors.New("this box was revoked")

// Inner lists the subcommands with which a box starts its own program again. A
// program that calls Run or Inspect has to offer them. Each takes the arguments
// behind its name and returns the exit code.
func Inner() map[string]func(args []string) int {
	return map[string]func([]string) int{sandbox.Command: sandbox.Main, selftest.Command: selftest.Main}
}

// Config configures Run. DataDir must hold an identity.
type Config struct {
	DataDir string
	// WorkDir holds what agents use: checkouts, homes, caches. Empty means
	// DataDir if agents can reach it, else a folder that Run finds.
	WorkDir   string
	ServerURL string // empty: the server that enrolled the box
	Name      string // for the log
	Slots     int    // runs at once; at least 1
	Labels    map[string]string
	Roots     *x509.CertPool // certificates trusted for the hosts that secrets are sent to; nil: the system's
	// Egress lists what sandboxes may reach besides the model: host, *.domain,
	// address or prefix, each with an optional :port.
	Egress    []string
	Limits    string // what one run may take, over the defaults: see limits.Parse
	WatchOnly bool   // watch the limits even where control groups are available
	Version   string
	Self      string // our own binary, for the built-in agent; empty: this program
	Logger    *slog.Logger
	Timing    Timing
	// Programs is where the box keeps what it is told to run in place of its program; nil: it
	// updates nothing. ReleaseKeys are the keys of what it takes; empty: those it was told at
	// its enrolment.
	Programs    *program.Store
	ReleaseKeys []string
	clock       clock // nil: the real one
}

// Timing holds the intervals of a box; zero fields take the protocol's. Tests
// shorten them. The control plane sets the length of a lease, and with it the times
// to renew it and to kill the agent; Renew and Kill only bound these.
type Timing struct {
	Renew     time.Duration // at most, between renewals of a lease; one call has half of it to be answered
	Kill      time.Duration // at most, from the last granted renewal until the agent is killed; unbounded when zero
	Beat      time.Duration
	ClaimWait time.Duration // how long one claim may wait for a task
	Stall     time.Duration // without a sign of progress, until a run is ended; 15 min
	Park      time.Duration // how long an agent that waits for a person is kept; 10 min
	Grace     time.Duration // how long an agent may take to end a cancelled turn; 10 s
	Wrap      time.Duration // how long the work of an attempt may take to collect, and how long to push; 5 min
	Leave     time.Duration // how long ending, saving and sending may take when the box is stopped; 45 s
	Retry     time.Duration // until a failed call is repeated; 1 s
	Seek      time.Duration // without a connection, until the box asks where the bus is; 5 s
	Scan      time.Duration // between two searches for installed agents; 15 s
}

// scanEvery is the default of Timing.Scan.
const scanEvery = 15 * time.Second

func (t Timing) withDefaults() Timing {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Renew, protocol.RenewEvery},
		{&t.Beat, protocol.BeatEvery},
		{&t.ClaimWait, protocol.ClaimWait},
		{&t.Stall, 15 * time.Minute},
		{&t.Park, 10 * time.Minute},
		{&t.Grace, 10 * time.Second},
		{&t.Wrap, 5 * time.Minute},
		{&t.Leave, 45 * time.Second},
		{&t.Retry, time.Second},
		{&t.Seek, 5 * time.Second},
		{&t.Scan, scanEvery},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return t
}

// link is the connection to the control plane, a *conn.Conn but in tests.
type link interface {
	Call(ctx context.Context, method string, in, out any) error
	Append(ctx context.Context, e protocol.Envelope) (protocol.Appended, error)
	Nudges(fn func(verb string)) error
	Wait(ctx context.Context) error
	Reconnect(url string) error
	Close()
}

// box is a running box.
type box struct {
	cfg    Config
	log    *slog.Logger
	keys   *keyring
	memory *memory
	secret seal.Recipient // the control plane seals tokens and secrets for it; it exists in this process alone
	conn   link
	proxy  *modelproxy.Proxy
	port   string // loopback address of the proxy
	broker *broker.Broker
	// brokerPort is the loopback address of the broker.
	brokerPort string
	setup      *setup
	results    *prepared.Store // of prepare scripts
	limits     *limits.Watch
	update     update

	life        context.Context // the lifetime of everything that the box does
	die         context.CancelCauseFunc
	tasks       sync.WaitGroup
	rotate      chan struct{} // asks for new credentials
	beat        chan struct{} // asks for a beat now
	online      chan struct{} // there is a new connection
	freed       chan struct{} // a slot may be free, or the box may take work again
	commanded   chan struct{} // commands may be waiting
	becameUnfit chan struct{} // wakes retestUnfit: the box has become unfit
	skew        atomic.Int64  // milliseconds by which the control plane's clock is ahead

	mu       sync.Mutex
	runs     map[runKey]*attempt
	orphans  map[runKey]*attempt // of an earlier process; the control plane has not decided about them yet
	busy     int                 // slots taken
	leaving  bool                // this process is ending
	cutOff   bool                // there is no connection
	refusal  bool                // the bus has refused the credential, or the box the bus, since the connection was lost
	greeted  bool                // the control plane knows of this connection and its runs
	unfit    string              // why the box can carry out nothing, by its last test; empty: it can
	unfitFor unfitFor            // repositories of which it takes no work
	taking   sync.Mutex          // held while a command is taken
	unopened int                 // claims in a row whose tokens this process could not open; only claimRuns uses it
	late     int                 // runs in a row that came too late for their lease; only claimRuns uses it

	retesting sync.Mutex // held while the machine is tested
	beating   sync.Mutex // held while a beat is under way: they arrive in order
	lastSent  bool       // the last beat of this process was sent; guarded by beating
}

type runKey struct {
	run     string
	attempt int
}

// Run runs the box until ctx ends or the box is revoked. When ctx ends, Run cancels
// the agents, pushes their work and sends their events within Timing.Leave. It
// returns nil at most 15 s later, and program.ErrSwap if it has made room for another
// program. What it could not send, the next Run on the same folder sends. What has not ended in these 15 s ends with the process.
func Run(ctx context.Context, cfg Config) error {
	if err := prepareProcess(); err != nil {
		return fmt.Errorf("box: %w", err)
	}
	b, err := newBox(cfg)
	if err != nil {
		return fmt.Errorf("box: %w", err)
	}
	lock, err := lockDir(cfg.DataDir)
	if err != nil {
		return fmt.Errorf("box: %w", err)
	}
	defer lock.Close()
	b.setup, err = setUp(ctx, b.cfg)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	case err != nil:
		return err
	}
	defer b.setup.release()
	b.results = &prepared.Store{Dir: filepath.Join(b.setup.work, "prepared"), Ready: sandbox.Admit}
	b.results.Sweep(prepared.Most)
	if err := b.openLimits(); err != nil {
		return fmt.Errorf("box: %w", err)
	}
	defer b.closeLimits()
	if err := b.run(ctx); errors.Is(err, program.ErrSwap) {
		return err
	} else if err != nil {
		return fmt.Errorf("box: %w", err)
	}
	return nil
}

// complete fills in the defaults.
func (cfg Config) complete() (Config, error) {
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Slots = max(cfg.Slots, 1)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.clock == nil {
		cfg.clock = realClock{}
	}
	if err := CheckLimits(cfg.Limits); err != nil {
		return cfg, err
	}
	var err error
	if cfg.Self == "" {
		if cfg.Self, err = os.Executable(); err != nil {
			return cfg, fmt.Errorf("find our own program: %w", err)
		}
	}
	for _, dir := range []*string{&cfg.DataDir, &cfg.WorkDir} {
		if *dir == "" {
			continue
		}
		if *dir, err = filepath.Abs(*dir); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

func newBox(cfg Config) (*box, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	id, err := LoadIdentity(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	if cfg.ServerURL != "" {
		id.ServerURL = cfg.ServerURL
	}
	proxies.SpareServer(context.Background(), id.ServerURL) // for git as well
	m, err := openMemory(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	secret, err := seal.NewRecipient()
	if err != nil {
		return nil, err
	}
	b := &box{
		cfg: cfg, log: cfg.Logger.With("box", id.Box),
		keys: &keyring{dataDir: cfg.DataDir, id: id}, memory: m, secret: secret,
		rotate: make(chan struct{}, 1), beat: make(chan struct{}, 1),
		online: make(chan struct{}, 1), freed: make(chan struct{}, 1),
		commanded: make(chan struct{}, 1), becameUnfit: make(chan struct{}, 1),
		runs: map[runKey]*attempt{}, orphans: map[runKey]*attempt{},
	}
	return b, b.openUpdate()
}

func (b *box) run(ctx context.Context) (err error) {
	// Everything outlives ctx until leave has returned.
	b.life, b.die = context.WithCancelCause(context.WithoutCancel(ctx))
	defer b.die(nil)
	if err := b.loadOrphans(); err != nil {
		return err
	}
	if err := b.startProxy(); err != nil {
		return err
	}
	defer b.proxy.Close()
	if err := b.startBroker(); err != nil {
		return err
	}
	defer b.broker.Close()
	id := b.keys.get()
	b.conn, err = conn.Dial(id.NATSURL, id.Box, b.keys.nats, conn.Options{
		Logger: b.log, OnState: b.onState, Trust: b.keys.trust,
	})
	if err != nil {
		return err
	}
	defer b.conn.Close()
	if err := b.conn.Nudges(b.nudged); err != nil {
		return err
	}
	for _, task := range []func(context.Context){
		b.keepCredentials, b.seekBus, b.present, b.greet, b.readCommands,
		b.retestUnfit, b.watchAgents, b.limits.Run, b.reportExposure, b.forgetKept, b.keepUpdated,
	} {
		b.tasks.Go(func() { task(b.life) })
	}
	claims, withdraw := context.WithCancel(b.life)
	defer withdraw()
	claimed := make(chan struct{})
	b.tasks.Go(func() { defer close(claimed); b.claimRuns(claims) })
	if b.setup.levels[0] == sandbox.None {
		b.log.Warn(Unisolated())
	}
	b.log.Info("box started", "name", b.cfg.Name, "slots", b.cfg.Slots, "isolation", b.setup.levels)
	b.limits.Report()
	var late <-chan time.Time
	var swapped error
	select {
	case <-b.life.Done():
	case <-b.update.swap:
		b.leave(func() { withdraw(); <-claimed })
		late, swapped = time.After(endWait), program.ErrSwap
	case <-ctx.Done():
		b.leave(func() { withdraw(); <-claimed })
		late = time.After(endWait)
	}
	b.die(nil)
	b.proxy.Close()
	b.broker.Close()
	b.awaitTasks(late)
	if cause := context.Cause(b.life); errors.Is(cause, ErrRevoked) {
		return cause
	}
	return swapped
}

// Unisolated is the warning for a box that offers no isolation when this user runs
// it.
func Unisolated() string {
	if sandbox.Separate() {
		return "nothing isolates agents: they run as the user " + sandbox.AgentUser() +
			" and can read and change all that this user can, but not the box's own files; install bubblewrap to isolate them"
	}
	return "nothing isolates agents: they run as the user of the box, can read and change all that this user can, " +
		"and can read the box's identity and act as the box; install bubblewrap, or run the box as root"
}

// giveBack ends all runs so that another box can continue them.
func (b *box) giveBack(severity severity, detail string) {
	for _, a := range b.held() {
		a.end(ending{severity: severity, state: protocol.Lost, kind: "box_drained", detail: detail})
	}
}

// revoke ends everything for good: the runs do not belong to this box any more.
func (b *box) revoke(detail string) {
	b.log.Error("box revoked", "detail", detail)
	for _, a := range b.held() {
		a.fence("the box was revoked")
	}
	if err := b.keys.destroy(); err != nil {
		b.log.Error("revoked", "error", err)
	}
	b.die(ErrRevoked)
}

func (b *box) held() []*attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]*attempt, 0, len(b.runs)+len(b.orphans))
	for _, a := range b.runs {
		out = append(out, a)
	}
	for _, a := range b.orphans {
		out = append(out, a)
	}
	return out
}

// nudge wakes the goroutine that waits on a channel of capacity one. It never
// blocks.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
