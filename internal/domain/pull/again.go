package pull

import (
	"errors"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// AtHead lists the open pull requests of tx.Account whose head is a commit.
func AtHead(tx *db.Tx, repoID, sha string) ([]string, error) {
	return record.OpenAtSHA.All(tx, tx.Account, repoID, sha)
}

// CheckAgain runs the repository's own check of a head anew, because a person asked the
// host for that. A check that has not ended goes on. It fails with the fault of
// Checks.Queue.
func (s *Service) CheckAgain(tx *db.Tx, r repo.Ref, prID, sha string) error {
	pr, ok, err := record.Lock(tx, prID)
	if err != nil || !ok || pr.State != record.Open || pr.HeadSHA != sha || pr.AbandonedAt != nil || pr.Fork || !r.Enabled ||
		r.Policy.Checks.Command == "" || pr.OwnChecks == record.ChecksPending {
		return err
	}
	if err := s.Checks.Queue(tx, r, pr.ID, sha); err != nil {
		return err
	}
	if err := record.SetResults(tx, pr, record.Judgement{Own: record.ChecksPending, Host: pr.HostChecks}); err != nil {
		return err
	}
	return s.Move(tx, pr)
}

// PolicyChanged begins or ends the watch of the open pull requests of people, has those
// reviewed that nobody was to review before, and queues the repository's own check of the
// open heads of tx.Account that have none: they were there before the policy file was read.
// What the queue does not take, the next push or a person has checked.
func (s *Service) PolicyChanged(tx *db.Tx, r repo.Ref) error {
	if _, err := record.MoveNow.Exec(tx, r.ID); err != nil {
		return err
	}
	if r.Policy.Review.Mode == "auto" {
		if _, err := record.LookAtAll.Exec(tx, record.LookAtAllArgs{RepoID: r.ID, Unreviewed: true}); err != nil {
			return err
		}
	}
	s.Hub.Notify(tx, event.PullTopic)
	if s.Kept(r) && r.Enabled {
		theirs, err := record.OfPeople.All(tx, tx.Account, r.ID)
		if err != nil {
			return err
		}
		for _, prID := range theirs {
			pr, ok, err := record.Lock(tx, prID)
			if err != nil {
				return err
			}
			if !ok || pr.State != record.Open {
				continue // closed meanwhile: it is watched, or not, once it comes back
			}
			if err := s.rewatch(tx, r, pr); err != nil {
				return err
			}
		}
	}
	if r.Policy.Checks.Command == "" || !r.Enabled {
		return nil
	}
	heads, err := record.Unchecked.All(tx, tx.Account, r.ID)
	if err != nil {
		return err
	}
	for _, h := range heads {
		err := s.CheckAgain(tx, r, h.ID, h.HeadSHA)
		if f := (*fault.Error)(nil); errors.As(err, &f) {
			return nil // the queue is full, which must not undo that the policy became known
		}
		if err != nil {
			return err
		}
	}
	return nil
}
