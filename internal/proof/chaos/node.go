package chaos

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"yardmaster/internal/proof/loopback"
)

// besides is the address at which the cables of nodes listen, at the ports of what they lead to.
const besides = "127.0.0.2"

// node is one server. Its data folder outlives its processes.
type node struct {
	name        string // for people
	folder      string // below Options.Data, and of its log
	listen, bus string // addresses
	// Of several nodes: what leads from the others and the boxes to its bus and its door, and
	// from it to the database.
	routes, door string
	near         []*Cable
	database     *Cable

	fault sync.Mutex
	*Process
	ahead time.Duration // how far its clock is ahead
}

// several tells whether there are several nodes.
func (w *world) several() bool { return w.Nodes > 1 }

// address puts a port behind another host.
func address(host, of string) string {
	_, port, _ := net.SplitHostPort(of)
	return net.JoinHostPort(host, port)
}

// layNodes gives the nodes addresses, cables and the key that they share.
func (w *world) layNodes() error {
	if !w.several() {
		w.nodes = []*node{{name: "the server", folder: "server", listen: loopback.Address(), bus: loopback.Address()}}
		w.web.Plug(w.nodes[0].listen)
		w.front = w.web
		return nil
	}
	key := make([]byte, 32)
	rand.Read(key)
	if err := os.WriteFile(w.path("master.key"), []byte(hex.EncodeToString(key)+"\n"), 0o600); err != nil {
		return err
	}
	for i := range w.Nodes {
		n := &node{name: fmt.Sprintf("node %d", i+1), folder: fmt.Sprintf("server%d", i+1)}
		n.listen, n.bus, n.routes, n.door = loopback.Address(), loopback.Address(), loopback.Address(), loopback.Address()
		w.nodes = append(w.nodes, n)
		for _, at := range []string{n.bus, n.routes, n.door} {
			c, err := NewCableAt(address(besides, at))
			if err != nil {
				return err
			}
			c.Plug(at)
			n.near = append(n.near, c)
		}
		var err error
		if n.database, err = NewCable(); err != nil {
			return err
		}
		to, err := at(w.Database)
		if err != nil {
			return err
		}
		n.database.Plug(to)
	}
	var err error
	if w.front, err = NewCable(); err != nil {
		return err
	}
	w.front.Among(w.turn)
	w.web.Among(w.turn)
	return nil
}

// at is the address of a database, which is a path if it is a socket.
func at(dsn string) (string, error) {
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return "", err
	}
	if c.TLSConfig != nil {
		return "", errors.New("chaos with several nodes takes a database without TLS, such as …?sslmode=disable")
	}
	port := strconv.Itoa(int(c.Port))
	if strings.HasPrefix(c.Host, "/") {
		return filepath.Join(c.Host, ".s.PGSQL."+port), nil
	}
	return net.JoinHostPort(c.Host, port), nil
}

// through is the database as a node reaches it.
func (w *world) through(n *node) (string, error) {
	if n.database == nil {
		return w.Database, nil
	}
	c, err := pgx.ParseConfig(w.Database)
	if err != nil {
		return "", err
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(c.User, c.Password), Host: n.database.Addr().String(), Path: c.Database,
		RawQuery: "sslmode=disable"}
	return u.String(), nil
}

var ready = regexp.MustCompile(`serves (http://\S+), boxes connect to nats://\S+,`)

// serve starts a node, and waits until it answers.
func (w *world) serve(ctx context.Context, n *node) error {
	argv := []string{w.Self, "astray", seconds(n.ahead), "serve", "--data", w.path(n.folder), "--listen", n.listen,
		"--nats-listen", n.bus, "--base-url", "http://" + w.web.Addr().String(),
		"--setup-token", w.setup, "--seats", "16", "--lease", lease.String(), "--rate-limits", "off", "--merge-grace", "0",
		"--scenario", w.path("scenario.yml")}
	if w.several() {
		argv = append(argv, "--cluster", "on", "--blob", "off", "--master-key-file", w.path("master.key"), "--nats-routes", n.routes,
			"--node-listen", n.door, "--node-host", besides, "--nats-url", "nats://"+address(besides, n.bus))
	}
	var env []string
	if w.Database != "" {
		dsn, err := w.through(n)
		if err != nil {
			return err
		}
		env = []string{"YARDMASTER_DATABASE=" + dsn}
	}
	p, err := Start(w.path(n.folder+".log"), w.Data, env, argv...)
	if err != nil {
		return err
	}
	n.Process = p
	return until(ctx, n.name+" answers", func() (bool, error) {
		if ready.MatchString(p.Output()) {
			return true, nil
		}
		if p.Ended() {
			return false, fmt.Errorf("%s ended:\n%s", n.name, tail(p.Output()))
		}
		return false, nil
	})
}

// balance does what a balancer before several nodes does: it asks each whether it is ready, sends
// connections to those that are, and resets those to one that is not any more.
func (w *world) balance(ctx context.Context) {
	asks := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for pause(ctx, 300*time.Millisecond) {
		var all sync.WaitGroup
		for _, n := range w.nodes {
			all.Go(func() { w.look(ctx, asks, n) })
		}
		all.Wait()
	}
}

func (w *world) look(ctx context.Context, asks *http.Client, n *node) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.listen+"/readyz", nil)
	if err != nil {
		return
	}
	answer, err := asks.Do(req)
	good := err == nil && answer.StatusCode == http.StatusOK
	if err == nil {
		answer.Body.Close()
	}
	w.mu.Lock()
	was := w.fit[n.listen]
	w.fit[n.listen] = good
	w.mu.Unlock()
	if was && !good {
		w.front.BreakTo(n.listen)
		w.web.BreakTo(n.listen)
	}
}

// turn is the address of the node whose turn it is, of those that are ready; if none is, of all.
func (w *world) turn() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turns++
	for i := range w.nodes {
		if at := w.nodes[(w.turns+i)%len(w.nodes)].listen; w.fit[at] {
			return at
		}
	}
	return w.nodes[w.turns%len(w.nodes)].listen
}

// cut cuts a node off from the boxes and from the other nodes.
func (n *node) cut() {
	for _, c := range n.near {
		c.Cut()
	}
}

func (n *node) restore() {
	for _, c := range n.near {
		c.Restore()
	}
}

// close ends the process and the cables.
func (n *node) close() {
	if n.Process != nil {
		n.Kill()
	}
	for _, c := range n.near {
		c.Close()
	}
	if n.database != nil {
		n.database.Close()
	}
}
