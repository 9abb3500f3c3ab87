package pull

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// A policy that begins to ask for reviews has the open heads reviewed that nobody was to
// review before, once.
func TestPolicyThatBeginsToAskForReviews(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		known := 0
		HeadKnown.On(y.DB, func(*db.Tx, Head) error { known++; return nil })
		changed := func(mode string) {
			y.policy("version: 1\nmerge: {mode: never}\nreview: {mode: " + mode + "}\n")
			y.write(func(tx *db.Tx) error {
				r, _, err := repo.ByID(tx, y.repo)
				if err != nil {
					return err
				}
				return y.PolicyChanged(tx, r)
			})
			y.pass(0)
		}
		changed("off")
		sha := y.commit("svc/a", "a", "1\n")
		prID := y.propose("svc/a", sha)
		y.pass(0)
		y.write(func(tx *db.Tx) error { return y.Progressed(tx, prID, sha, ReviewProgress{}) })
		was := known
		if changed("off"); known != was {
			t.Errorf("%d heads are reviewed whatever the policy says", known-was)
		}
		if changed("auto"); known != was+1 {
			t.Errorf("%d heads are reviewed, want 1", known-was)
		}
		y.write(func(tx *db.Tx) error {
			return y.Progressed(tx, prID, sha, ReviewProgress{Outcome: record.ReviewReviewed})
		})
		if changed("auto"); known != was+1 {
			t.Error("a head is reviewed again that was")
		}
	})
}
