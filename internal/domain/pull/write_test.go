package pull

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// A row is written as it was read, or not at all: what was written since is never lost, nor are
// the marks of many rows.
func TestOldRowsAreNotSaved(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		prID := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		repoID := y.row(prID).RepoID
		for name, between := range map[string]func(*db.Tx) error{
			"saved": func(tx *db.Tx) error {
				return changeRow(tx, prID, func(pr *record.Pull) { pr.Watch = record.WatchOff })
			},
			"marked": func(tx *db.Tx) error { return y.Recheck(tx, repoID) },
		} {
			err := y.DB.Write(y.ctx(), func(tx *db.Tx) error {
				pr, _, err := record.Lock(tx, prID)
				if err != nil {
					return err
				}
				if err := between(tx); err != nil {
					return err
				}
				pr.Carry = "lost"
				return record.Save(tx, pr)
			})
			if err == nil || y.row(prID).Carry != "" {
				t.Errorf("a row that was %s since is saved: %v", name, err)
			}
		}
		y.write(func(tx *db.Tx) error {
			return changeRow(tx, prID, func(pr *record.Pull) { pr.Carry = "kept" })
		})
		if pr := y.row(prID); pr.Carry != "kept" || pr.Watch != "" {
			t.Errorf("carry %q, watch %q", pr.Carry, pr.Watch)
		}
	})
}
