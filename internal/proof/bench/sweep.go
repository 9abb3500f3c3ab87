package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/pace"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/domain/hostlimit"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
)

const (
	sweptRepos = 1000
	sweepEvery = 10 * time.Minute // longer than the server leaves between two passes
)

// unchanged is an API of GitHub whose repositories never change. It counts what is asked
// about them.
type unchanged struct {
	now                        func() time.Time
	asked, notModified, minted atomic.Int64
}

// ServeHTTP implements http.Handler.
func (u *unchanged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/access_tokens"):
		u.minted.Add(1)
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": "ghs_bench", "expires_at": %q}`, u.now().Add(time.Hour).UTC().Format(time.RFC3339))
		return
	case strings.HasSuffix(r.URL.Path, "/installation"):
		_, _ = io.WriteString(w, `{"id": 1, "app_id": 7, "account": {"id": 1, "login": "acme", "type": "Organization"}}`)
		return
	case strings.HasPrefix(r.URL.Path, "/app/"):
		_, _ = io.WriteString(w, `[]`)
		return
	}
	u.asked.Add(1)
	w.Header().Set("ETag", `"same"`)
	if r.Header.Get("If-None-Match") == `"same"` {
		u.notModified.Add(1)
		w.WriteHeader(http.StatusNotModified)
		return
	}
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if strings.HasSuffix(r.URL.Path, "/issues") {
		_, _ = io.WriteString(w, `[]`)
		return
	}
	fmt.Fprintf(w, `{"id": %s, "name": "r%[1]s", "full_name": "acme/r%[1]s", "owner": {"id": 1, "login": "acme"}, "default_branch": "main"}`,
		path[len(path)-1])
}

// sweep counts what a search for lost deliveries asks about repositories that have not
// changed.
func sweep(ctx context.Context, b *bench) (err error) {
	var mu sync.Mutex
	at := time.Now()
	now := func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	d, err := db.Open(ctx, "sqlite:"+filepath.Join(b.dir, "sweep.db"), db.Options{Clock: now})
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Migrated(ctx); err != nil {
		return err
	}
	u := &unchanged{now: now}
	api, stop, err := listen(ctx, u)
	if err != nil {
		return err
	}
	defer stop()
	log := slog.New(slog.DiscardHandler)
	limits := hostlimit.New(hostlimit.Needs{DB: d, Logger: log, Waiter: pace.Timer{}}).Of("github:bench")
	host, err := appAt(filepath.Join(b.dir, "sweep"), api, now, limits)
	if err != nil {
		return err
	}
	defer host.Close()
	hub := event.NewHub()
	s := delivery.New(delivery.Needs{
		Clock: time.Now, Due: due.New(due.Config{DB: d, Hub: hub, Logger: log}),
		DB: d, Hub: hub, Receiver: silence{}, Logger: log,
		Hosts: codehost.NewHosts(map[string]codehost.Sides{"github:bench": host.Sides()}),
	})
	err = d.Write(db.WithAccount(ctx, "acme"), func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
			return err
		}
		for n := range sweptRepos {
			id, err := repo.Install(tx, codehost.Repo{
				Host: "github:bench", ID: fmt.Sprint(n + 1), Owner: "acme", Name: fmt.Sprintf("r%d", n+1),
			}, "main", true)
			if err == nil {
				err = delivery.Watch(tx, id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	pass := func() (asked, same, minted int64, took time.Duration) {
		before := [3]int64{u.asked.Load(), u.notModified.Load(), u.minted.Load()}
		mu.Lock()
		at = at.Add(sweepEvery)
		mu.Unlock()
		began := time.Now()
		s.Look(ctx)
		return u.asked.Load() - before[0], u.notModified.Load() - before[1], u.minted.Load() - before[2], time.Since(began)
	}
	pass() // issues
	pass() // and the repositories themselves are seen for the first time
	asked, same, minted, took := pass()
	b.add(row{what: "requests of a sweep of 1,000 unchanged repositories", value: fmt.Sprint(asked), target: "≤ 1000",
		met: asked > 0 && asked <= sweptRepos})
	b.add(row{what: "of them answered 304, which are free", value: fmt.Sprint(same), target: "all", met: same == asked})
	b.add(row{what: "tokens that were made for it", value: fmt.Sprint(minted)})
	b.add(row{what: "time of the sweep, of 10 minutes", value: ms(took)})
	return nil
}
