package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/protocol"
)

const (
	poolKeys     = 20
	poolCapacity = 16 // calls at once over each key
	poolRuns     = 8  // whose calls are made in turn: a token has 64 at once
	failsOneIn   = 10
)

// pool measures what the model gateway adds with many keys and many calls at once.
func pool(ctx context.Context, b *bench) error {
	var asked, failing atomic.Int64
	upstream, stop, err := provider(func() bool { return failing.Load() > 0 && asked.Add(1)%failsOneIn == 0 })
	if err != nil {
		return err
	}
	defer stop()
	bare, _, err := b.launch(ctx, b.self, "baseline", "--upstream", upstream)
	if err != nil {
		return err
	}
	defer bare.stop()
	w, err := b.settle(ctx, "pool")
	if err != nil {
		return err
	}
	defer w.stop()
	address, tokens, leave, err := w.models(ctx, upstream)
	if err != nil {
		return err
	}
	defer leave()
	for _, load := range []struct{ atOnce, rounds int }{{1, 24}, {16, 24}, {256, 8}} { // the first round counts for none
		atOnce := load.atOnce
		ways := []*way{{address: upstream}, {address: bare.url}, {address: address}}
		for round := range load.rounds {
			for _, v := range ways {
				took, err := v.prompts(ctx, tokens, atOnce, max(50, 2*atOnce))
				if err != nil {
					return err
				}
				if round > 0 {
					v.took = append(v.took, took...)
				}
			}
		}
		for _, p := range []float64{50, 99} {
			direct := percentile(ways[0].took, p)
			ours, theirs := percentile(ways[2].took, p)-direct, percentile(ways[1].took, p)-direct
			b.add(row{what: fmt.Sprintf("added to a call, %d at once, p%.0f", atOnce, p),
				value: us(ours), baseline: us(theirs), ratio: ratio(ours, theirs), target: "≤ 1.15 times",
				met: float64(ours) <= 1.15*float64(theirs)})
		}
	}
	failing.Store(1)
	var seen [2]int64
	for i, v := range []*way{{address: address}, {address: bare.url}} {
		if _, err := v.prompts(ctx, tokens, 64, streams); err != nil {
			return err
		}
		seen[i] = v.failed.Load()
	}
	b.add(row{what: fmt.Sprintf("of %d streamed calls, 64 at once, the upstream fails one in %d: seen by the client", streams, failsOneIn),
		value: fmt.Sprint(seen[0]), baseline: fmt.Sprint(seen[1]), target: "0", met: seen[0] == 0})
	return nil
}

// way is one of the addresses at which the same calls are made.
type way struct {
	address string
	took    []time.Duration
	failed  atomic.Int64 // calls that were refused or cut short
}

// prompts makes streamed calls, so many at once, each with the next token.
func (v *way) prompts(ctx context.Context, tokens []string, atOnce, calls int) ([]time.Duration, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	took, errs := make([]time.Duration, calls), make([]error, atOnce)
	var next atomic.Int64
	var wg sync.WaitGroup
	for n := range atOnce {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= calls {
					return
				}
				d, err := prompt(ctx, client, v.address, tokens[i%len(tokens)], true)
				switch {
				case errors.As(err, new(errCut)), errors.As(err, new(statusError)):
					if v.failed.Add(1) == 1 {
						fmt.Printf("  the first that fails: %v\n", err)
					}
				case err != nil:
					errs[n] = err
					return
				}
				took[i] = d
			}
		})
	}
	wg.Wait()
	return took, errors.Join(errs...)
}

// models makes the keys for the upstream, and live runs whose tokens the gateway accepts.
func (w *world) models(ctx context.Context, upstream string) (address string, tokens []string, leave func(), err error) {
	for i := range poolKeys {
		if err := w.api.Call(ctx, http.MethodPost, "/v1/billing/keys", map[string]any{
			"provider": "compatible", "base_url": upstream, "key": fmt.Sprint("secret-", i), "model": "m", "capacity": poolCapacity,
			"priority": 1,
		}, nil); err != nil {
			return "", nil, nil, err
		}
	}
	template := map[string]string{"agent": "builtin", "provider": "compatible", "base_url": upstream, "model": "m"}
	if err := w.api.Call(ctx, http.MethodPut, "/v1/templates/default", template, nil); err != nil {
		return "", nil, nil, err
	}
	x, err := w.join(ctx, "callers", poolRuns)
	if err != nil {
		return "", nil, nil, err
	}
	var runs []*protocol.Start
	for i := range poolRuns {
		if err := w.file(ctx, int64(i)); err != nil {
			return "", nil, nil, err
		}
		run, _, err := x.take(ctx)
		if err != nil {
			return "", nil, nil, err
		}
		runs, tokens = append(runs, run), append(tokens, run.ModelToken)
	}
	life, cancel := context.WithCancel(ctx)
	go func() { // renews the leases
		for {
			select {
			case <-life.Done():
				return
			case <-time.After(10 * time.Second):
				for _, run := range runs { // a lost lease makes the measured calls fail
					_ = x.call(life, protocol.CallRenew, protocol.Renew{Run: run.Run, Attempt: run.Attempt}, nil)
				}
			}
		}
	}()
	return runs[0].GatewayURL, tokens, func() { cancel(); x.close() }, nil
}
