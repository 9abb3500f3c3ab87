// Package box is what runs on a box. It enrolls the machine, keeps one
// connection to the control plane, claims runs, and carries each out: a
// checkout, a sandbox, an agent in it, its events spooled and sent, its work
// pushed. It decides nothing about tasks; it makes sure that whatever happens to
// the machine, the network or the agent, the control plane hears each event
// once, finds the work saved, and never has two boxes at one task.
//
// One file holds one concern: identity, enroll, credential (who the box is);
// setup, fitness, agents (what it works with, and whether that is enough);
// hello, presence, claim, command (what it talks about); bound (what a run may take); attempt, lease, sender,
// recover (what it keeps of a run); execute, conclude, judge (the work itself).
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
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/box/selftest"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// ErrRevoked is what Run returns when the control plane has shut the box out.
// Its credentials are deleted by then.
var ErrRevoked = errors.New("this box was revoked")

// Inner are the subcommands with which a box starts its own program again: a
// program that calls Run or Inspect has to have them. Each takes the arguments
// behind its name and returns the exit code.
func Inner() map[string]func(args []string) int {
	return map[string]func([]string) int{sandbox.Command: sandbox.Main, selftest.Command: selftest.Main}
}

// Config is what Run needs. DataDir must hold an identity.
type Config struct {
	DataDir   string
	WorkDir   string // for what agents use: checkouts, homes, caches; empty: DataDir if agents get at it, else a folder that is found
	ServerURL string // empty: where the box enrolled
	Name      string // for the log
	Slots     int    // runs at once; at least 1
	Labels    map[string]string
	Roots     *x509.CertPool // whom the hosts are believed that secrets are sent to; nil: the system's
	Egress    []string       // what sandboxes may reach besides the model: host, *.domain, address or prefix, each with an optional :port
	Limits    string         // what one run may take, over the defaults: see limits.Parse
	WatchOnly bool           // limits are watched, also where control groups are to be had
	Version   string
	Self      string // our own binary, for the built-in agent; empty: this program
	Logger    *slog.Logger
	Timing    Timing
}

// Timing holds the cadences of a box; zero fields take the protocol's. Tests
// shorten them. What a lease demands follows from its length, which the control
// plane says; Renew and Kill only bound it.
type Timing struct {
	Renew     time.Duration // between renewals of a lease, at most; half of it for one call to be answered
	Kill      time.Duration // after the last renewal that was granted, at most; unbounded when zero
	Beat      time.Duration
	ClaimWait time.Duration // for which one claim may wait for a task
	Stall     time.Duration // without a sign of progress, before a run is ended; 15 min
	Park      time.Duration // for which an agent that waits for a person is kept; 10 min
	Grace     time.Duration // for an agent to end a cancelled turn; 10 s
	Wrap      time.Duration // for saving work when an attempt ends; 5 min
	Leave     time.Duration // for all of that, and to hand it in, when the box is stopped; 45 s
	Retry     time.Duration // before what failed is tried again; 1 s
	Seek      time.Duration // without a connection, before the bus is looked for; 5 s
	Look      time.Duration // between two looks for agents that were installed or removed; 15 s
}

// lookEvery is how often a box looks for agents unless it is told otherwise.
const lookEvery = 15 * time.Second

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
		{&t.Look, lookEvery},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return t
}

// box is a running box.
type box struct {
	cfg    Config
	log    *slog.Logger
	keys   *keyring
	memory *memory
	secret seal.Recipient // what the control plane seals for this process; kept nowhere
	conn   *conn.Conn
	proxy  *modelproxy.Proxy
	port   string // address of the proxy on loopback
	broker *broker.Broker
	// brokerPort is the address of the broker on loopback.
	brokerPort string
	setup      *setup
	limits     *limits.Watch

	life      context.Context // of everything
	die       context.CancelCauseFunc
	tasks     sync.WaitGroup
	rotate    chan struct{} // asks for new credentials
	beat      chan struct{} // asks for a beat now
	online    chan struct{} // a connection has come about
	freed     chan struct{} // a slot may be free, or the box may take work again
	commanded chan struct{} // commands may be waiting
	unfitNews chan struct{} // the box has become unfit
	skew      atomic.Int64  // milliseconds by which the control plane's clock is ahead

	mu      sync.Mutex
	runs    map[runKey]*attempt
	orphans map[runKey]*attempt // of an earlier process, not yet judged by the control plane
	busy    int                 // slots taken
	leaving bool                // this process is on its way out
	cutOff  bool                // there is no connection
	refusal bool                // since it was cut, the bus has refused the credential
	greeted bool                // the control plane knows of this connection and its runs
	unfit   string              // why the box can carry out nothing, as its last test says; empty: it can
	taking  sync.Mutex          // held while a command is taken
	unread  int                 // claims in a row whose tokens were not for this process; claimRuns's alone

	retesting sync.Mutex // held while the machine is tested
	beating   sync.Mutex // held while a beat is under way: they arrive in order
	saidLast  bool       // the last beat of this process is out; guarded by beating
}

type runKey struct {
	run     string
	attempt int
}

// Run is a box until ctx ends or the box is revoked. The end of ctx is a drain
// with the work saved: agents are cancelled, what they did is pushed, and the
// control plane hears it, within Timing.Leave. It returns nil then, 15 s later at
// the latest, and what it could not tell any more is told by the next Run on the
// same folder. What does not end in these 15 s is left to the end of the process.
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
	if err := b.openLimits(); err != nil {
		return fmt.Errorf("box: %w", err)
	}
	defer b.closeLimits()
	if err := b.run(ctx); err != nil {
		return fmt.Errorf("box: %w", err)
	}
	return nil
}

// complete fills in what may be left out.
func (cfg Config) complete() (Config, error) {
	cfg.Timing = cfg.Timing.withDefaults()
	cfg.Slots = max(cfg.Slots, 1)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
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
		online: make(chan struct{}, 1), freed: make(chan struct{}, 1), commanded: make(chan struct{}, 1), unfitNews: make(chan struct{}, 1),
		runs: map[runKey]*attempt{}, orphans: map[runKey]*attempt{},
	}
	return b, nil
}

func (b *box) run(ctx context.Context) (err error) {
	// Everything outlives ctx for as long as leaving takes.
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
		Logger: b.log, OnState: b.onState,
	})
	if err != nil {
		return err
	}
	defer b.conn.Close()
	if err := b.conn.Nudges(b.nudged); err != nil {
		return err
	}
	for _, task := range []func(context.Context){
		b.keepCredentials, b.seekBus, b.present, b.greet, b.readCommands, b.retestUnfit, b.watchAgents, b.limits.Run, b.reportExposure,
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
	select {
	case <-b.life.Done():
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
	return nil
}

// Unisolated says what it means that a box of this user offers no isolation.
func Unisolated() string {
	if sandbox.Separate() {
		return "nothing isolates agents: they run as the user " + sandbox.AgentUser() + " and can read and change all that this user can, but not the box's own files; install bubblewrap to isolate them"
	}
	return "nothing isolates agents: they run as the user of the box, can read and change all that this user can, and can read the box's identity and act as the box; install bubblewrap, or run the box as root"
}

// giveBack ends all runs so that another box can go on with them.
func (b *box) giveBack(press pressure, detail string) {
	for _, a := range b.held() {
		a.end(ending{press: press, state: protocol.Lost, kind: "box_drained", detail: detail})
	}
}

// revoke ends everything for good: the box's work is not its own any more.
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

// nudge wakes whoever waits on a channel of one, if nobody else has.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
