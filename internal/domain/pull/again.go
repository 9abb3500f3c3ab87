package pull

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
)

// AtHead lists the open pull requests of tx.Account whose head is a commit.
func AtHead(tx *db.Tx, repoID, sha string) ([]string, error) {
	return openAtSHA.All(tx, tx.Account, repoID, sha)
}

// CheckAgain runs the repository's own check of a head anew, because a person asked the
// host for that. A check that has not ended goes on. It fails with the fault of
// Checks.Queue.
func (s *Service) CheckAgain(tx *db.Tx, r repo.Ref, prID, sha string) error {
	pr, ok, err := lock(tx, prID)
	if err != nil || !ok || pr.State != Open || pr.HeadSHA != sha || pr.AbandonedAt != nil || pr.Fork || !r.Enabled ||
		r.Policy.Checks.Command == "" || pr.OwnChecks == ChecksPending {
		return err
	}
	if err := s.Checks.Queue(tx, r, pr.ID, sha); err != nil {
		return err
	}
	failed := pr.Checks == ChecksFailed
	if err := s.setResults(tx, &pr, ChecksPending, pr.HostChecks); err != nil || !failed {
		return err // the question about a head that had passed stays
	}
	return s.taskGoesOn(tx, pr)
}

// endRepair ends the round that mends the checks of a locked pull request whose head has
// passed them meanwhile: the round has nothing to do, and is not charged. A round that has
// moved the head goes on.
func (s *Service) endRepair(tx *db.Tx, pr *row) error {
	if pr.Babysit != BabysitCI || pr.BabysitTask == nil || pr.RoundSHA != pr.HeadSHA {
		return nil
	}
	taskID := *pr.BabysitTask
	if _, err := setBabysit.Exec(tx, setBabysitArgs{ID: pr.ID, Babysit: BabysitWatching, UpdatedAt: tx.Micros()}); err != nil {
		return err
	}
	if _, err := uncharge.Exec(tx, pr.ID); err != nil {
		return err
	}
	pr.Babysit, pr.BabysitTask, pr.CIRounds = BabysitWatching, nil, max(0, pr.CIRounds-1)
	return MinderUnneeded.Send(tx, taskID)
}
