package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"yardmaster/internal/box"
)

const (
	fleetSize   = 1000
	fleetJoins  = 20 // boxes that join one after the other, before and after the rest
	fleetAtOnce = 32
	fleetWatch  = 20 * time.Second // of a fleet that only beats
	fleetBytes  = 150 << 10
)

// crew is a number of boxes, or of bare connections.
type crew struct {
	mu   sync.Mutex
	gone []func()
}

func (c *crew) add(leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = append(c.gone, leave)
}

func (c *crew) leave() {
	for _, gone := range c.gone {
		gone()
	}
}

// crowding is the cost of many connections.
type crowding struct {
	first, last time.Duration // median time of one that joins, with no others and with all others connected
	all         time.Duration // until all those between are connected
	bytes       int64         // resident memory of each
}

// gather makes the numbers 0 to fleetSize-1 join.
func (c *crew) gather(
	ctx context.Context, p *process, join func(ctx context.Context, i int) (leave func(), err error),
) (out crowding, err error) {
	one := func(i int) (time.Duration, error) {
		begin := time.Now()
		leave, err := join(ctx, i)
		if err == nil {
			c.add(leave)
		}
		return time.Since(begin), err
	}
	row := func(from int) (time.Duration, error) {
		var times []time.Duration
		for i := range fleetJoins {
			took, err := one(from + i)
			if err != nil {
				return 0, err
			}
			times = append(times, took)
		}
		return median(times), nil
	}
	if out.first, err = row(0); err != nil {
		return out, err
	}
	before, err := p.memory()
	if err != nil {
		return out, err
	}
	begin := time.Now()
	g := new(errgroup.Group)
	g.SetLimit(fleetAtOnce)
	for i := fleetJoins; i < fleetSize-fleetJoins; i++ {
		g.Go(func() error { _, err := one(i); return err })
	}
	if err := g.Wait(); err != nil {
		return out, err
	}
	out.all = time.Since(begin)
	after, err := p.memory()
	if err != nil {
		return out, err
	}
	out.bytes = (after - before) / (fleetSize - 2*fleetJoins)
	out.last, err = row(fleetSize - fleetJoins)
	return out, err
}

// fleetOf measures many boxes that are connected and beat.
func fleetOf(ctx context.Context, b *bench) error {
	bare, err := b.bareFleet(ctx)
	if err != nil {
		return fmt.Errorf("the bare server: %w", err)
	}
	w, err := b.settle(ctx, "fleet")
	if err != nil {
		return err
	}
	defer w.stop()
	enrolled := make([]box.Identity, fleetSize)
	g := new(errgroup.Group)
	g.SetLimit(8)
	for i := range enrolled {
		g.Go(func() (err error) {
			enrolled[i], err = w.enroll(ctx, fmt.Sprintf("box-%d", i), 1)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var boxes crew
	defer func() { boxes.leave() }()
	ours, err := boxes.gather(ctx, w.process, func(ctx context.Context, i int) (func(), error) {
		x, err := attach(ctx, enrolled[i], 1)
		if err != nil {
			return nil, err
		}
		return x.close, nil
	})
	if err != nil {
		return err
	}
	used := w.busy()
	select {
	case <-time.After(fleetWatch):
	case <-ctx.Done():
		return ctx.Err()
	}
	share := float64(w.busy()-used) / float64(fleetWatch)
	b.add(row{what: fmt.Sprintf("%d boxes connect and say hello, %d at a time", fleetSize-2*fleetJoins, fleetAtOnce),
		value: ms(ours.all), baseline: ms(bare.all), ratio: ratio(ours.all, bare.all)})
	b.add(row{what: fmt.Sprintf("one more, with %d there, against with none", fleetSize-fleetJoins), value: ms(ours.last),
		baseline: ms(ours.first), ratio: ratio(ours.last, ours.first),
		target: "≤ 2 times", met: ours.last <= 2*ours.first})
	b.add(row{what: "resident memory of each box", value: kb(ours.bytes), baseline: kb(bare.bytes),
		ratio: ratio(ours.bytes, bare.bytes), target: "< " + kb(fleetBytes), met: ours.bytes < fleetBytes})
	b.add(row{what: fmt.Sprintf("processor of the server while %d boxes do nothing but beat", fleetSize),
		value: fmt.Sprintf("%.0f %% of a core", 100*share)})
	return nil
}

// bareFleet makes as many connections to a NATS server in which all share one
// account; each asks once.
func (b *bench) bareFleet(ctx context.Context) (out crowding, err error) {
	address, err := freePort()
	if err != nil {
		return out, err
	}
	p, _, err := b.launch(ctx, b.self, "baseline", "--bus", address)
	if err != nil {
		return out, err
	}
	defer p.stop()
	var c crew
	defer func() { c.leave() }()
	return c.gather(ctx, p, func(_ context.Context, i int) (func(), error) {
		nc, err := nats.Connect("nats://"+address, nats.Name("box-"+strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		if _, err := nc.Request("echo", []byte("hello"), callTime); err != nil {
			return nil, err
		}
		return nc.Close, nil
	})
}

// serveBus serves bareFleet.
func serveBus(address string) (stop func(), err error) {
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(digits)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(&server.Options{Host: host, Port: port, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, fmt.Errorf("NATS did not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return nil, err
	}
	if _, err := nc.Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		return nil, err
	}
	return s.Shutdown, nc.Flush()
}
