package review

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/fault"
)

// Standing is how far the newest review of a pull request is.
type Standing struct {
	HeadSHA string
	State   string // of the run
	Verdict string // "" before its end
	Blind   bool   // no model was there
	TaskID  string // of the pass that it waits for, or that was the last; "" before there is one
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
	out.TaskID = run.pass()
	return out, true, nil
}

// Asked is Request for a user, or for somebody who is none (""), whom it tells why there is
// no review: it fails with the reasons reviews_off, pr_not_open, unknown and
// review_under_way.
func (s *Service) Asked(tx *db.Tx, r repo.Ref, p Pull, userID string) error {
	switch {
	case r.Policy.Review.Mode == "off":
		return fault.Reason("reviews_off", "The policy file of the repository switches reviews off.")
	case !p.Open:
		return fault.Reason("pr_not_open", "The pull request is a draft, or is not open any more.")
	case p.MergeBase == "":
		return fault.Reason("unknown", "What the head changes is not known yet. Ask again in a minute.")
	}
	begun, err := s.Request(tx, r, p, &userID)
	if err == nil && !begun {
		err = fault.Reason("review_under_way", "The head is reviewed already.")
	}
	return err
}
