package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"yardmaster/internal/client"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

const (
	inboxWait    = 50 * time.Millisecond
	inboxChanges = 200
	inboxCost    = 1.05
)

// colleague adds another owner to the account of a stopped server, and answers a token of
// theirs: nobody is told of what they have done themselves.
func (w *world) colleague(ctx context.Context) (pat string, err error) {
	d, err := db.Open(ctx, "sqlite:"+w.database(), db.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var acct string
	if err := d.Read(ctx, func(tx *db.Tx) (err error) {
		acct, err = accountID.One(tx, account)
		return err
	}); err != nil {
		return "", err
	}
	err = d.Write(db.WithAccount(ctx, acct), func(tx *db.Tx) error {
		bob := id.New()
		if err := seed.Add(tx, seed.User{ID: bob, Login: "bob"}, seed.Member{Account: acct, User: bob, Role: "owner"}); err != nil {
			return err
		}
		t, err := token.Mint(tx, policy.PAT, bob, nil, policy.Scopes(policy.ReadTasks, policy.WriteTasks), nil)
		pat = t.Token
		return err
	})
	return pat, err
}

// rest waits until a server has nothing more to do.
func (p *process) rest(ctx context.Context) {
	const pause = 300 * time.Millisecond
	for end := time.Now().Add(30 * time.Second); ctx.Err() == nil && time.Now().Before(end); {
		before := p.busy()
		time.Sleep(pause)
		if p.busy()-before <= pause/20 {
			return
		}
	}
}

// told measures how long it takes from sending a change until the one listener has it.
func told(ctx context.Context, p *process, path, token string, change func(word string) error) (times []time.Duration, err error) {
	a, err := attend(ctx, p.url, path, token, "200 OK", 1)
	if a != nil {
		defer a.leave()
	}
	if err != nil {
		return nil, err
	}
	for i := range inboxChanges {
		word := fmt.Sprintf("change-%d.", i)
		heard := a.expect(word, 1)
		begin := time.Now()
		if err := change(word); err != nil {
			return nil, err
		}
		if err := a.wait(ctx, heard); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin))
	}
	return times, nil
}

// inbox measures how soon a person hears of what concerns them, and what it costs others
// that somebody listens.
func inbox(ctx context.Context, b *bench) error {
	bare, _, err := b.launch(ctx, b.self, "baseline", "--events", "--write", b.dir+"/inbox.db")
	if err != nil {
		return err
	}
	defer bare.stop()
	theirTimes, err := told(ctx, bare, "/events", "none", func(word string) error {
		for _, step := range []struct{ path, body string }{
			{"/tasks", `{"repo": "r", "title": "` + word + `", "problem": "A widget turns left."}`}, {"/events", word},
		} {
			resp, err := http.Post(bare.url+step.path, "application/json", strings.NewReader(step.body))
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, resp.Body)
			if err = errors.Join(err, resp.Body.Close()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the bare server: %w", err)
	}
	w, err := b.settle(ctx, "inbox")
	if err != nil {
		return err
	}
	defer func() { w.stop() }()
	w.stop()
	bob, err := w.colleague(ctx)
	if err != nil {
		return err
	}
	if _, err := b.restart(ctx, w); err != nil {
		return err
	}
	const path = "/v1/streams?topics=notifications"
	theirs := &client.Client{URL: w.url, Token: bob}
	ourTimes, err := told(ctx, w.process, path, w.pat, func(word string) error {
		return theirs.Call(ctx, http.MethodPost, "/v1/tasks", map[string]any{
			"repo": account + "/" + project, "title": word, "problem": "A widget turns left.", "confidence": 0.1,
		}, nil)
	})
	if err != nil {
		return err
	}
	ours, bareTimes := median(ourTimes), median(theirTimes)
	b.add(row{what: "an escalation sent, until the inbox of an owner has it, p50", value: ms(ours), baseline: ms(bareTimes),
		ratio: ratio(ours, bareTimes), target: "< " + ms(inboxWait), met: ours < inboxWait})
	b.add(row{what: "the same, p99", value: ms(percentile(ourTimes, 99)), baseline: ms(percentile(theirTimes, 99))})

	var n atomic.Int64
	file := func() (outcome, error) {
		l := load{
			clients: 16, method: http.MethodPost, url: w.url + "/v1/tasks", token: bob, body: filing, status: http.StatusAccepted,
		}
		w.rest(ctx)
		before := w.busy()
		o, err := l.run(ctx, w.process, 0, filings, &n)
		w.rest(ctx) // what follows from the tasks is work of theirs
		o.busy = w.busy() - before
		return o, err
	}
	heard := func() (outcome, error) {
		a, err := attend(ctx, w.url, path, w.pat, "200 OK", 1)
		if a != nil {
			defer a.leave()
		}
		if err != nil {
			return outcome{}, err
		}
		return file()
	}
	with, without, err := duel(rounds, heard, file)
	if err != nil {
		return err
	}
	cost := ratio(costs(with), costs(without))
	b.add(row{what: "task.create while a person follows their inbox, processor time", value: us(costs(with)),
		baseline: us(costs(without)), ratio: cost, target: fmt.Sprintf("≤ %.2f of without", inboxCost), met: cost <= inboxCost})
	return nil
}
