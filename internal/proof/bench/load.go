package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// load is a number of requests of one kind, sent by concurrent clients, each over a
// connection of its own.
type load struct {
	clients int
	method  string
	url     string
	token   string
	accepts string               // Accept-Encoding; empty: none
	body    func(i int64) []byte // nil: none
	status  int                  // of every answer
}

// outcome is the result of a round of load.
type outcome struct {
	calls int64
	took  time.Duration
	busy  time.Duration // processor time of the server
}

func (o outcome) rate() float64 { return float64(o.calls) / o.took.Seconds() }

// cost is the server's processor time of one call.
func (o outcome) cost() time.Duration { return o.busy / time.Duration(o.calls) }

// run sends requests until limit of them are answered, or for d if limit is 0. next
// numbers the requests across rounds.
func (l load) run(ctx context.Context, p *process, d time.Duration, limit int64, next *atomic.Int64) (outcome, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: l.clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	errs := make([]error, l.clients)
	var calls atomic.Int64
	var wg sync.WaitGroup
	busy, begin := p.busy(), time.Now()
	for n := range l.clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				if limit == 0 && time.Since(begin) > d {
					return
				}
				if done := calls.Add(1); limit > 0 && done > limit {
					calls.Add(-1)
					return
				}
				if errs[n] = l.one(ctx, c, next.Add(1)); errs[n] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	o := outcome{calls: calls.Load(), took: time.Since(begin), busy: p.busy() - busy}
	return o, errors.Join(append(errs, ctx.Err())...)
}

func (l load) one(ctx context.Context, c *http.Client, i int64) error {
	var body io.Reader
	if l.body != nil {
		body = bytes.NewReader(l.body(i))
	}
	req, err := http.NewRequestWithContext(ctx, l.method, l.url, body)
	if err != nil {
		return err
	}
	if l.token != "" {
		req.Header.Set("Authorization", "Bearer "+l.token)
	}
	if l.accepts != "" {
		req.Header.Set("Accept-Encoding", l.accepts)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != l.status {
		err = fmt.Errorf("%s %s answered %s: %.300s", l.method, l.url, resp.Status, text)
	}
	return err
}

// duel alternates two loads and answers the rounds of each.
func duel(rounds int, a, b func() (outcome, error)) (as, bs []outcome, err error) {
	for range rounds {
		for _, side := range []struct {
			run func() (outcome, error)
			to  *[]outcome
		}{{b, &bs}, {a, &as}} {
			o, err := side.run()
			if err != nil {
				return nil, nil, err
			}
			*side.to = append(*side.to, o)
		}
	}
	return as, bs, nil
}

func rates(rounds []outcome) float64 {
	v := make([]float64, len(rounds))
	for i, o := range rounds {
		v[i] = o.rate()
	}
	return median(v)
}

func costs(rounds []outcome) time.Duration {
	v := make([]time.Duration, len(rounds))
	for i, o := range rounds {
		v[i] = o.cost()
	}
	return median(v)
}
