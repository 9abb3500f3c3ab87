package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Cluster joins the bus to those of other nodes of one database: a call of a box is
// answered by any node, and a nudge reaches a box at whichever node it is.
type Cluster struct {
	Node   string // id of this node: each has a server name of its own, or there is no cluster
	Listen string // host:port for other nodes
	Reach  string // host:port where other nodes reach that, with its port if that is 0; empty: as it is
	// Peers are the addresses of the nodes that are known at the start. SetPeers changes them.
	Peers map[string]string // id -> host:port
	// Authority signs the certificates by which nodes know each other, and is not that of
	// boxes.
	Authority Authority
	// Owners lists all accounts that boxes may use now, with their boxes.
	Owners func(ctx context.Context) (map[string]string, error)
	// May tells whether a box may call now. It is asked at each call: a node that was cut off has
	// heard of no revocation. nil: each box that is connected may.
	May func(ctx context.Context, boxID string) (bool, error)
	// Sweep is the time between two comparisons with Owners; 0 is 30 s.
	Sweep time.Duration
	// Grace is how long a node may be without a route to a live one; 0 is 10 s. It is longer than
	// a node that was killed counts as live.
	Grace time.Duration
}

const (
	nodeName = "node.yardmaster.internal" // the only name in a node's certificate
	// A route that is silent for three pings is closed.
	routePing     = time.Second
	routePingsOut = 2
	sweepEvery    = 30 * time.Second
	routeGrace    = 10 * time.Second
	lookEvery     = 500 * time.Millisecond // at the routes
)

// NodeTLS is the configuration of both sides of a connection between nodes: each proves to
// have a certificate of the authority, over TLS 1.3.
func NodeTLS(a Authority, now func() time.Time) (*tls.Config, error) {
	i, err := a.parse(now)
	if err != nil {
		return nil, err
	}
	i.name, i.usage = nodeName, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if _, err := i.get(nil); err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(i.certificate)
	return &tls.Config{
		GetCertificate:       i.get,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.get(nil) },
		ClientAuth:           tls.RequireAndVerifyClientCert, ClientCAs: pool, RootCAs: pool,
		ServerName: nodeName, MinVersion: tls.VersionTLS13, Time: now,
	}, nil
}

// join adds the cluster to the options of the server.
func (c *Cluster) join(o *server.Options, now func() time.Time) error {
	host, port, err := splitListen(c.Listen)
	if err != nil {
		return err
	}
	secure, err := NodeTLS(c.Authority, now)
	if err != nil {
		return err
	}
	o.ServerName = c.Node
	o.Routes = routesTo(c.Node, c.Peers)
	o.Cluster = server.ClusterOpts{
		Name: "yardmaster", Host: host, Port: port, TLSConfig: secure, TLSTimeout: 5,
		// Boxes learn addresses from the control plane alone.
		NoAdvertise:  true,
		PingInterval: routePing, MaxPingsOut: routePingsOut,
	}
	o.Cluster.Advertise = c.Reach
	return nil
}

func routesTo(own string, peers map[string]string) (out []*url.URL) {
	for _, id := range slices.Sorted(maps.Keys(peers)) {
		if id != own && peers[id] != "" {
			out = append(out, &url.URL{Scheme: "nats-route", Host: peers[id]})
		}
	}
	return out
}

// group is what a bus knows of the other nodes.
type group struct {
	options *server.Options // that the server runs with
	adrift  atomic.Bool     // the node is cut off from most others: it has no boxes

	mu     sync.Mutex
	peers  map[string]string    // id -> address, this node among them
	absent map[string]time.Time // since when there is no route to a peer
	boxes  []string             // addresses at which boxes reach the nodes
	gone   []string             // accounts that letGo has closed
	loops  sync.WaitGroup
}

// RoutesAddr is the host:port at which other nodes reach the bus; empty if it is alone.
func (b *Bus) RoutesAddr() string {
	if b.cfg.Cluster == nil {
		return ""
	}
	listens := b.server.ClusterAddr()
	if host, free := strings.CutSuffix(b.cfg.Cluster.Reach, ":0"); free {
		return fmt.Sprintf("%s:%d", host, listens.Port)
	}
	return cmp.Or(b.cfg.Cluster.Reach, listens.String())
}

// SetPeers tells the bus which nodes are live, by id, with their addresses, and where boxes
// reach each. It makes routes to those that are new.
func (b *Bus) SetPeers(peers map[string]string, boxes []string) error {
	c := b.cfg.Cluster
	if c == nil {
		return nil
	}
	g := &b.group
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peers, g.boxes = maps.Clone(peers), slices.Clone(boxes)
	maps.DeleteFunc(g.absent, func(id string, _ time.Time) bool { _, live := peers[id]; return !live })
	routes := routesTo(c.Node, peers)
	if slices.EqualFunc(routes, g.options.Routes, func(x, y *url.URL) bool { return x.Host == y.Host }) {
		return nil
	}
	next := *g.options
	next.Routes, next.TrustedKeys = routes, nil // the server takes the keys from the operators
	if err := b.server.ReloadOptions(&next); err != nil {
		return fmt.Errorf("bus: routes to other nodes: %w", err)
	}
	g.options = &next
	return nil
}

// Routed answers, in order, the ids of the nodes that a route leads to.
func (b *Bus) Routed() []string { return slices.Compact(slices.Sorted(maps.Values(b.routes()))) }

// routes answers the routes by the number that each connection has at this node, with the nodes
// that they lead to.
func (b *Bus) routes() map[uint64]string {
	out := map[uint64]string{}
	z, err := b.server.Routez(nil)
	if err != nil {
		b.log.Error("bus: list the routes", "error", err)
		return out
	}
	for _, r := range z.Routes {
		out[r.Rid] = r.RemoteName
	}
	return out
}

// missing answers, in order, the live nodes that no route has led to for longer than the grace.
func (b *Bus) missing() (out []string) {
	if b.cfg.Cluster == nil {
		return nil
	}
	now := b.cfg.Now()
	b.group.mu.Lock()
	defer b.group.mu.Unlock()
	for id, since := range b.group.absent {
		if now.Sub(since) > b.cfg.Cluster.Grace {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Routes fails if a live node cannot be reached by a route, or if this node has let its boxes
// go because it is cut off from most.
func (b *Bus) Routes(context.Context) error {
	lost := b.missing()
	switch {
	case b.group.adrift.Load():
		return fmt.Errorf("bus: %w: no route leads to %s", ErrCutOff, strings.Join(lost, ", "))
	case len(lost) > 0:
		return fmt.Errorf("bus: no route leads to %s", strings.Join(lost, ", "))
	}
	return nil
}

// ErrCutOff says that the node is cut off from most others, and has let its boxes go.
var ErrCutOff = errors.New("this node is cut off from the others and has let its boxes go")

// cutOff tells whether a node should let its boxes go: its part of the cluster, what it reaches
// and itself, is smaller than the rest, or as large and without the first node.
func cutOff(own string, peers map[string]string, lost []string) bool {
	if len(lost) == 0 {
		return false
	}
	here := len(peers) - len(lost)
	if 2*here != len(peers) {
		return 2*here < len(peers)
	}
	return slices.Contains(lost, slices.Min(slices.Collect(maps.Keys(peers))))
}

// gather begins to watch over the routes, and to hear the other nodes.
func (b *Bus) gather() error {
	c := b.cfg.Cluster
	if c == nil && b.abroad == nil {
		return nil
	}
	if _, err := b.nc.Subscribe(subjectOut, b.hearOut); err != nil {
		return err
	}
	if b.abroad != nil {
		b.group.loops.Go(b.watchAbroad)
		return b.nc.Flush()
	}
	b.group.peers, b.group.absent = maps.Clone(c.Peers), map[string]time.Time{}
	b.group.loops.Go(b.watch)
	return b.nc.Flush()
}

// watch compares routes and accounts with what the database says, until the bus closes.
func (b *Bus) watch() {
	look, sweep := time.NewTicker(lookEvery), time.NewTicker(b.cfg.Cluster.Sweep)
	defer look.Stop()
	defer sweep.Stop()
	before := map[uint64]string{}
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-sweep.C:
			b.sweep("it is time")
			continue
		case <-look.C:
		}
		now := b.routes()
		b.note(slices.Collect(maps.Values(now)))
		// A route may have gone and come back between two looks: what was told meanwhile is lost.
		for route := range now {
			if _, known := before[route]; !known {
				b.sweep("a route is back")
				break
			}
		}
		before = now
		b.drift()
	}
}

// note remembers since when a live node has no route.
func (b *Bus) note(routed []string) {
	g := &b.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.peers {
		if id == b.cfg.Cluster.Node || slices.Contains(routed, id) {
			delete(g.absent, id)
		} else if _, known := g.absent[id]; !known {
			g.absent[id] = b.cfg.Now()
		}
	}
}

// drift lets the boxes go if the node is cut off, and lets them in again when it is not.
func (b *Bus) drift() {
	lost := b.missing()
	b.group.mu.Lock()
	off := cutOff(b.cfg.Cluster.Node, b.group.peers, lost)
	b.group.mu.Unlock()
	if b.group.adrift.Swap(off) == off {
		return
	}
	if off {
		b.log.Error("this node is cut off from the others and lets its boxes go", "lost", lost)
		b.letGo()
		return
	}
	b.log.Warn("this node is with the others again and lets boxes in")
	b.sweep("it was cut off")
}

// others tells whether there are nodes that boxes can go to.
func (b *Bus) others() bool {
	return b.cfg.Cluster != nil && b.server != nil && b.server.NumRemotes() > 0
}

// handOver has the other nodes answer calls from now on.
func (b *Bus) handOver() {
	b.mu.Lock()
	answering := b.answering
	b.mu.Unlock()
	for _, sub := range answering {
		_ = sub.Drain() // fails if the connection is gone, and then nothing is answered
	}
	_ = b.nc.FlushTimeout(time.Second) // best effort
}

// moveBoxes lets the boxes go to the other nodes, over some seconds.
func (b *Bus) moveBoxes(ctx context.Context) {
	moved := make(chan struct{})
	go func() {
		defer close(moved)
		b.server.LameDuckShutdown()
	}()
	limit := time.NewTimer(lameDuck + time.Second)
	defer limit.Stop()
	select {
	case <-moved:
	case <-limit.C:
	case <-ctx.Done():
	}
}
