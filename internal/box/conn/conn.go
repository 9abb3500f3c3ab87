// Package conn is a box's connection to the bus: one NATS connection that calls the
// control plane and receives its nudges. It tries to connect until it is closed. It
// buffers nothing: a call without a connection fails with ErrOffline, and the
// caller's spool is the only queue.
package conn

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// ErrOffline means that the control plane is out of reach, or was lost before it
// answered. The caller may try again later; it is unknown whether the request was
// carried out.
var ErrOffline = errors.New("the control plane is out of reach")

// State is the state of the connection, for Options.OnState.
type State struct {
	Connected bool
	Err       error // why it is not connected, or why the last attempt to connect failed; may be nil
}

// Options are the options of Dial. All are optional.
type Options struct {
	Logger  *slog.Logger
	Trust   func() Trust  // asked at every attempt; nil: TrustOf(url, "")
	TLS     *tls.Config   // what connections over TLS have besides
	Attempt time.Duration // bounds an attempt to connect; 0: ten seconds
	OnState func(State)   // called one at a time; it must not block
}

// Conn is a connection to the bus. Its methods may be called concurrently.
type Conn struct {
	box string
	nc  *nats.Conn
	log *slog.Logger
	end context.CancelFunc // of an attempt to connect that is under way

	mu   sync.Mutex
	up   chan struct{}   // closed while connected
	link context.Context // done when the present connection ends, and while there is none
	cut  context.CancelFunc
}

// Dial returns at once and connects in the background. It calls creds at every
// attempt to connect, so that it uses renewed credentials. creds must return a copy
// of the seed, which is wiped after use. Dial fails only if url cannot be used.
func Dial(url, boxID string, creds func() (jwt string, seed []byte), o Options) (*Conn, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnState == nil {
		o.OnState = func(State) {}
	}
	if o.Trust == nil {
		o.Trust = func() Trust { return TrustOf(url, "") }
	}
	c := &Conn{box: boxID, log: o.Logger, up: make(chan struct{})}
	dialer := &dialer{trust: o.Trust, base: o.TLS}
	dialer.ctx, c.end = context.WithCancel(context.Background())
	c.link, c.cut = context.WithCancel(context.Background())
	c.cut()
	options := []nats.Option{
		nats.Name(boxID),
		nats.UserJWT(
			func() (string, error) { token, _ := creds(); return token, nil },
			func(nonce []byte) ([]byte, error) { _, seed := creds(); return sign(seed, nonce) }),
		nats.CustomInboxPrefix("_INBOX." + boxID),
		nats.SetCustomDialer(dialer),
		nats.SkipHostLookup(), // the dialer needs the name that the certificate has to have
		nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(), // an expired credential may be renewed over HTTPS meanwhile
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		nats.CustomReconnectDelay(backoff),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsOut),
		nats.Timeout(cmp.Or(o.Attempt, attemptLimit)),
		nats.ConnectHandler(func(*nats.Conn) { c.connected(); o.OnState(State{Connected: true}) }),
		nats.ReconnectHandler(func(*nats.Conn) { c.connected(); o.OnState(State{Connected: true}) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { c.disconnected(); o.OnState(State{Err: err}) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { o.OnState(State{Err: err}) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.log.Warn("connection to the control plane", "error", err)
			if IsRefused(err) {
				o.OnState(State{Err: err})
			}
		}),
	}
	nc, err := nats.Connect(strings.Join(inClear(url), ","), options...)
	if err != nil {
		c.end()
		return nil, fmt.Errorf("connection: dial %s: %w", url, err)
	}
	c.nc = nc
	return c, nil
}

// addresses lists the addresses of a bus as host:port. What a box was told earlier may
// have blanks, other schemes or no port.
func addresses(list string) (out []string) {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if _, after, ok := strings.Cut(one, "://"); ok {
			one = after
		}
		if _, _, err := net.SplitHostPort(one); err != nil && one != "" {
			one = net.JoinHostPort(strings.Trim(one, "[]"), "4222")
		}
		if one != "" {
			out = append(out, one)
		}
	}
	return out
}

// inClear lists the addresses of a bus for the NATS client, which is not to make its own
// of TLS: the dialer does.
func inClear(list string) []string {
	out := addresses(list)
	for i := range out {
		out[i] = "nats://" + out[i]
	}
	return out
}

// A bus that is silent for three pings is left for another of its addresses. An attempt may
// take long: when a thousand boxes come back at once, one that is given up and made again is
// more work for the bus than one that waits.
const (
	pingEvery    = 2 * time.Second
	pingsOut     = 2
	attemptLimit = 10 * time.Second
)

// IsRefused tells whether State.Err means that the control plane refused the
// credential, because it has expired or was revoked.
func IsRefused(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked)
}

// backoff returns the pause before an attempt to connect: short at first, because
// the control plane restarts quickly, then up to 5 s. nats.go counts rounds from
// one.
func backoff(round int) time.Duration {
	pause := min(50*time.Millisecond<<min(max(round, 1)-1, 10), 5*time.Second)
	return pause - rand.N(pause/4) // so that boxes that were cut off together come back one by one
}

func sign(seed, nonce []byte) ([]byte, error) {
	defer clear(seed)
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		return nil, err
	}
	defer pair.Wipe()
	return pair.Sign(nonce)
}

func (c *Conn) connected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.Err() != nil {
		c.link, c.cut = context.WithCancel(context.Background())
		close(c.up)
	}
}

func (c *Conn) disconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.Err() == nil {
		c.cut()
		c.up = make(chan struct{})
	}
}

// Wait returns nil once there is a connection, or ctx's error.
func (c *Conn) Wait(ctx context.Context) error {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Reconnect drops the connection and opens another one to url with the present
// credentials. Without a connection it tries at once instead of waiting.
func (c *Conn) Reconnect(url string) error {
	if err := c.nc.SetServerPool(inClear(url)); err != nil {
		return fmt.Errorf("connection: reconnect to %s: %w", url, err)
	}
	if err := c.nc.ForceReconnect(); err != nil {
		return fmt.Errorf("connection: reconnect: %w", err)
	}
	return nil
}

// Bytes is how much was received and sent over the connections so far.
func (c *Conn) Bytes() (in, out uint64) {
	s := c.nc.Stats()
	return s.InBytes, s.OutBytes
}

// Close ends the connection for good.
func (c *Conn) Close() {
	c.end()
	c.nc.Close()
	c.disconnected()
}

// onLink returns a context that also ends with the present connection.
func (c *Conn) onLink(ctx context.Context) (context.Context, context.CancelFunc) {
	c.mu.Lock()
	link := c.link
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	if link.Err() != nil {
		cancel()
		return ctx, cancel
	}
	unhook := context.AfterFunc(link, cancel)
	return ctx, func() { unhook(); cancel() }
}

// request sends a message and waits for the answer until ctx or the connection
// ends.
func (c *Conn) request(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	onLink, cancel := c.onLink(ctx)
	defer cancel()
	if onLink.Err() != nil && ctx.Err() == nil {
		return nil, ErrOffline
	}
	answer, err := c.nc.RequestMsgWithContext(onLink, m)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case onLink.Err() != nil:
		return nil, ErrOffline
	}
	return nil, offline(err)
}

// offline wraps errors that mean an absent peer in ErrOffline.
func offline(err error) error {
	for _, absent := range []error{
		nats.ErrNoResponders, nats.ErrReconnectBufExceeded, nats.ErrConnectionClosed,
		nats.ErrConnectionReconnecting, nats.ErrDisconnected,
	} {
		if errors.Is(err, absent) {
			return fmt.Errorf("%w: %w", ErrOffline, err)
		}
	}
	return err
}

// Call sends a request to the control plane and decodes the answer into out, unless
// out is nil. A refusal is a *fault.Error, an absent control plane ErrOffline. ctx
// needs a deadline.
func (c *Conn) Call(ctx context.Context, method string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("connection: call %s: %w", method, err)
	}
	return c.call(ctx, method, body, out)
}

func (c *Conn) call(ctx context.Context, method string, body []byte, out any) error {
	answer, err := c.request(ctx, &nats.Msg{Subject: protocol.CallSubject(c.box, method), Data: body})
	if err != nil {
		return fmt.Errorf("connection: call %s: %w", method, err)
	}
	if code := answer.Header.Get(micro.ErrorCodeHeader); code != "" {
		return refusal(code, answer.Data)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Data, out); err != nil {
		return fmt.Errorf("connection: call %s: read the answer: %w", method, err)
	}
	return nil
}

func refusal(code string, body []byte) error {
	var f protocol.Failure
	if err := json.Unmarshal(body, &f); err != nil {
		return fmt.Errorf("connection: read a failure: %w", err)
	}
	status, _ := strconv.Atoi(code) // an unknown code becomes fault.Internal
	for _, k := range fault.Kinds() {
		if k.Status() == status {
			return fault.New(k, f.Slug, f.Error)
		}
	}
	return fault.New(fault.Internal, f.Slug, f.Error)
}

// Append asks the control plane to store events. It returns up to which event the
// attempt is stored for certain. An Append with an unknown outcome may be repeated.
// The error is, or wraps, ErrTooLarge, ErrOffline, a *fault.Error or ctx's. ctx
// needs a deadline.
func (c *Conn) Append(ctx context.Context, e protocol.Envelope) (out protocol.Appended, err error) {
	e.V = protocol.Version
	body, err := json.Marshal(e)
	switch {
	case err != nil:
	case len(body) > protocol.MaxMessage:
		err = fmt.Errorf("%w: %d bytes", ErrTooLarge, len(body))
	default:
		err = c.call(ctx, protocol.CallAppend, body, &out)
	}
	if err != nil {
		return out, fmt.Errorf("connection: append events of run %s: %w", e.Run, err)
	}
	return out, nil
}

// ErrTooLarge means that an envelope has more than protocol.MaxMessage bytes.
var ErrTooLarge = errors.New("the envelope is too large")

// Nudges calls fn for each nudge of the control plane to this box, one at a time.
// Nudges are not repeated, and none arrives without a connection.
func (c *Conn) Nudges(fn func(verb string)) error {
	prefix := protocol.ControlSubject(c.box, "")
	_, err := c.nc.Subscribe(prefix+">", func(m *nats.Msg) { fn(strings.TrimPrefix(m.Subject, prefix)) })
	if err != nil {
		return fmt.Errorf("connection: nudges: %w", err)
	}
	return nil
}
