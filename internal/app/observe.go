package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/llm"
	"yardmaster/internal/observe"
	"yardmaster/internal/observe/telemetry"
	"yardmaster/internal/secretscan"
)

// secretParameters are the path parameters that are secrets, or say who somebody is. The record of a
// request does not show them.
var secretParameters = []string{"token", "jwt", "code", "address"}

// watching holds the metrics and traces of the node. Each is nil unless it is
// configured.
type watching struct {
	metrics  *telemetry.Metrics
	listener net.Listener // of the metrics
	profiles net.Listener // nil: none are served
	traces   *telemetry.Traces
}

// watch opens the addresses of the metrics and of profiles, and the way to the collector of
// traces.
func (a *App) watch(ctx context.Context) (err error) {
	if a.cfg.MetricsListen != "" {
		if a.watching.listener, err = net.Listen("tcp", a.cfg.MetricsListen); err != nil {
			return err
		}
		a.watching.metrics = telemetry.NewMetrics(a.opts.Version)
	}
	if a.cfg.ProfileListen != "" {
		if a.watching.profiles, err = net.Listen("tcp", a.cfg.ProfileListen); err != nil {
			return err
		}
	}
	if a.cfg.OTLPEndpoint != "" {
		a.watching.traces, err = telemetry.NewTraces(ctx, a.cfg.OTLPEndpoint, a.opts.Version, a.log)
	}
	return err
}

// close ends the listeners and sends the remaining traces.
func (w *watching) close() error {
	var wrong []error
	for _, l := range []net.Listener{w.listener, w.profiles} {
		if l == nil {
			continue
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) { // what served it has closed it
			wrong = append(wrong, err)
		}
	}
	return errors.Join(append(wrong, w.traces.Close(context.Background()))...)
}

// counting returns a context whose loops are counted, if anything is.
func (w *watching) counting(ctx context.Context) context.Context {
	if w.metrics == nil {
		return ctx
	}
	return observe.Counting(ctx, w.metrics)
}

// serveMetrics answers Prometheus until ctx ends, if anything is measured.
func (a *App) serveMetrics(ctx context.Context) error {
	m := a.watching.metrics
	if m == nil {
		return nil
	}
	a.measure(m)
	return m.Serve(ctx, a.watching.listener)
}

// serveProfiles answers go tool pprof until ctx ends, if an address is set for it.
func (a *App) serveProfiles(ctx context.Context) error {
	if a.watching.profiles == nil {
		return nil
	}
	return telemetry.ServeProfiles(ctx, a.watching.profiles)
}

// observed records the requests that a handler serves.
func (a *App) observed(next http.Handler) http.Handler {
	o := &telemetry.Observer{
		Logger: a.log, Metrics: a.watching.metrics, Tracer: a.watching.traces.Tracer(), Scrub: secretscan.Scrub,
		Address: func(req *http.Request) string { return rest.Address(req, a.cfg.Proxies) },
	}
	return o.Handler(next)
}

// transactions returns the observer of transactions, nil if nothing is observed.
func (w *watching) transactions() func(context.Context, db.Transaction) {
	if w.metrics == nil && w.traces == nil {
		return nil
	}
	return func(ctx context.Context, t db.Transaction) {
		w.metrics.Transaction(t.Kind, t.Outcome, t.Took, t.Tries)
		w.traces.Transaction(ctx, t.Kind, t.Outcome, t.Begun, t.Took, t.Tries)
	}
}

// boxCalls returns the observer of calls of boxes, nil if nothing is measured.
func (w *watching) boxCalls() func(method string, took time.Duration, err error) {
	if w.metrics == nil {
		return nil
	}
	return w.metrics.Call
}

// modelCalls returns the observer of calls of the model gateway, nil if nothing is
// measured.
func (w *watching) modelCalls() func(llm.Observed) {
	if w.metrics == nil {
		return nil
	}
	return func(o llm.Observed) {
		w.metrics.Gateway(string(o.Provider), o.Outcome, o.Duration, telemetry.Tokens{
			Input: o.InputTokens, Output: o.OutputTokens, CacheRead: o.CacheReadTokens, CacheWrite: o.Written(),
		})
	}
}

// kept is how long a value that was read from the database is served again, so that
// several readers of the metrics cost no more than one.
const kept = 10 * time.Second

// measure adds the metrics whose values are read when Prometheus asks.
func (a *App) measure(m *telemetry.Metrics) {
	ask := func(name, help string, labels []string, of func(*db.Tx) ([]telemetry.Count, error)) {
		m.Ask(telemetry.Asked{Name: name, Help: help, Labels: labels, Keep: kept},
			func(ctx context.Context) (out []telemetry.Count, err error) {
				err = a.db.Read(ctx, func(tx *db.Tx) error {
					out, err = of(tx)
					return err
				})
				return out, err
			})
	}
	ask("yardmaster_runs", "Runs that have not ended, by state.", []string{"state"}, func(tx *db.Tx) ([]telemetry.Count, error) {
		return counts(run.States(tx))
	})
	ask("yardmaster_task_holds", "Pending and held tasks by what holds them; a task with several reasons counts for each.",
		[]string{"reason"},
		func(tx *db.Tx) ([]telemetry.Count, error) { return counts(a.parts.queue.HoldCounts(tx)) })
	of := func(name, help string, counter bool, value func() float64) {
		m.Ask(telemetry.Asked{Name: name, Help: help, Counter: counter}, func(context.Context) ([]telemetry.Count, error) {
			return []telemetry.Count{{Value: value()}}, nil
		})
	}
	of("yardmaster_bus_connected", "1 while the control plane is connected to its message bus.", false, func() float64 {
		if a.bus.State().Connected {
			return 1
		}
		return 0
	})
	of("yardmaster_connections", "Open connections of clients.", false, func() float64 { return float64(a.conns.Open()) })
	of("yardmaster_bus_boxes", "Connections of boxes to the message bus.", false, func() float64 { return float64(a.bus.State().Boxes) })
	messages := telemetry.Asked{Name: "yardmaster_bus_messages_total", Help: "Messages of the control plane on its bus.",
		Labels: []string{"direction"}, Counter: true}
	m.Ask(messages, func(context.Context) ([]telemetry.Count, error) {
		s := a.bus.State()
		return []telemetry.Count{{Labels: []string{"in"}, Value: float64(s.In)}, {Labels: []string{"out"}, Value: float64(s.Out)}}, nil
	})
}

// counts are numbers by the value of one label.
func counts(by map[string]int64, err error) ([]telemetry.Count, error) {
	out := make([]telemetry.Count, 0, len(by))
	for label, n := range by {
		out = append(out, telemetry.Count{Labels: []string{label}, Value: float64(n)})
	}
	return out, err
}
