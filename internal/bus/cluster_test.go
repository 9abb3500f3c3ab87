package bus_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/bus"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/chaos"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

func (r *registry) owners(context.Context) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.boxes), nil
}

// may tells whether a box has an account.
func (r *registry) may(_ context.Context, box string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(r.boxes)), box), nil
}

// nodes are several buses of one registry. The routes between them run through cables.
type nodes struct {
	t      testing.TB
	cfg    config
	all    []server
	names  []string
	cables []*chaos.Cable // to each node
	peers  map[string]string
}

// startNodes runs buses that have routes to each other.
func startNodes(t testing.TB, count int, change func(*config)) *nodes {
	t.Helper()
	n := &nodes{t: t, cfg: newConfig(t), peers: map[string]string{}}
	n.cfg.Cluster = &bus.Cluster{Authority: *newAuthority(t), Owners: n.cfg.registry.owners, May: n.cfg.registry.may,
		Sweep: time.Hour, Grace: 50 * time.Millisecond}
	if change != nil {
		change(&n.cfg)
	}
	for i := range count {
		cable, err := chaos.NewCable()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cable.Close() })
		cfg, cluster := n.cfg, *n.cfg.Cluster
		cluster.Node, cluster.Listen, cluster.Peers = fmt.Sprintf("node%d", i), loopback.Address(), n.peers
		cluster.Reach = cable.Addr().String()
		cfg.Cluster = &cluster
		b := start(t, cfg)
		cable.Plug(cluster.Listen)
		n.all, n.names, n.cables = append(n.all, b), append(n.names, cluster.Node), append(n.cables, cable)
		n.peers = maps.Clone(n.peers)
		n.peers[cluster.Node] = b.RoutesAddr()
	}
	for _, b := range n.all {
		if err := b.SetPeers(n.peers, nil); err != nil {
			t.Fatal(err)
		}
	}
	n.joined()
	return n
}

// joined waits until each node has a route to each.
func (n *nodes) joined() {
	n.t.Helper()
	for i, b := range n.all {
		patience.Until(n.t, n.names[i]+" has all routes", func() bool { return len(b.Routed()) == len(n.all)-1 })
	}
}

// A call of a box at one node is answered by any, and a nudge of any node reaches it.
func TestNodesAreOneBus(t *testing.T) {
	t.Parallel()
	n := startNodes(t, 3, nil)
	var mu sync.Mutex
	answered := map[int]int{}
	for i, b := range n.all {
		if err := b.Handle("who", func(_ context.Context, box string, _ []byte) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			answered[i]++
			return box, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	c := enrol(t, n.all[0], "crane").connect(t, n.all[0])
	patience.Until(t, "each node has answered a call", func() bool {
		var got string
		if err := c.Call(patience.Context(t), "who", nil, &got); err != nil || got != "crane" {
			t.Fatalf("%q, %v", got, err)
		}
		mu.Lock()
		defer mu.Unlock()
		return len(answered) == len(n.all)
	})
	heard := make(chan string, 1000)
	if err := c.Nudges(func(verb string) { heard <- verb }); err != nil {
		t.Fatal(err)
	}
	for i, b := range n.all {
		verb := fmt.Sprintf("look%d", i)
		patience.Until(t, "a nudge of "+n.names[i], func() bool {
			b.Nudge("crane", verb)
			for {
				select {
				case got := <-heard:
					if got == verb {
						return true
					}
				default:
					return false
				}
			}
		})
		if err := b.Routes(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// places are the nodes, of three, of the control plane, the attacker and its victim.
var places = map[string][3]int{
	"apart": {0, 1, 2}, "both elsewhere": {0, 1, 1}, "victim elsewhere": {0, 0, 1}, "attacker elsewhere": {0, 1, 0},
}

func (n *nodes) arena(at [3]int) arena {
	return arena{n.cfg.Keys, n.all[at[0]], n.all[at[1]], n.all[at[2]]}
}

// Nothing that a hostile box tries gets through routes, wherever it, its victim and the control plane are.
func TestHostileBoxAmongNodes(t *testing.T) {
	t.Parallel()
	for name, at := range places {
		t.Run(name, func(t *testing.T) {
			startNodes(t, 3, nil).arena(at).repel(t, true)
		})
	}
	t.Run("apart, as issued", func(t *testing.T) {
		startNodes(t, 3, nil).arena(places["apart"]).repel(t, false)
	})
}

// The game sees what succeeds among nodes, too.
func TestHostileGameCanBeLostAmongNodes(t *testing.T) {
	t.Parallel()
	startNodes(t, 3, nil).arena(places["apart"]).lose(t)
}

// A node that takes a free port says under its name for others which.
func TestFreePortUnderAName(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.Cluster = &bus.Cluster{Node: "node0", Listen: "127.0.0.1:0", Reach: "localhost:0", Authority: *newAuthority(t),
		Owners: cfg.registry.owners}
	b := start(t, cfg)
	host, port, err := net.SplitHostPort(b.RoutesAddr())
	if err != nil || host != "localhost" || port == "0" {
		t.Errorf("others are told %q, %v", b.RoutesAddr(), err)
	}
}

// A node is well by what it does itself: neither another node nor the database is asked.
func TestPingIsOfTheNodeItself(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	n := startNodes(t, 2, func(c *config) {
		c.Cluster.May = func(context.Context, string) (bool, error) {
			asked.Add(1)
			return false, errors.New("the database is away")
		}
	})
	const pings = 100
	here, there := n.all[0].State().In, n.all[1].State().In
	for range pings {
		if err := n.all[0].Ping(patience.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.all[0].State().In - here; got < pings {
		t.Errorf("the node has answered %d of %d pings", got, pings)
	}
	if got := n.all[1].State().In - there; got != 0 {
		t.Errorf("the other node was asked %d times", got)
	}
	if got := asked.Load(); got != 0 {
		t.Errorf("the database was asked %d times", got)
	}
}

// What is revoked at one node is cut off at every node, and Shut returns after all have done so.
func TestShutReachesEveryNode(t *testing.T) {
	t.Parallel()
	n := startNodes(t, 3, nil)
	for i, b := range n.all {
		x := newSeat(t, n.all[0], fmt.Sprintf("crane%d", i))
		// A box that tries to come back would be counted until it is refused.
		connect := func() (*nats.Conn, error) { return x.bound(t, b)(nats.NoReconnect()) }
		nc, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		n.cfg.registry.set(public(x.account), "")
		patience.Until(t, "all nodes have answered in the time of a Shut", func() bool {
			err := n.all[0].Shut(t.Context(), public(x.account))
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			return err == nil
		})
		if s := b.State(); s.Boxes != 0 {
			t.Errorf("%s has %d boxes when Shut has returned", n.names[i], s.Boxes)
		}
		if again, err := connect(); err == nil {
			again.Close()
			t.Errorf("%s lets a box in that was shut out", n.names[i])
		}
	}
}

// A node that was cut off has boxes that were revoked meanwhile. It answers none of
// their calls, and cuts them off when its routes are back.
func TestSweepWhenARouteIsBack(t *testing.T) {
	t.Parallel()
	n := startNodes(t, 3, func(c *config) { c.Cluster.Grace = time.Hour })
	for _, b := range n.all {
		if err := b.Handle("who", func(_ context.Context, box string, _ []byte) (any, error) { return box, nil }); err != nil {
			t.Fatal(err)
		}
	}
	x, y := enrol(t, n.all[0], "gone"), enrol(t, n.all[0], "stays")
	gone := x.connect(t, n.all[2])
	x.await(t, "connected", connected)
	stays := y.connect(t, n.all[2])
	for _, c := range n.cables {
		c.Cut()
	}
	for i, b := range n.all {
		patience.Until(t, n.names[i]+" is alone", func() bool { return len(b.Routed()) == 0 })
	}
	n.cfg.registry.set(x.account, "")
	if err := n.all[0].Shut(t.Context(), x.account); err != nil {
		t.Fatal(err)
	}
	if s := n.all[2].State(); s.Boxes != 2 {
		t.Fatalf("the node that is cut off has %d boxes", s.Boxes)
	}
	var who string
	if err := gone.Call(patience.Context(t), "who", nil, &who); fault.From(err).Kind != fault.NotFound {
		t.Errorf("a box that was revoked is answered %q, %v", who, err)
	}
	if err := stays.Call(patience.Context(t), "who", nil, &who); err != nil || who != "stays" {
		t.Errorf("%q, %v", who, err)
	}
	for _, c := range n.cables {
		c.Restore()
	}
	n.joined()
	x.await(t, "refused", refused)
	if err := stays.Wait(patience.Context(t)); err != nil {
		t.Error(err)
	}
}

// A node that no route leads away from says so and lets its boxes go; they come back with the
// routes.
func TestCutOffNodeLetsItsBoxesGo(t *testing.T) {
	t.Parallel()
	n := startNodes(t, 3, nil)
	x := enrol(t, n.all[0], "crane")
	x.connect(t, n.all[2])
	x.await(t, "connected", connected)
	for _, c := range n.cables {
		c.Cut()
	}
	patience.Until(t, "the node says that it is cut off", func() bool { return errors.Is(n.all[2].Routes(t.Context()), bus.ErrCutOff) })
	x.await(t, "refused", refused)
	y := enrol(t, n.all[0], "new")
	y.dial(t, n.all[2].URL())
	y.await(t, "refused", refused)
	for _, c := range n.cables {
		c.Restore()
	}
	n.joined()
	x.await(t, "connected", connected)
	y.await(t, "connected", connected)
	patience.Until(t, "the node is well", func() bool { return n.all[2].Routes(t.Context()) == nil })
}

// A box that one node has put out is refused by all.
func TestPutOutAtEveryNode(t *testing.T) {
	t.Parallel()
	n := startNodes(t, 2, func(c *config) { c.PutOut, c.Share = time.Hour, 1 })
	for _, b := range n.all {
		if err := b.Handle("flood", func(context.Context, string, []byte) (any, error) { return nil, nil }); err != nil {
			t.Fatal(err)
		}
	}
	x := enrol(t, n.all[0], "crane")
	c := x.connect(t, n.all[0])
	x.await(t, "connected", connected)
	patience.Until(t, "the box is put out", func() bool {
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() { _ = c.Call(patience.Context(t), "flood", nil, nil) })
		}
		all.Wait()
		return n.all[0].State().Boxes == 0
	})
	for _, b := range n.all {
		other := &box{id: x.id, account: x.account, public: x.public, seed: x.seed, jwt: x.jwt, states: make(chan conn.State, 1000)}
		other.dial(t, b.URL())
		other.await(t, "refused", refused)
	}
}

// A box that was put out comes back at another node although the one that put it out has ended.
func TestPutOutByANodeThatEnds(t *testing.T) {
	t.Parallel()
	n := startNodes(t, 2, func(c *config) { c.PutOut, c.Share = 3*time.Second, 1 })
	if err := n.all[0].Handle("flood", func(context.Context, string, []byte) (any, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	x := newSeat(t, n.all[0], "X")
	var ends []chan struct{}
	var first *nats.Conn
	for _, b := range n.all {
		end := make(chan struct{})
		nc, err := x.bound(t, b)(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(end) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		first, ends = cmp.Or(first, nc), append(ends, end)
	}
	for range 10_000 {
		if first.PublishRequest(protocol.CallSubject("X", "flood"), "_INBOX.X.r", nil) != nil {
			break
		}
	}
	for _, end := range ends {
		patience.Ended(t, "the end of a connection", end)
	}
	stop(t, n.all[0])
	if err := n.all[1].SetPeers(map[string]string{n.names[1]: n.all[1].RoutesAddr()}, nil); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the box is back", func() bool {
		nc, err := x.bound(t, n.all[1])()
		if err == nil {
			nc.Close()
		}
		return err == nil
	})
}

// A node that stops lets its boxes move to the others.
func TestStoppingNodeHandsItsBoxesOver(t *testing.T) {
	t.Parallel()
	n := startNodes(t, 2, nil)
	x := enrol(t, n.all[0], "crane")
	c := x.dial(t, n.all[1].URL()+","+n.all[0].URL())
	if err := c.Wait(patience.Context(t)); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(n.all, func(b server) bool { return b.State().Boxes == 1 })
	stop(t, n.all[at])
	patience.Until(t, "the box is at the other node", func() bool { return n.all[1-at].State().Boxes == 1 })
}

// Nobody without a certificate of the nodes' authority speaks to a node.
func TestStrangersAtTheRoutes(t *testing.T) {
	t.Parallel()
	n := startNodes(t, 1, nil)
	others, err := bus.NodeTLS(*newAuthority(t), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]*tls.Config{"nobody": {InsecureSkipVerify: true}, "somebody else's node": others} {
		cfg.InsecureSkipVerify = true
		c, err := tls.Dial("tcp", n.all[0].RoutesAddr(), cfg)
		if err == nil {
			_, err = c.Read(make([]byte, 1)) // TLS 1.3 refuses after the client is done
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "tls:") {
			t.Errorf("%s gets %v", name, err)
		}
	}
}
