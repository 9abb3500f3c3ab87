package due

import (
	"fmt"
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
		for _, side := range []struct {
			what       string
			these, not []string
		}{{"a row without an entry", rows, entries}, {"an entry without a row", entries, rows}} {
			has := make(map[string]bool, len(side.not))
			for _, key := range side.not {
				has[key] = true
			}
			for _, key := range side.these {
				if !has[key] {
					out = append(out, fmt.Sprintf("%s: %s: %s", name, side.what, key))
				}
			}
		}
	}
	return out, nil
}
