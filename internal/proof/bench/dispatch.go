package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
)

const (
	dispatches = 300
	fleet      = 50
	claims     = 2000
)

func dispatch(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "dispatch")
	if err != nil {
		return err
	}
	defer w.stop()
	floor, err := newFloor(filepath.Join(b.dir, "dispatch.db"))
	if err != nil {
		return err
	}
	defer floor.close()
	one, err := w.join(ctx, "idle", 1)
	if err != nil {
		return err
	}
	var ours, theirs []time.Duration
	for i := range dispatches {
		accepted := make(chan time.Time, 1)
		g, ctx := errgroup.WithContext(ctx)
		waits := make(chan struct{})
		g.Go(func() error {
			close(waits)
			run, at, err := one.take(ctx)
			if err != nil {
				return err
			}
			accepted <- at
			return one.finish(ctx, run)
		})
		<-waits
		took, err := floor.measure(ctx) // meanwhile the box's claim begins to wait
		if err != nil {
			return err
		}
		if err := w.file(ctx, int64(i)); err != nil {
			return err
		}
		answered := time.Now()
		if err := g.Wait(); err != nil {
			return err
		}
		ours, theirs = append(ours, (<-accepted).Sub(answered)), append(theirs, took)
	}
	one.close()
	for _, p := range []struct {
		of    float64
		limit time.Duration
	}{{50, 15 * time.Millisecond}, {99, 60 * time.Millisecond}} {
		v, base := percentile(ours, p.of), percentile(theirs, p.of)
		b.add(row{what: fmt.Sprintf("task.create answered to run accepted, p%.0f, one idle box", p.of), value: ms(v), baseline: ms(base),
			ratio: ratio(v, base), target: "< " + ms(p.limit), met: v < p.limit})
	}
	return w.rush(ctx, b, percentile(theirs, 50))
}

// rush measures a fleet of boxes that claims a whole queue.
func (w *world) rush(ctx context.Context, b *bench, floor time.Duration) error {
	boxes := make([]*machine, fleet)
	for i := range boxes {
		var err error
		if boxes[i], err = w.join(ctx, fmt.Sprintf("box-%d", i), 1); err != nil {
			return err
		}
		defer boxes[i].close()
	}
	before, err := w.cost(ctx)
	if err != nil {
		return err
	}
	tasks := load{clients: 8, method: http.MethodPost, url: w.url + "/v1/tasks", token: w.pat, body: filing, status: http.StatusAccepted}
	if _, err := tasks.run(ctx, w.process, 0, claims, new(atomic.Int64)); err != nil {
		return err
	}
	g, racing := errgroup.WithContext(ctx)
	left := make(chan struct{}, claims)
	for range claims {
		left <- struct{}{}
	}
	close(left)
	used, begin := w.busy(), time.Now()
	for _, x := range boxes {
		g.Go(func() error {
			for range left {
				run, _, err := x.take(racing)
				if err != nil {
					return err
				}
				if err := x.finish(racing, run); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	v, base := claims/time.Since(begin).Seconds(), float64(time.Second)/float64(floor)
	b.add(row{what: fmt.Sprintf("claims, accepted and finished, %d boxes, %d tasks waiting", fleet, claims), value: rate(v),
		baseline: rate(base),
		ratio:    v / base, target: "≥ 200/s", met: v >= 200})
	b.add(row{what: "the same, processor time of the server a claim", value: us((w.busy() - used) / claims)})
	return w.costs(ctx, b, before, claims)
}

func (w *world) file(ctx context.Context, i int64) error {
	var filed struct {
		Kind string `json:"kind"`
	}
	body := map[string]string{"repo": account + "/" + project, "title": fmt.Sprintf("Turn widget %d", i),
		"problem": "It turns the wrong way round."}
	err := w.api.Call(ctx, http.MethodPost, "/v1/tasks", body, &filed)
	if err == nil && filed.Kind != "dispatched" {
		err = fmt.Errorf("task %d was %s", i, filed.Kind)
	}
	return err
}

// floor is the least work of a dispatch.
type floor struct {
	pool     *sql.DB
	bus      *server.Server
	ask, say *nats.Conn
	next     int
}

func newFloor(path string) (f *floor, err error) {
	f = &floor{}
	if f.pool, err = openSQLite(path, false); err != nil {
		return nil, err
	}
	if _, err = f.pool.ExecContext(context.Background(), `CREATE TABLE step (id BIGINT PRIMARY KEY, text TEXT NOT NULL)`); err != nil {
		return nil, err
	}
	if f.bus, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true}); err != nil {
		return nil, err
	}
	f.bus.Start()
	if !f.bus.ReadyForConnections(10 * time.Second) {
		return nil, fmt.Errorf("NATS did not start")
	}
	if f.say, err = nats.Connect(f.bus.ClientURL()); err != nil {
		return nil, err
	}
	if _, err = f.say.Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		return nil, err
	}
	if err = f.say.Flush(); err != nil {
		return nil, err
	}
	f.ask, err = nats.Connect(f.bus.ClientURL())
	return f, err
}

func (f *floor) close() {
	f.ask.Close()
	f.say.Close()
	f.bus.Shutdown()
	f.pool.Close()
}

func (f *floor) commit(ctx context.Context) error {
	f.next++
	_, err := f.pool.ExecContext(ctx, `INSERT INTO step VALUES ($1, 'a line of what a row holds')`, f.next)
	return err
}

func (f *floor) measure(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	for range 3 {
		if err := f.commit(ctx); err != nil {
			return 0, err
		}
	}
	if _, err := f.ask.Request("echo", []byte("a claim"), callTime); err != nil {
		return 0, err
	}
	return time.Since(begin), nil
}
