package pull

import (
	"cmp"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// Head is a head whose facts are known, for its review.
type Head struct {
	Repo repo.Ref
	Pull record.Reviewable
}

// HeadKnown is sent when the code host has told the facts of a head, perhaps again.
var HeadKnown = event.DeclareSignal[Head]("pull.head_known", "The facts of the head of a pull request are known.")

// ForReview reads a pull request of tx.Account for its review; false if there is none. With
// locking, nobody else changes it until the transaction ends.
func ForReview(tx *db.Tx, prID string, locking bool) (record.Reviewable, bool, error) {
	read := record.Read
	if locking {
		read = record.Lock
	}
	pr, ok, err := read(tx, prID)
	if err != nil || !ok {
		return record.Reviewable{}, false, err
	}
	return pr.Reviewable(), true, nil
}

// ReviewProgress is how far the review of a head has come.
type ReviewProgress struct {
	Running  bool
	Held     bool   // running, but its task is held
	Outcome  string // of the newest review of the head that has ended, ReviewReviewed where one has come to a verdict; "" without one
	Findings int    // that hold the merge
}

func (p ReviewProgress) state() string {
	switch {
	case p.Running && p.Held:
		return record.ReviewHeld
	case p.Running:
		return record.ReviewRunning
	}
	return cmp.Or(p.Outcome, record.ReviewOff)
}

// Progressed says how far the review of a head has come, and how many findings hold the
// merge. What it says of another head than the present one changes the findings alone.
func (s *Service) Progressed(tx *db.Tx, prID, headSHA string, p ReviewProgress) error {
	pr, ok, err := record.Lock(tx, prID)
	if err != nil || !ok || pr.State != record.Open {
		return err
	}
	was, had := pr.Review, pr.Findings
	if pr.Findings = int64(p.Findings); pr.HeadSHA == headSHA {
		pr.Review = p.state()
	}
	if was == pr.Review && had == pr.Findings {
		return nil
	}
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return s.Move(tx, pr)
}

// headKnown has the review of a head begin, once its facts are known; unknown tells that
// the host has no such head or base.
func (s *Service) headKnown(tx *db.Tx, r repo.Ref, pr *record.Pull, f record.InGit) error {
	if f.Base != "" {
		if err := HeadKnown.Send(tx, Head{Repo: r, Pull: pr.Reviewable()}); err != nil {
			return err
		}
		if err := record.Reread(tx, pr); err != nil { // its review may have begun
			return err
		}
	}
	if pr.Review != record.ReviewDue {
		return nil
	}
	pr.Review = record.ReviewOff
	return record.Save(tx, pr)
}
