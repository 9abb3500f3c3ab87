package held

import (
	"container/list"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/api/limit"
)

// refusing is how many connections are told at once that they are refused. Beyond it they
// are closed without a word.
const refusing = 64

// farewell is how long a connection that is refused may take to hear so.
const farewell = time.Second

// Conns counts the connections of a server. A connection on which no request is being
// answered is idle. When there are too many, idle connections keep nobody out: of those that
// have sent no request yet and those that have, whichever are more, the one that is idle for
// the longest time is closed. When an address has too many, it is the one of all of its own
// that is idle for the longest time. If none is idle, the new one is refused.
// Safe for concurrent use.
type Conns struct {
	limits  Limits
	trusted []netip.Prefix // proxies, which have no limit of their own
	refusal []byte         // what a connection is told that is refused
	secure  *tls.Config    // over which it is told; nil: the server speaks no TLS

	mu    sync.Mutex
	n     int
	sites map[netip.Addr]*visitor
	// The idle connections, longest idle first: those that have sent no request yet, and
	// those that have.
	fresh, used list.List
	farewells   int
}

// visitor is an address with its connections.
type visitor struct {
	n    int
	idle list.List
}

// NewConns makes a Conns. Connections that are refused are sent the bytes of refusal, a whole
// response of HTTP/1.1, over TLS where secure is not nil.
func NewConns(l Limits, trusted []netip.Prefix, refusal []byte, secure *tls.Config) *Conns {
	if secure != nil {
		secure = secure.Clone()
		secure.NextProtos = []string{"http/1.1"}
	}
	return &Conns{limits: l, trusted: trusted, refusal: refusal, secure: secure, sites: map[netip.Addr]*visitor{}}
}

// Listener counts the connections that a listener accepts.
func (c *Conns) Listener(l net.Listener) net.Listener { return &listener{l, c} }

// Context is the ConnContext of an http.Server whose requests go through Room.
func (c *Conns) Context(ctx context.Context, of net.Conn) context.Context {
	if over, ok := of.(*tls.Conn); ok {
		of = over.NetConn()
	}
	if own, ok := of.(*conn); ok {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// Open answers how many connections there are.
func (c *Conns) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

type listener struct {
	net.Listener
	conns *Conns
}

// Accept answers the next connection that is not refused.
func (l *listener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.conns.admit(nc); c != nil {
			return c, nil
		}
	}
}

// conn is a connection that is counted.
type conn struct {
	net.Conn
	of   *Conns
	from *visitor
	site netip.Addr // as which peers are counted
	// Guarded by of.mu. The elements are nil while a request is being answered.
	inAll, inSite *list.Element
	seen          bool // it has sent a request
	gone          bool
}

// admit counts a connection, and closes idle ones for it. It refuses it with nil.
func (c *Conns) admit(nc net.Conn) *conn {
	peer := peerOf(nc.RemoteAddr())
	at := limit.Site(peer.String())
	c.mu.Lock()
	v := c.sites[at]
	if v == nil {
		v = &visitor{}
	}
	var shut []*conn
	ok := true
	if v.n >= c.limits.PerAddress && !c.isTrusted(peer) {
		ok = c.makeRoom(v.idle.Front(), &shut)
	}
	if ok && c.n >= c.limits.All {
		of := &c.used
		if c.fresh.Len() > of.Len() {
			of = &c.fresh
		}
		ok = c.makeRoom(of.Front(), &shut)
	}
	var in *conn
	if ok {
		in = &conn{Conn: nc, of: c, from: v, site: at}
		c.n++
		v.n++
		c.sites[at] = v
		in.rest()
	}
	tell := !ok && c.farewells < refusing
	if tell {
		c.farewells++
	}
	c.mu.Unlock()
	for _, s := range shut {
		_ = s.Conn.Close()
	}
	switch {
	case tell:
		go c.refuse(nc)
	case !ok:
		_ = nc.Close()
	}
	return in
}

// makeRoom takes an idle connection out, to be closed; false if there is none.
func (c *Conns) makeRoom(e *list.Element, shut *[]*conn) bool {
	if e == nil {
		return false
	}
	idle := e.Value.(*conn)
	idle.forget()
	*shut = append(*shut, idle)
	return true
}

func (c *Conns) isTrusted(peer netip.Addr) bool {
	return slices.ContainsFunc(c.trusted, func(p netip.Prefix) bool { return p.Contains(peer) })
}

// refuse tells a connection that it is refused, and closes it.
func (c *Conns) refuse(nc net.Conn) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.farewells--
	}()
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(farewell))
	if c.secure != nil {
		nc = tls.Server(nc, c.secure) // which shakes hands before it writes
	}
	if _, err := nc.Write(c.refusal); err != nil {
		return
	}
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	// What the other end has sent is read, or it would not hear the refusal (RFC 9112, section 9.6).
	_, _ = io.Copy(io.Discard, io.LimitReader(nc, 64<<10))
}

// rest makes the connection an idle one.
func (k *conn) rest() {
	all := &k.of.fresh
	if k.seen {
		all = &k.of.used
	}
	k.inAll, k.inSite = all.PushBack(k), k.from.idle.PushBack(k)
}

// wake makes the connection one that is not idle.
func (k *conn) wake() {
	if k.inAll == nil {
		return
	}
	k.of.fresh.Remove(k.inAll) // of whichever list it is an element
	k.of.used.Remove(k.inAll)
	k.from.idle.Remove(k.inSite)
	k.inAll, k.inSite = nil, nil
}

// forget takes the connection out of the counts.
func (k *conn) forget() {
	if k.gone {
		return
	}
	k.gone = true
	k.wake()
	k.of.n--
	if k.from.n--; k.from.n == 0 {
		delete(k.of.sites, k.site)
	}
}

// work notes that a request of the connection is being answered, until done.
func (k *conn) work() (done func()) {
	k.of.mu.Lock()
	defer k.of.mu.Unlock()
	k.wake()
	k.seen = true
	return func() {
		k.of.mu.Lock()
		defer k.of.mu.Unlock()
		if !k.gone && k.inAll == nil {
			k.rest()
		}
	}
}

// Close closes the connection.
func (k *conn) Close() error {
	k.of.mu.Lock()
	k.forget()
	k.of.mu.Unlock()
	return k.Conn.Close()
}

// CloseWrite closes the half of the connection that is written.
func (k *conn) CloseWrite() error {
	if half, ok := k.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// ReadFrom lets the system send files.
func (k *conn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(k.Conn, r) }
