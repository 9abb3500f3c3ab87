package pull

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull/record"
)

// Wait is what a pull request waits for that no person ends: a limit of its host, until a time,
// or room in the queue of the account.
type Wait struct {
	Since, Until time.Time
	Full         bool // the queue is, until nobody knows when
}

// intentsOf are the lines of intents about a pull request.
func intentsOf(prID string) []string { return []string{prID, prID + "/check", prID + "/review"} }

// Waits lists which pull requests of tx.Account wait for a limit of their host to end, with a
// merge or with what the host is to be told of them, or for room in the queue of the account.
func Waits(tx *db.Tx, prIDs []string) (map[string]Wait, error) {
	out := map[string]Wait{}
	if len(prIDs) == 0 {
		return out, nil
	}
	var objects []string
	for _, prID := range prIDs {
		objects = append(objects, intentsOf(prID)...)
	}
	waits, err := intent.Limited(tx, objects)
	if err != nil {
		return nil, err
	}
	for _, prID := range prIDs {
		for _, object := range intentsOf(prID) {
			if w, ok := waits[object]; ok {
				out[prID] = out[prID].with(w.Since, w.Until)
			}
		}
	}
	rows, err := record.Waiting(tx, prIDs)
	for _, r := range rows {
		switch {
		case r.SeatSince != nil:
			out[r.PRID] = Wait{Since: *r.SeatSince, Full: true}
		case r.Since != nil && r.RetryAt != nil:
			out[r.PRID] = out[r.PRID].with(*r.Since, *r.RetryAt)
		}
	}
	return out, err
}

// with is a wait together with another one.
func (w Wait) with(since, until time.Time) Wait {
	if w.Since.IsZero() || since.Before(w.Since) {
		w.Since = since
	}
	if until.After(w.Until) {
		w.Until = until
	}
	return w
}
