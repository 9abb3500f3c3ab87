package review

import "yardmaster/internal/db"

// Standing is how far the newest review of a pull request is.
type Standing struct {
	HeadSHA string
	State   string // of the run
	Verdict string // "" before its end
	Blind   bool   // no model was there
}

// StandingOf answers how far the newest review of a pull request of tx.Account is; false
// if it has had none.
func StandingOf(tx *db.Tx, prID string) (Standing, bool, error) {
	run, ok, err := lastRun.Maybe(tx, tx.Account, prID)
	if err != nil || !ok {
		return Standing{}, false, err
	}
	out := Standing{HeadSHA: run.HeadSHA, State: run.State, Blind: run.Blind != ""}
	if run.Verdict != nil {
		out.Verdict = *run.Verdict
	}
	return out, true, nil
}
