package due

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"yardmaster/internal/db"
)

// mostCompared bounds the rows and the entries of a queue that Astray compares.
const mostCompared = 100_000

// Astray answers in what the rows of the domains and the entries differ: rows that wait for
// work without an entry, on which nobody will ever work, and entries without a row, which end
// when they are due. Queues without Open, and those with more than 100,000 rows or entries,
// are left out.
func (k *Kernel) Astray(tx *db.Tx) (out []string, err error) {
	all, err := k.compare(tx)
	for _, a := range all {
		out = append(out, a.String())
	}
	return out, err
}

// astray is a row without an entry, or an entry without a row.
type astray struct {
	queue string
	Open
	rowless bool
}

func (a astray) String() string {
	what := "a row without an entry"
	if a.rowless {
		what = "an entry without a row"
	}
	return fmt.Sprintf("%s: %s: %s", a.queue, what, a.Key)
}

func (k *Kernel) compare(tx *db.Tx) (out []astray, err error) {
	for _, name := range slices.Sorted(maps.Keys(k.queues)) {
		w := k.queues[name]
		if w.open == nil {
			continue
		}
		rows, err := w.open(tx, mostCompared+1)
		if err != nil {
			return nil, fmt.Errorf("the rows of %s: %w", name, err)
		}
		entries, err := keys.All(tx, name, mostCompared+1)
		if err != nil {
			return nil, err
		}
		if len(rows) > mostCompared || len(entries) > mostCompared {
			continue
		}
		has := make(map[string]bool, len(entries))
		for _, key := range entries {
			has[key] = true
		}
		for _, r := range rows {
			if !has[r.Key] {
				out = append(out, astray{name, r, false})
			}
			delete(has, r.Key)
		}
		for _, key := range slices.Sorted(maps.Keys(has)) {
			out = append(out, astray{name, Open{Key: key}, true})
		}
	}
	return out, nil
}

// guard logs in what rows and entries differ, and adds the entries that lack: a program of an
// older release, which knows a queue by a column of its own, has left such rows.
func (k *Kernel) guard(ctx context.Context) error {
	var all []astray
	err := k.DB.Read(ctx, func(tx *db.Tx) (err error) {
		all, err = k.compare(tx)
		return err
	})
	if err != nil || len(all) == 0 {
		return err
	}
	k.Logger.ErrorContext(ctx, "rows and what is due differ", slog.Int("differences", len(all)),
		slog.Any("first", all[:min(len(all), 10)]))
	return k.DB.Write(ctx, func(tx *db.Tx) error {
		for _, a := range all[:min(len(all), mostAdopted)] {
			if !a.rowless {
				Entries{a.queue, k}.Add(tx, a.Key, Entry{Account: a.Account})
			}
		}
		return nil
	})
}

// mostAdopted bounds what guard adds in one transaction; the rest follows an hour later.
const mostAdopted = 1000
