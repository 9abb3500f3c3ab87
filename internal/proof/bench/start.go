package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

const starts = 7

// start measures the time from the start of the process to an answer of /healthz,
// and the memory of an idle server.
func start(ctx context.Context, b *bench) error {
	var bare, empty, full []time.Duration
	var bareMemory, emptyMemory, fullMemory int64
	w, err := b.settle(ctx, "hundred-thousand")
	if err != nil {
		return err
	}
	w.stop()
	if err := w.fill(ctx, 0, 100_000); err != nil {
		return err
	}
	for i := range starts {
		p, took, err := b.launch(ctx, b.self, "baseline")
		if err != nil {
			return err
		}
		bare = append(bare, took)
		if i == 0 {
			bareMemory, err = p.memory()
		}
		p.stop()
		if err != nil {
			return err
		}
		p, took, err = b.serve(ctx, filepath.Join(b.dir, fmt.Sprintf("empty-%d", i)))
		if err != nil {
			return err
		}
		empty = append(empty, took)
		if i == 0 {
			emptyMemory, err = p.memory()
		}
		p.stop()
		if err != nil {
			return err
		}
		if took, err = b.restart(ctx, w); err != nil {
			return err
		}
		full = append(full, took)
		if i == 0 {
			fullMemory, err = w.memory()
		}
		w.stop()
		if err != nil {
			return err
		}
	}
	baseline := median(bare)
	for _, r := range []struct {
		what  string
		took  time.Duration
		limit time.Duration
	}{{"/healthz after process start, empty folder", median(empty), 300 * time.Millisecond},
		{"/healthz after process start, 100,000 tasks", median(full), 500 * time.Millisecond}} {
		b.add(row{what: r.what, value: ms(r.took), baseline: ms(baseline), ratio: ratio(r.took, baseline),
			target: "≤ " + ms(r.limit), met: r.took <= r.limit})
	}
	for _, r := range []struct {
		what  string
		bytes int64
	}{{"resident memory at rest, empty folder", emptyMemory}, {"resident memory at rest, 100,000 tasks", fullMemory}} {
		b.add(row{what: r.what, value: mb(r.bytes), baseline: mb(bareMemory), ratio: ratio(r.bytes, bareMemory), target: "< 100 MB",
			met: r.bytes < 100<<20})
	}
	return nil
}

func mb(bytes int64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/(1<<20)) }
