package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"yardmaster/internal/api/held"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/config"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/logsink"
	"yardmaster/internal/domain/quota"
	"yardmaster/internal/domain/signin"
)

// underWay is how long calls have that are under way when the process ends.
const underWay = 5 * time.Second

// serve answers requests and runs the loops until ctx ends. Calls that are under way are
// answered; long polls and streams, transfers of git and calls of models are ended at once.
func (a *App) serve(ctx context.Context, listener net.Listener) error {
	base, cancelRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelRequests()
	lasting, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	a.lasting = lasting
	a.conns = held.NewConns(a.most(), a.cfg.Proxies, a.refusedConn(), a.secure)
	server := &http.Server{
		Handler:           rest.LimitBodyTime(a.cfg.BodyTime, a.handler()),
		ConnContext:       a.conns.Context,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: a.cfg.HeaderTime,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	alive, end := context.WithCancel(a.watching.counting(context.WithoutCancel(ctx)))
	defer end()
	g, running := errgroup.WithContext(alive)
	g.Go(func() error {
		a.farewell(ctx, running)
		end()
		return nil
	})
	for _, loop := range a.loops() {
		g.Go(func() error { return loop(running) })
	}
	g.Go(func() error {
		if err := server.Serve(a.secured(a.conns.Listener(listener))); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-running.Done()
		endStreams()
		stop, cancel := context.WithTimeout(context.Background(), underWay)
		defer cancel()
		if err := server.Shutdown(stop); err != nil {
			cancelRequests()
			server.Close()
		}
		return nil
	})
	if a.opts.Ready != nil {
		a.opts.Ready(a)
	}
	err := g.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil // a loop that was still on its way up
	}
	return err
}

// loops is the work that is not a request. Each runs until its context ends.
func (a *App) loops() []func(context.Context) error {
	if a.opts.Still {
		return []func(context.Context) error{a.keepLease}
	}
	all := []func(context.Context) error{a.answerBoxes, a.watchStorage, a.keepLease, a.serveMetrics, a.serveProfiles}
	due := a.cfg.Does(config.RoleLoops)
	for _, d := range a.parts.all {
		if l, ok := d.(looping); ok && (due || ofNode(d)) {
			all = append(all, l.Loop)
		}
	}
	if due {
		all = append(all, a.mail.Loop, a.notary.Loop, a.reaper().Loop, a.readers.Loop, a.ledger().Loop, a.keeper().Loop, a.due.Loop)
	}
	if a.authority != nil {
		all = append(all, a.authority.Loop)
	}
	if a.relay != nil {
		all = append(all, a.relay.Loop)
	}
	if a.counts != nil {
		all = append(all, a.counts.Loop)
	}
	if a.nodes != nil {
		all = append(all, a.nodes.Loop, a.serveNodes)
	}
	return all
}

// ofNode tells whether the loop of a domain keeps something in the memory of its node, so
// that a node needs it that has not the role of loops.
func ofNode(d domain) bool {
	switch d.(type) {
	case *signin.Service, *connection.Service, *box.Service, *budget.Service, *logsink.Service, *quota.Service:
		return true
	}
	return false
}

// answerBoxes answers the calls of boxes.
func (a *App) answerBoxes(ctx context.Context) error {
	for _, d := range a.parts.all {
		if s, ok := d.(serving); ok {
			if err := s.Serve(); err != nil {
				return err
			}
		}
	}
	<-ctx.Done()
	return nil
}
