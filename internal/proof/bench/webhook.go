package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/dial"
	"yardmaster/internal/domain/webhook"
	"yardmaster/internal/event"
	"yardmaster/internal/hook"
	"yardmaster/internal/id"
	"yardmaster/internal/seal"
)

const (
	hookCount  = 8
	hookEvents = 250 // of each round, to each webhook
	hookRounds = 3
	aliveHooks = 99
	hookAsks   = 20 // events while one webhook hangs
	bareWidth  = 8  // requests at once to one address, as of the product
)

var (
	newHook = db.SWith[newHookArgs](`INSERT INTO webhooks (id, account_id, name, masked, sealed, types, created_by, created_at)
		VALUES (:id, 'a', :id, '', :sealed, '["pr.merged"]', 'system', 0)`)
	bareSent = `CREATE TABLE sent (id INTEGER PRIMARY KEY, hook TEXT, status INTEGER, took INTEGER)`
)

type newHookArgs struct{ ID, Sealed string }

// receiver takes events, and counts them. Events to /dead are never answered.
type receiver struct {
	mu   sync.Mutex
	came chan struct{} // one for each
	at   map[string][]time.Time
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	if req.URL.Path == "/dead" {
		<-req.Context().Done()
		return
	}
	var e struct{ ID string }
	_ = json.Unmarshal(body, &e)
	r.mu.Lock()
	if r.at != nil {
		r.at[e.ID] = append(r.at[e.ID], time.Now())
	}
	r.mu.Unlock()
	r.came <- struct{}{}
}

func (r *receiver) wait(ctx context.Context, n int) error {
	for range n {
		select {
		case <-r.came:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return errors.New("an event did not come for a minute")
		}
	}
	return nil
}

// webhooks measures how fast events are sent, and what one webhook that hangs costs the
// others.
func webhooks(ctx context.Context, b *bench) error {
	got := &receiver{came: make(chan struct{}, 100_000)}
	at := make([]string, hookCount) // each webhook is at a server of its own
	for i := range at {
		address, stop, err := listen(ctx, got)
		if err != nil {
			return err
		}
		defer stop()
		at[i] = address
	}
	var ours, bare []float64
	for round := range hookRounds {
		rate1, err := hooksOurs(ctx, b, got, at, round)
		if err != nil {
			return err
		}
		rate2, err := hooksBare(ctx, b, got, at, round)
		if err != nil {
			return err
		}
		ours, bare = append(ours, rate1), append(bare, rate2)
	}
	r := ratio(median(ours), median(bare))
	b.add(row{what: fmt.Sprintf("events signed, sent and in the ledger, %d webhooks", hookCount), value: rate(median(ours)),
		baseline: rate(median(bare)), ratio: r, target: "≥ 0.70 of the baseline", met: r >= 0.7})
	return deadHook(ctx, b, got, at[0])
}

// hookService is the service with webhooks at some addresses, on a database of its own.
func hookService(ctx context.Context, b *bench, name string, at []string) (*webhook.Service, *db.DB, error) {
	d, err := db.Open(ctx, "sqlite:"+filepath.Join(b.dir, name), db.Options{})
	if err != nil {
		return nil, nil, err
	}
	if err := d.Migrated(ctx); err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	guard := dial.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	ring := seal.New()
	s := webhook.New(webhook.Needs{
		DB: d, Hub: event.NewHub(), Ring: ring, Guard: guard, Sender: hook.NewSender(guard, "bench", time.Now),
		Logger: slog.New(slog.DiscardHandler),
	})
	err = d.Write(ctx, func(tx *db.Tx) error {
		if _, err := newAccount.Exec(tx); err != nil {
			return err
		}
		for _, address := range at {
			h := newHookArgs{ID: id.New()}
			to, err := json.Marshal(hook.Target{URL: address, Secret: "dev_whk_bench"})
			if err != nil {
				return err
			}
			h.Sealed = ring.Seal("webhook/"+h.ID, to)
			if _, err := newHook.Exec(tx, h); err != nil {
				return err
			}
		}
		return nil
	})
	return s, d, err
}

// send has events sent, in one transaction.
func sendEvents(ctx context.Context, s *webhook.Service, d *db.DB, n int, name string) error {
	return d.Write(db.WithAccount(ctx, "a"), func(tx *db.Tx) error {
		for i := range n {
			if err := s.Send(tx, webhook.News{
				Type: webhook.PullMerged, Source: fmt.Sprint(name, i), At: tx.Now, Data: []byte(`{"number":7,"repo":"acme/web"}`),
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

func hooksOurs(ctx context.Context, b *bench, got *receiver, at []string, round int) (float64, error) {
	s, d, err := hookService(ctx, b, fmt.Sprintf("hooks%d.db", round), at)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if err := sendEvents(ctx, s, d, hookEvents, "e"); err != nil {
		return 0, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- s.Loop(running) }()
	err = got.wait(ctx, hookEvents*hookCount)
	took := time.Since(began)
	stop()
	return hookEvents * hookCount / took.Seconds(), errors.Join(err, <-ended)
}

// hooksBare sends as many requests, signed as well, and commits what came of them in
// groups: all that have ended while the last group was committed.
func hooksBare(ctx context.Context, b *bench, got *receiver, at []string, round int) (float64, error) {
	base, err := openSQLite(filepath.Join(b.dir, fmt.Sprintf("bare-hooks%d.db", round)), false)
	if err != nil {
		return 0, err
	}
	defer base.Close()
	if _, err := base.ExecContext(ctx, bareSent); err != nil {
		return 0, err
	}
	type result struct {
		hook   string
		status int
		took   time.Duration
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: bareWidth}}
	results := make(chan result, hookEvents*hookCount)
	body := []byte(`{"data":{"number":7,"repo":"acme/web"},"id":"evt_x","occurred_at":"2026-01-01T00:00:00.000Z","type":"pr.merged"}`)
	var senders sync.WaitGroup
	var failed atomic.Pointer[error]
	began := time.Now()
	for h := range hookCount {
		jobs := make(chan struct{}, hookEvents)
		for range hookEvents {
			jobs <- struct{}{}
		}
		close(jobs)
		for range bareWidth {
			senders.Go(func() {
				for range jobs {
					asked := time.Now()
					req, _ := http.NewRequestWithContext(ctx, http.MethodPost, at[h], bytes.NewReader(body))
					req.Header.Set("X-Service-Signature", hook.Sign("dev_whk_bench", asked.Unix(), body))
					resp, err := client.Do(req)
					if err != nil {
						failed.Store(&err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					results <- result{fmt.Sprint(h), resp.StatusCode, time.Since(asked)}
				}
			})
		}
	}
	go func() { senders.Wait(); close(results) }()
	for first := range results {
		group := []result{first}
		for more := true; more; {
			select {
			case r, open := <-results:
				if more = open; open {
					group = append(group, r)
				}
			default:
				more = false
			}
		}
		tx, err := base.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		for _, r := range group {
			if _, err := tx.ExecContext(ctx, `INSERT INTO sent (hook, status, took) VALUES (?, ?, ?)`, r.hook, r.status, int64(r.took)); err != nil {
				return 0, errors.Join(err, tx.Rollback())
			}
		}
		if err := tx.Commit(); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return hookEvents * hookCount / took.Seconds(), got.wait(ctx, hookEvents*hookCount)
}

// deadHook measures how long an event takes to 99 webhooks, alone and beside one that
// never answers.
func deadHook(ctx context.Context, b *bench, got *receiver, address string) error {
	var p99 [2]time.Duration
	for i, more := range [][]string{nil, {address + "/dead"}} {
		at := more
		for n := range aliveHooks {
			at = append(at, fmt.Sprint(address, "/", n))
		}
		s, d, err := hookService(ctx, b, fmt.Sprintf("dead%d.db", i), at)
		if err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- s.Loop(running) }()
		var all []time.Duration
		for n := range hookAsks {
			got.mu.Lock()
			got.at = map[string][]time.Time{}
			got.mu.Unlock()
			began := time.Now()
			if err = sendEvents(ctx, s, d, 1, fmt.Sprint("e", n, "/")); err == nil {
				err = got.wait(ctx, aliveHooks)
			}
			if err != nil {
				break
			}
			got.mu.Lock()
			for _, times := range got.at {
				for _, at := range times {
					all = append(all, at.Sub(began))
				}
			}
			got.mu.Unlock()
		}
		stop()
		if err := errors.Join(err, <-ended, d.Close()); err != nil {
			return err
		}
		p99[i] = percentile(all, 99)
	}
	r := float64(p99[1]) / float64(p99[0])
	b.add(row{what: fmt.Sprintf("an event at %d webhooks beside one that hangs, p99", aliveHooks), value: ms(p99[1]), baseline: ms(p99[0]),
		ratio: r, target: "≤ 1.20 times without it", met: r <= 1.2})
	return nil
}
