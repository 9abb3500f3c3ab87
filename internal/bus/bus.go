// Package bus is the control plane's side of NATS. It carries an embedded
// server in operator mode, mints and revokes the credentials of boxes, and
// offers what the domains need of it: calls from boxes (Handle), commands to
// them (Send, Nudge), their run events (Ingest, Tombstone) and their presence
// (WatchPresence). What travels is defined in internal/protocol; the box's side
// is the package boxconn below this one, which does not import the server.
//
// Every event that Publish on a box has acknowledged is on disk, and so is
// every command that Send has returned from: all stream writes are synchronous.
package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/protocol"
)

// Config is what Start needs. Only Dir and Keys have no default.
type Config struct {
	Dir         string // holds the streams; belongs to one bus at a time
	Listen      string // host:port for boxes; empty is 127.0.0.1:0
	URL         string // address handed to boxes; empty is the listener's
	Keys        Keys   // the same ones for the life of Dir
	TLS         *tls.Config
	Revoked     map[string]time.Time // public keys of boxes, with the times that Revoke was given
	PresenceTTL time.Duration        // zero is protocol.PresenceTTL; at least a second
	Logger      *slog.Logger
}

// Bus is a running embedded server and the control plane's connection to it.
type Bus struct {
	cfg    Config
	log    *slog.Logger
	keys   identity
	server *server.Server
	nc     *nats.Conn
	js     jetstream.JetStream

	ctx    context.Context // of every call and callback; done when Close begins
	cancel context.CancelFunc
	calls  calls

	mu      sync.Mutex
	revoked map[string]int64 // public key of a box -> Unix second
	stops   []func()         // of running Ingests
}

// Start runs the server, connects to it within the process, and makes the
// streams that do not exist yet. It returns once boxes can connect.
func Start(ctx context.Context, cfg Config) (*Bus, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.PresenceTTL == 0 {
		cfg.PresenceTTL = protocol.PresenceTTL
	}
	keys, err := cfg.Keys.parse()
	if err != nil {
		return nil, err
	}
	b := &Bus{cfg: cfg, log: cfg.Logger, keys: keys, revoked: map[string]int64{}}
	for key, at := range cfg.Revoked {
		b.revoked[key] = at.Unix()
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.calls.inFlight = map[string]int{}
	if err := b.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("bus: %w", err), b.Close(ctx))
	}
	return b, nil
}

func (b *Bus) start(ctx context.Context) (err error) {
	account, err := b.accountJWT()
	if err != nil {
		return err
	}
	if b.server, err = startServer(b.cfg, b.keys, account); err != nil {
		return err
	}
	if b.nc, err = b.connect(b.keys.account, "control-plane"); err != nil {
		return err
	}
	if b.js, err = jetstream.New(b.nc); err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	return b.createStreams(ctx)
}

// connect opens a connection within the process, as a new user of the account
// whose key is given: the user lives as long as the connection.
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
	token, err := claims.Encode(account)
	if err != nil {
		return nil, fmt.Errorf("sign the user %s: %w", name, err)
	}
	nc, err := nats.Connect("", nats.InProcessServer(b.server), nats.Name(name),
		nats.UserJWT(func() (string, error) { return token, nil }, user.Sign),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			b.log.Warn("bus connection", "error", err)
		}))
	if err != nil {
		return nil, fmt.Errorf("connect %s: %w", name, err)
	}
	return nc, nil
}

// URL is the address that boxes are to connect to.
func (b *Bus) URL() string {
	if b.cfg.URL != "" {
		return b.cfg.URL
	}
	return b.server.ClientURL()
}

// Addr is the host:port that the server listens on.
func (b *Bus) Addr() string { return b.server.Addr().String() }

// Ping tells whether the server answers and its streams are there.
func (b *Bus) Ping(ctx context.Context) error {
	if _, err := b.js.AccountInfo(ctx); err != nil {
		return fmt.Errorf("bus: ping: %w", err)
	}
	return nil
}

// Close ends calls in flight with an answer that sends boxes elsewhere, waits
// for running callbacks, and stops the server. When ctx ends first it stops the
// server without waiting further.
func (b *Bus) Close(ctx context.Context) error {
	b.cancel()
	b.mu.Lock()
	stops := b.stops
	b.stops = nil
	b.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		for _, stop := range stops {
			stop()
		}
		b.calls.close()
	}()
	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		err = fmt.Errorf("bus: close: callbacks still running: %w", ctx.Err())
	}
	if b.nc != nil {
		// Best effort: answers of the calls that were just cut short.
		_ = b.nc.FlushTimeout(time.Second)
		b.nc.Close()
	}
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	return err
}

func (c Config) jwtDir() string { return filepath.Join(c.Dir, "jwt") }
