package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"yardmaster/internal/api/idempotency"
	"yardmaster/internal/bus"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/codehost/homes"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/webhook"
)

func (a *App) clustered() bool { return a.cfg.Cluster == "on" }

// places are what all nodes together hold at once. A server alone counts by itself.
type places struct{ a *App }

// Take implements gateway.Places.
func (p places) Take(ctx context.Context, name string, most int64) (bool, error) {
	if p.a.nodes == nil {
		return true, nil
	}
	return p.a.nodes.Take(ctx, name, most)
}

// Free implements gateway.Places.
func (p places) Free(ctx context.Context, name string) {
	if p.a.nodes != nil {
		p.a.nodes.Free(ctx, name)
	}
}

// busCluster is how the bus joins those of the other nodes; nil: there are none.
func (a *App) busCluster(ctx context.Context) (*bus.Cluster, error) {
	if !a.clustered() {
		return nil, nil
	}
	own, err := nodes.Identity(a.cfg.Data)
	if err != nil {
		return nil, err
	}
	authority, err := nodeAuthority(ctx, a.db, a.ring)
	if err != nil {
		return nil, err
	}
	c := &bus.Cluster{Node: own, Listen: a.cfg.NATSRoutes, Authority: authority}
	a.peers = c
	if a.cfg.NodeHost != "" {
		c.Reach = a.cfg.Reach(a.cfg.NATSRoutes)
	}
	c.Owners, c.May = a.busOwners, a.busMay
	return c, nil
}

// busOwners lists the accounts of the bus that boxes may use now, with their boxes.
func (a *App) busOwners(ctx context.Context) (all map[string]string, err error) {
	err = a.db.Read(ctx, func(tx *db.Tx) error {
		all, err = box.Owners(tx)
		return err
	})
	return all, err
}

// busMay tells whether a box may call now.
func (a *App) busMay(ctx context.Context, boxID string) (may bool, err error) {
	err = a.db.Read(ctx, func(tx *db.Tx) (err error) {
		may, err = box.Seated(tx, boxID)
		return err
	})
	return may, err
}

// busOutside is how the bus uses the servers of nats-servers.
func (a *App) busOutside() (*bus.External, error) {
	out, err := outsideBus(a.cfg)
	if err != nil {
		return nil, err
	}
	out.Owners, out.May = a.busOwners, a.busMay
	out.Node, err = nodes.Identity(a.cfg.Data)
	return out, err
}

// outsideBus are the keys for nats-servers, from their files.
func outsideBus(c *config.Config) (*bus.External, error) {
	operator, err := os.ReadFile(c.NATSOperator)
	if err != nil {
		return nil, fmt.Errorf("nats-operator-key: %w", err)
	}
	creds, err := os.ReadFile(c.NATSSystem)
	if err != nil {
		return nil, fmt.Errorf("nats-system-creds: %w", err)
	}
	return &bus.External{Servers: c.NATSServers, Operator: string(operator), Creds: string(creds)}, nil
}

// enterCluster puts this node into the list of nodes, with the repositories of its folder. It
// does nothing if there is no cluster.
func (a *App) enterCluster(ctx context.Context, local *builtin.Host) error {
	if a.peers == nil {
		return nil
	}
	own := a.peers.Node
	secure, err := bus.NodeTLS(a.peers.Authority, time.Now)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", a.cfg.NodeListen)
	if err != nil {
		return fmt.Errorf("node-listen: %w", err)
	}
	a.door = tls.NewListener(listener, secure)
	host := homes.New(homes.Config{Local: local, Own: own, List: nodeList{a, own}, TLS: secure, Logger: a.log})
	a.host, a.neighbours = host, host
	machine, err := os.Hostname()
	if err != nil {
		machine = "an unknown machine"
	}
	a.nodes = nodes.New(nodes.Config{
		DB: a.db, Logger: a.log, Boot: a.boot, Changed: a.nodesChanged, Gone: a.nodesGone,
		Self: nodes.Self{ID: own, Name: a.base + " on " + machine, Routes: a.bus.RoutesAddr(), Door: a.cfg.Reach(listener.Addr().String()),
			Boxes: a.bus.OwnURL(), Version: a.opts.Version},
	})
	if err := a.nodes.Enter(ctx); err != nil {
		return err
	}
	return host.Settle(ctx)
}

// nodeList is the list of nodes for the built-in host.
type nodeList struct {
	a   *App
	own string
}

func neighbour(n nodes.Node) homes.Node { return homes.Node{ID: n.ID, Name: n.Name, Door: n.Door} }

func (l nodeList) Home(ctx context.Context, owner, name string) (homes.Node, bool, error) {
	n, ok, err := nodes.Home(ctx, l.a.db, owner, name)
	return neighbour(n), ok, err
}

func (l nodeList) Ours(ctx context.Context) ([][2]string, error) { return nodes.At(ctx, l.a.db, l.own) }

func (l nodeList) Settle(ctx context.Context, repos [][2]string) error {
	return nodes.Settle(ctx, l.a.db, l.own, repos)
}

func (l nodeList) Live(id string) (homes.Node, bool) {
	for _, n := range l.a.nodes.Live() {
		if n.ID == id {
			return neighbour(n), true
		}
	}
	return homes.Node{}, false
}

// serveNodes answers other nodes.
func (a *App) serveNodes(ctx context.Context) error {
	if a.door == nil {
		return nil
	}
	server := &http.Server{
		Handler: a.neighbours.Door(a.gitHooks(nil)), ReadHeaderTimeout: a.cfg.HeaderTime, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(a.door) }()
	select {
	case err := <-ended:
		return fmt.Errorf("answer other nodes: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		return server.Close()
	}
	return nil
}

// nodesChanged tells the bus which nodes are live.
func (a *App) nodesChanged(live []nodes.Node) {
	routes, boxes := map[string]string{}, []string{}
	for _, n := range live {
		routes[n.ID] = n.Routes
		boxes = append(boxes, n.Boxes)
	}
	if err := a.bus.SetPeers(routes, boxes); err != nil {
		a.log.Error("the bus does not join the other nodes", slog.Any("error", err))
	}
}

// nodesGone has the others do what processes had begun that are gone.
func (a *App) nodesGone(tx *db.Tx, boots []string) error {
	return errors.Join(a.due.Gone(tx, boots), idempotency.Gone(tx, boots), webhook.Gone(tx, a.hub, boots))
}

// leaveCluster says that this node is not live any more.
func (a *App) leaveCluster() error {
	if a.door != nil {
		a.door.Close() // it is closed already, if it was served
	}
	if a.nodes == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := a.nodes.Leave(ctx); err != nil {
		return fmt.Errorf("leave the list of nodes: %w", err)
	}
	return nil
}
