package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cost is what a server has used up: processor time, bytes that it had written to its disk,
// and bytes that its database holds.
type cost struct {
	busy    time.Duration
	written int64
	kept    int64
}

// cost is what the server has used up by now.
func (w *world) cost(ctx context.Context) (c cost, err error) {
	c.busy = w.busy()
	said := field(fmt.Sprintf("/proc/%d/io", w.cmd.Process.Pid), "write_bytes", "")
	if c.written, err = strconv.ParseInt(strings.TrimSpace(said), 10, 64); err != nil {
		return c, fmt.Errorf("read what the server has written: %w", err)
	}
	pool, err := openSQLite(w.database(), true)
	if err != nil {
		return c, err
	}
	defer pool.Close()
	err = pool.QueryRowContext(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&c.kept)
	return c, err
}

// costs adds what each of n tasks has used up since before, and what 1,000 a day do in a year.
func (w *world) costs(ctx context.Context, b *bench, before cost, n int64) error {
	after, err := w.cost(ctx)
	if err != nil {
		return err
	}
	one := cost{(after.busy - before.busy) / time.Duration(n), (after.written - before.written) / n, (after.kept - before.kept) / n}
	b.add(row{what: "what one task costs, filed, claimed, accepted and finished: processor time", value: us(one.busy)})
	b.add(row{what: "the same, bytes written to the disk", value: kb(one.written)})
	b.add(row{what: "the same, bytes that the database keeps", value: kb(one.kept)})
	const year = 365 * 1000
	b.add(row{what: "1,000 tasks a day for a year, by that", value: fmt.Sprintf("%.1f h, %.1f GB written, %.1f GB kept",
		(year * one.busy).Hours(), year*float64(one.written)/1e9, year*float64(one.kept)/1e9)})
	return nil
}
