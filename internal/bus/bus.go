// Package bus is the control plane's side of NATS. It runs an embedded server in
// operator mode, issues and revokes the credentials of boxes (Issue, Shut),
// answers their calls (Handle) and nudges them (Nudge). The messages are defined
// in internal/protocol; the box's side is internal/box/conn, which does not import
// the server.
//
// The bus stores nothing. A call is answered once its effect is in the database, a
// nudge may be lost, and Config.Owner tells which box an account belongs to: the
// bus can be discarded at any moment, and a box cannot fill it.
//
// Each box has a NATS account of its own, with two paths to the control plane:
// calls under the box's own name lead out, nudges lead in. NATS holds the subject
// of a message against the sender's permissions, but never its reply subject: in
// an account that boxes share, a service that answers is a confused deputy, which
// publishes to any subject that the asker names. Across accounts an answer can
// only go back into the account that asked.
//
//   - bus.go: Start, Close, Ping, State and Nudge
//   - server.go: the embedded server and its log
//   - keys.go: the keys that sign everything
//   - certificate.go: how the listener proves itself to boxes
//   - account.go: accounts, credentials and their end
//   - call.go: calls of boxes
//   - share.go: how much a box may call
//   - cluster.go, sweep.go: the buses of several nodes, and what they tell each other
//   - external.go: servers of somebody else in the place of the embedded one
package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/protocol"
)

// Owner answers which box may use an account now. The server asks when it meets
// an account that it does not know; ctx ends after ownerLimit.
type Owner func(ctx context.Context, account string) (boxID string, ok bool, err error)

// Config is the configuration of a bus. Only Keys and Owner have no default.
type Config struct {
	Listen string // host:port for boxes; empty is 127.0.0.1:0
	URL    string // address handed to boxes, with commas between several; empty is the listener's
	Keys   Keys
	Owner  Owner
	// Authority signs the certificate of the listener. nil: the listener has that of
	// TLS, or is in the clear if there is none.
	Authority *Authority
	TLS       *tls.Config
	Logger    *slog.Logger
	// Connections are the most that may be open at once, those of the control plane itself among
	// them; what is beyond is refused. 0: 65,536.
	Connections int
	// Cluster joins the bus to those of other nodes. nil: it is alone.
	Cluster *Cluster
	// External names the servers to use; Listen, TLS, Authority, Connections and Cluster are of the
	// embedded one, which there is not then.
	External *External
	PutOut   time.Duration // how long a box that calls far too often cannot connect; 0 is a minute
	Share    int           // bytes a second that one box may send; 0 is 16 MiB
	// Now is the time by which it is counted what a box may send, and from which the
	// listener's certificates are dated. nil: time.Now.
	Now func() time.Time
	// Observe is told of every call that was answered, with the error that it was
	// answered. nil: nobody is.
	Observe func(method string, took time.Duration, err error)
}

// Bus is a running embedded server and the control plane's connections to it.
type Bus struct {
	cfg    Config
	log    *slog.Logger
	keys   identity
	ca     string         // fingerprint of Config.Authority
	server *server.Server // nil: there are those of External
	abroad *abroad        // nil: there is the embedded one
	group  group
	nc     *nats.Conn // in the control plane's account
	system *nats.Conn // in the system account
	probe  *nats.Conn // in an account like a box's, for Ping

	own      string          // token of this node in the subject of Ping
	ownProbe string          // the account of Ping
	open     atomic.Bool     // boxes are let in
	ctx      context.Context // of every call; done when Close begins
	cancel   context.CancelFunc
	calls    calls

	changing sync.Mutex // held while the claims of an account change

	mu        sync.Mutex
	shut      map[string]bool      // accounts that Shut has refused
	admitted  map[string]string    // the account that a box was admitted with last, by box
	out       map[string]bool      // boxes that putOut has refused for now
	answering []*nats.Subscription // of the methods of Handle
}

// Start runs the server and connects to it within the process. It returns once
// boxes can connect. The caller closes the bus.
func Start(ctx context.Context, cfg Config) (*Bus, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.PutOut == 0 {
		cfg.PutOut = putOut
	}
	if cfg.Share == 0 {
		cfg.Share = boxShare
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if c := cfg.Cluster; c != nil {
		own := *c
		own.Sweep, own.Grace = cmp.Or(c.Sweep, sweepEvery), cmp.Or(c.Grace, routeGrace)
		cfg.Cluster = &own
	}
	if e := cfg.External; e != nil {
		own := *e
		own.Sweep = cmp.Or(e.Sweep, sweepEvery)
		cfg.External, cfg.Cluster = &own, nil
	}
	if cfg.Owner == nil {
		return nil, errors.New("bus: nobody says whose an account is")
	}
	keys, err := cfg.Keys.parse()
	if err != nil {
		return nil, err
	}
	b := &Bus{
		cfg: cfg, log: cfg.Logger, keys: keys,
		shut: map[string]bool{}, admitted: map[string]string{}, out: map[string]bool{},
	}
	if cfg.External != nil {
		if b.abroad, err = cfg.External.parse(cfg.Keys, &b.keys); err != nil {
			return nil, fmt.Errorf("bus: %w", err)
		}
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.calls.of, b.calls.share, b.calls.now = map[string]*share{}, cfg.Share, cfg.Now
	if err := b.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("bus: %w", err), b.Close(ctx))
	}
	return b, nil
}

// ownPatience bounds an attempt of the control plane's own connections: a thousand boxes may
// stand before it.
const ownPatience = 30 * time.Second

// probeBox is the box name under which Ping calls. No box has it as its id.
const probeBox = "probe"

func (b *Bus) start() (err error) {
	if b.abroad == nil {
		if err := b.protect(); err != nil {
			return err
		}
	}
	accounts, err := b.newAccounts()
	if err != nil {
		return err
	}
	b.ownProbe = accounts.probe
	if b.abroad != nil {
		b.own = b.ownProbe
		err = b.reach(accounts)
	} else if b.server, b.group.options, err = startServer(b.cfg, b.keys, accounts); err == nil {
		b.own = b.server.ID()
		b.system, err = b.connect(b.keys.system, "control-plane-system")
	}
	if err != nil {
		return err
	}
	if b.nc, err = b.connect(b.keys.control, "control-plane"); err != nil {
		return err
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	public, err := user.PublicKey()
	if err != nil {
		return err
	}
	token, err := b.Issue(probeBox, accounts.probe, public, 0)
	if err != nil {
		return err
	}
	if b.probe, err = b.join(probeBox, token, user, nats.CustomInboxPrefix("_INBOX."+probeBox)); err != nil {
		return err
	}
	pong := func(context.Context, string, []byte) (any, error) { return struct{}{}, nil }
	if err := b.Handle(protocol.CallPing, pong); err != nil {
		return err
	}
	if err := b.serve(b.ownPing(), protocol.CallPing, pong); err != nil {
		return err
	}
	if err := b.gather(); err != nil {
		return err
	}
	b.open.Store(true)
	return nil
}

// connect opens a connection within the process, as a new user of the account
// with the given key. The user exists as long as the connection.
func (b *Bus) connect(account nkeys.KeyPair, name string) (*nats.Conn, error) {
	user, err := nkeys.CreateUser()
	if err != nil {
		return nil, fmt.Errorf("make a key for %s: %w", name, err)
	}
	public, err := user.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("make a key for %s: %w", name, err)
	}
	claims := jwt.NewUserClaims(public)
	claims.Name = name
	if b.abroad != nil {
		account, claims.IssuerAccount = b.abroad.users, b.keys.controlID
	}
	token, err := claims.Encode(account)
	if err != nil {
		return nil, fmt.Errorf("sign the user %s: %w", name, err)
	}
	return b.join(name, token, user)
}

// join opens a connection within the process. On a machine that is busy the server may lose patience
// with it, as with any client that is slow to say who it is: then it is tried again.
func (b *Bus) join(name, token string, user nkeys.KeyPair, more ...nats.Option) (*nats.Conn, error) {
	return b.dial(name, append(more, nats.UserJWT(func() (string, error) { return token, nil }, user.Sign))...)
}

// dial is join with other credentials.
func (b *Bus) dial(name string, more ...nats.Option) (*nats.Conn, error) {
	address := ""
	if e := b.cfg.External; e != nil {
		address = e.Servers
		more = append(more, e.options()...)
	} else {
		more = append(more, nats.InProcessServer(b.server))
	}
	options := append([]nats.Option{nats.Name(name),
		nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond),
		nats.Timeout(ownPatience),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			b.log.Warn("bus connection", "error", err)
		})}, more...)
	for begun := time.Now(); ; {
		nc, err := nats.Connect(address, options...)
		if err == nil {
			return nc, nil
		}
		if b.server == nil || !b.server.Running() || time.Since(begun) >= ownPatience {
			return nil, fmt.Errorf("connect %s: %w", name, err)
		}
		b.log.Info("bus connection", "name", name, "tried again after", err)
		time.Sleep(50 * time.Millisecond)
	}
}

// URL is the address that boxes connect to, or several with commas between: those of all nodes,
// this one's first. That of a listener begins with tls:// if the listener speaks TLS.
func (b *Bus) URL() string {
	all := strings.Split(b.OwnURL(), ",")
	b.group.mu.Lock()
	defer b.group.mu.Unlock()
	for _, of := range b.group.boxes {
		for one := range strings.SplitSeq(of, ",") {
			if one != "" && !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return strings.Join(all, ",")
}

// OwnURL is the address of this node that boxes connect to, or several with commas between.
func (b *Bus) OwnURL() string {
	if b.cfg.URL != "" {
		return b.cfg.URL
	}
	if b.abroad != nil {
		return b.cfg.External.Servers
	}
	return b.server.ClientURL()
}

// Addr is the host:port on which the server listens; empty: there is no embedded one.
func (b *Bus) Addr() string {
	if b.server == nil {
		return ""
	}
	return b.server.Addr().String()
}

// Ping makes a call as a box does, from an account like a box's. It fails if the
// call is not answered before ctx ends.
func (b *Bus) Ping(ctx context.Context) error {
	if _, err := b.probe.RequestWithContext(ctx, b.ownPing(), nil); err != nil {
		return fmt.Errorf("bus: ping: %w", err)
	}
	return nil
}

// ownPing is the subject of the calls of Ping, which this node answers itself: another one may be
// frozen.
func (b *Bus) ownPing() string {
	return protocol.CallSubject(probeBox, protocol.CallPing+"."+b.own)
}

// State is how a bus is doing.
type State struct {
	Connected bool  // the control plane is connected to the server
	Boxes     int   // connections of boxes; with External, boxes that have called this node within some minutes
	In, Out   int64 // messages that the control plane has received and sent
}

// State answers how the bus is doing.
func (b *Bus) State() State {
	s := State{Connected: b.nc.IsConnected() && b.system.IsConnected()}
	if b.server != nil {
		s.Boxes = b.server.NumClients()
	} else {
		s.Boxes = b.calls.boxes()
	}
	for _, nc := range []*nats.Conn{b.nc, b.system, b.probe} {
		if b.server != nil && nc.IsConnected() {
			s.Boxes--
		}
	}
	stats := b.nc.Stats()
	s.In, s.Out, s.Boxes = int64(stats.InMsgs), int64(stats.OutMsgs), max(s.Boxes, 0)
	return s
}

// Nudge sends a verb without data to a box, which then asks the control plane for
// the matter. The message may be lost, and has no answer.
func (b *Bus) Nudge(boxID, verb string) {
	if err := checkToken("box id", boxID); err != nil {
		b.log.Error("nudge", "error", err)
		return
	}
	if err := b.nc.Publish(protocol.ControlSubject(boxID, verb), nil); err != nil {
		b.log.Warn("nudge", "box", boxID, "verb", verb, "error", err)
	}
}

// Close ends the calls in flight with the fault "The control plane is
// restarting.", waits for them, and stops the server. When ctx ends first, Close
// stops the server at once and returns an error.
func (b *Bus) Close(ctx context.Context) error {
	others := b.others()
	if others || b.abroad != nil && b.nc != nil {
		b.handOver()
	}
	b.cancel()
	b.group.loops.Wait()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		b.calls.close()
	}()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = fmt.Errorf("bus: close: calls still running: %w", ctx.Err())
	}
	for _, nc := range []*nats.Conn{b.nc, b.system, b.probe} {
		if nc != nil {
			// Best effort: send the answers of the calls that were just ended.
			_ = nc.FlushTimeout(time.Second)
			nc.Close()
		}
	}
	if others {
		b.moveBoxes(ctx)
	}
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	return err
}
