package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// coding lists the same page plain and compressed.
func coding(ctx context.Context, b *bench) error {
	w, err := b.settle(ctx, "coding")
	if err != nil {
		return err
	}
	w.stop()
	if err := w.fill(ctx, 0, 1000); err != nil {
		return err
	}
	if _, err := b.restart(ctx, w); err != nil {
		return err
	}
	defer w.stop()
	var n atomic.Int64
	const path = "/v1/tasks?per_page=50"
	with := func(path, accepts string) func() (outcome, error) {
		l := load{clients: 4, method: http.MethodGet, url: w.url + path, token: w.pat, accepts: accepts, status: http.StatusOK}
		return func() (outcome, error) { return l.run(ctx, w.process, round, 0, &n) }
	}
	plain, err := w.bytes(ctx, path, "")
	if err != nil {
		return err
	}
	for _, name := range []string{"zstd", "gzip"} {
		packed, err := w.bytes(ctx, path, name)
		if err != nil {
			return err
		}
		r := ratio(packed, plain)
		b.add(row{what: "bytes of a page of 50 tasks, " + name, value: kb(packed), baseline: kb(plain), ratio: r,
			target: "≤ 0.25 of plain", met: r <= 0.25})
		ours, theirs, err := duel(rounds, with(path, name), with(path, ""))
		if err != nil {
			return err
		}
		r = ratio(costs(ours), costs(theirs))
		b.add(row{what: "processor time of the server a call, " + name, value: us(costs(ours)), baseline: us(costs(theirs)),
			ratio: r, target: "≤ 1.50 of plain", met: r <= 1.5})
	}
	ours, theirs, err := duel(rounds, with("/v1/queue/status", "gzip, zstd"), with("/v1/queue/status", ""))
	if err != nil {
		return err
	}
	r := ratio(costs(ours), costs(theirs))
	b.add(row{what: "processor time of a small answer, compression offered", value: us(costs(ours)), baseline: us(costs(theirs)),
		ratio: r, target: "≤ 1.10 of not offered", met: r <= 1.1})
	return nil
}

// bytes is the length of an answer's body on the wire.
func (w *world) bytes(ctx context.Context, path, accepts string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+path, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+w.pat)
	req.Header.Set("Accept-Encoding", accepts)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Encoding"); got != accepts {
		return 0, fmt.Errorf("asked for %q, got %q", accepts, got)
	}
	return io.Copy(io.Discard, resp.Body)
}
