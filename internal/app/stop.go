package app

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// farewell returns when ctx has ended and probes have reported that for the
// configured delay, or when running has ended.
func (a *App) farewell(ctx, running context.Context) {
	select {
	case <-ctx.Done():
	case <-running.Done():
		return
	}
	a.stopping.Store(true)
	a.log.InfoContext(ctx, "stopping", slog.Duration("in", a.cfg.StopDelay))
	if a.cfg.StopDelay <= 0 {
		return
	}
	select {
	case <-a.after(a.cfg.StopDelay):
	case <-running.Done():
	}
}

func (a *App) close() error {
	errs := []error{a.leaveCluster()}
	if a.bus != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		errs = append(errs, a.bus.Close(ctx))
	}
	if a.parts.gateway != nil {
		a.parts.gateway.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, a.parts.budget.Close(ctx))
	}
	if a.hosts != nil {
		a.hosts.Close()
	}
	if a.cache != nil {
		errs = append(errs, a.cache.Close())
	}
	if a.blob != nil {
		errs = append(errs, a.blob.Close())
	}
	if a.notary != nil {
		errs = append(errs, a.closeNotary())
	}
	if a.lease != nil && a.db != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		errs = append(errs, a.lease.Release(ctx))
	}
	if a.db != nil {
		errs = append(errs, a.db.Close())
	}
	if a.file != nil {
		errs = append(errs, unlock(a.file))
	}
	if a.lock != nil {
		errs = append(errs, unlock(a.lock))
	}
	errs = append(errs, a.watching.close())
	return errors.Join(errs...)
}
