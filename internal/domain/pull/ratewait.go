package pull

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
)

// RateWait is the wait of a pull request for a limit of its host to end.
type RateWait struct{ Since, Until time.Time }

// intentsOf are the lines of intents about a pull request.
func intentsOf(prID string) []string { return []string{prID, prID + "/check", prID + "/review"} }

// RateWaits lists which pull requests of tx.Account wait for a limit of their host to end:
// with a merge, or with what the host is to be told of them.
func RateWaits(tx *db.Tx, prIDs []string) (map[string]RateWait, error) {
	out := map[string]RateWait{}
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
	rows, err := mergesThatWait(tx, prIDs)
	for _, r := range rows {
		out[r.PRID] = out[r.PRID].with(r.Since, r.DueAt)
	}
	return out, err
}

// with is a wait together with another one.
func (w RateWait) with(since, until time.Time) RateWait {
	if w.Since.IsZero() || since.Before(w.Since) {
		w.Since = since
	}
	if until.After(w.Until) {
		w.Until = until
	}
	return w
}
