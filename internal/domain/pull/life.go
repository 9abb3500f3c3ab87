package pull

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/pull/trial"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// OnPush records the push of a branch. newSHA is the present commit of the branch, or
// codehost.ZeroSHA if the branch was deleted; by is the label of the actor who pushed. A
// pull request of the branch gets a new head. The pull requests that the push may have
// merged, closed or brought into conflict are marked: Loop asks the code host.
func (s *Service) OnPush(tx *db.Tx, r repo.Ref, branch, newSHA, by string) error {
	n, err := record.LookAtAll.Exec(tx, record.LookAtAllArgs{RepoID: r.ID, BaseRef: branch, PushedBy: &by})
	if err != nil {
		return err
	}
	if n > 0 {
		s.Hub.Notify(tx, event.PullTopic)
	}
	ids, err := record.OpenOfHead.All(tx, tx.Account, r.ID, branch)
	if err != nil {
		return err
	}
	if len(ids) == 0 && newSHA != codehost.ZeroSHA {
		return s.reopen(tx, r, branch, newSHA, by)
	}
	for _, prID := range ids {
		if err := s.pushed(tx, r, prID, newSHA, by); err != nil {
			return err
		}
	}
	return nil
}

// pushed records the push of the branch of an open pull request.
func (s *Service) pushed(tx *db.Tx, r repo.Ref, prID, newSHA, by string) error {
	pr, ok, err := record.Lock(tx, prID)
	if err != nil || !ok || pr.State != record.Open || pr.HeadSHA == newSHA {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	pr.PushedBy = &by
	if newSHA == codehost.ZeroSHA { // the pull request keeps its last head
		pr.FactsWant++
		return record.Save(tx, pr)
	}
	return s.moveHead(tx, r, pr, newSHA)
}

// by is the label of the actor of a transaction.
func by(tx *db.Tx) string {
	if actor := policy.From(tx.Context()); !actor.Anonymous() {
		return actor.Label()
	}
	return "system"
}

// Recheck marks all open pull requests of a repository, so that Loop reads their facts
// again: a push may have gone unnoticed.
func (s *Service) Recheck(tx *db.Tx, repoID string) error {
	_, err := record.LookAtAll.Exec(tx, record.LookAtAllArgs{RepoID: repoID})
	s.Hub.Notify(tx, event.PullTopic)
	return err
}

// reopen opens a pull request again whose branch was deleted and is back, unless its task
// has gone on without it.
func (s *Service) reopen(tx *db.Tx, r repo.Ref, branch, sha, by string) error {
	gone, ok, err := record.LastDeleted.Maybe(tx, tx.Account, r.ID, branch)
	if err != nil || !ok {
		return err
	}
	pr, ok, err := record.Lock(tx, gone)
	if err != nil || !ok || pr.State != record.Closed || pr.HostAt > 0 {
		return err // a host that keeps pull requests tells when one is opened again
	}
	return s.reopenRow(tx, r, pr, sha, by)
}

// reopenRow opens a locked pull request again, unless its task has gone on without it.
func (s *Service) reopenRow(tx *db.Tx, r repo.Ref, pr *record.Pull, sha, by string) error {
	if pr.TaskID != nil {
		if reopened, err := s.Tasks.Reopen(tx, *pr.TaskID, pr.ID); err != nil || !reopened {
			return err
		}
	}
	pr.State, pr.ClosedWhy, pr.ClosedBy, pr.ClosedAt, pr.AbandonedAt, pr.PushedBy = record.Open, "", nil, nil, nil, &by
	if pr.Babysit = record.BabysitWatching; !watched(r, pr) { // the policy may be another one than when it was closed
		pr.EndRound(record.BabysitOff)
	}
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if err := s.EndQuestions(tx, pr); err != nil {
		return err
	}
	data := record.ReopenedData{By: by, HeadSHA: sha, Number: pr.Number}
	if err := record.ReopenedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: r.ID}, data); err != nil {
		return err
	}
	return s.moveHead(tx, r, pr, sha)
}

// Abandon ends the questions, orders and rounds of a pull request whose task was
// cancelled, and closes the pull request unless the policy keeps it. A merge that has
// begun goes on; if it fails, the pull request is closed then.
func (s *Service) Abandon(tx *db.Tx, prID, taskID string) error {
	pr, ok, err := record.Lock(tx, prID)
	if err != nil || !ok || pr.TaskID == nil || *pr.TaskID != taskID || pr.AbandonedAt != nil {
		return err
	}
	if pr.State == record.Opening {
		if err := intent.Drop(tx, pr.RepoID, pr.ID); err != nil {
			return err
		}
		return s.close(tx, pr, record.ClosedCancelled, by(tx))
	}
	if pr.State != record.Open {
		return nil
	}
	pr.AbandonedAt, pr.Babysit, pr.Needs, pr.NeedsAt = &tx.Now, record.BabysitOff, "", nil
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if err := merge.EndCarry(tx, pr); err != nil {
		return err
	}
	a, asked, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil {
		return err
	}
	if asked {
		n, err := record.Withdraw.Exec(tx, pr.ID, tx.Micros())
		if err != nil {
			return err
		}
		if n > 0 {
			s.OrderEnded(tx, a)
			err := record.StaleEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID},
				record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
			if err != nil {
				return err
			}
		}
	}
	s.Hub.Notify(tx, event.PullTopic)
	if err := s.Move(tx, pr); err != nil {
		return err
	}
	if pr.State != record.Open {
		return nil
	}
	return s.over(tx, pr, "The task was cancelled.")
}

// close ends a locked, open pull request that is not merged.
func (s *Service) close(tx *db.Tx, pr *record.Pull, why, by string) error {
	if pr.State != record.Open && pr.State != record.Opening { // it has ended otherwise, and that stays
		return nil
	}
	pr.State, pr.Babysit, pr.Needs, pr.NeedsAt = record.Closed, record.BabysitOff, "", nil
	pr.ClosedWhy, pr.ClosedBy, pr.ClosedAt = why, &by, &tx.Now
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if err := errors.Join(s.EndQuestions(tx, pr), merge.EndCarry(tx, pr)); err != nil {
		return err
	}
	if why != record.ClosedAtHost && why != record.ClosedAsked {
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return err
		}
		if err := s.closeThere(tx, r, pr); err != nil {
			return err
		}
	}
	data := record.ClosedData{ClosedBy: by, HeadSHA: pr.HeadSHA, Number: max(pr.Number, 0), TaskID: pr.TaskID, Why: why}
	if err := record.ClosedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	if err := s.over(tx, pr, "The pull request was closed."); err != nil || pr.TaskID == nil || why == record.ClosedCancelled {
		return err
	}
	return record.TaskClosed.Send(tx, record.Progress{TaskID: *pr.TaskID, PRID: pr.ID, Why: closedWords[why]})
}

var closedWords = map[string]string{
	record.ClosedDeleted: "Its pull request was closed: the branch was deleted.",
	record.ClosedAtHost:  "Its pull request was closed at the code host.",
	record.ClosedAsked:   "Its pull request was closed: an agent asked for it, and a person said yes.",
	record.ClosedRefused: "The code host did not open its pull request.",
	record.ClosedEmpty:   "Its pull request was closed: a push left nothing on the branch that its base does not have.",
}

// over does what follows the end of a pull request, or of the care for one that is kept:
// Loop stops its checks and rounds, and escalations about it are resolved with the note.
func (s *Service) over(tx *db.Tx, pr *record.Pull, note string) error {
	s.Hub.Notify(tx, event.PullTopic)
	return record.SeenTo.Send(tx, record.Note{PRID: pr.ID, Text: note})
}

// readFacts asks the code host about a pull request whose head or base may have moved
// since the last question, and records the answer.
func (s *Service) readFacts(ctx context.Context, d record.FactsRow) error {
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByID(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	f, err := s.FactsAt(ctx, r, d)
	unknown := err != nil && errors.Is(err, codehost.ErrNotFound) && !errors.Is(err, trial.ErrNoRepo) // the host has no such base or head
	if _, refused := errors.AsType[*codehost.ForbiddenError](err); refused && !unknown {
		return errors.Join(err, s.notRead(ctx, d))
	}
	if err != nil && !unknown {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, d.ID)
		if err != nil || !ok || pr.State != record.Open || pr.HeadSHA != d.HeadSHA {
			return err
		}
		if f.Head != "" {
			return s.moveHead(tx, r, pr, f.Head)
		}
		if begun, err := s.MergeBegun(tx, pr); err != nil || begun && (f.Merge != "" || f.Gone) {
			return err // its end marks the pull request again
		}
		conflicted := pr.Mergeable == "conflict"
		pr.FactsHave = d.FactsWant
		pr.Learn(f)
		if err := record.Save(tx, pr); err != nil {
			return err
		}
		if _, err := record.KnowAction.Exec(tx, pr.ID, pr.HeadSHA); err != nil {
			return err
		}
		who := "git"
		if d.PushedBy != nil {
			who = *d.PushedBy
		}
		switch {
		case f.Merge != "" && !f.Empty:
			return s.MergedByHand(tx, pr, f.Merge, who)
		case f.Merge != "":
			return s.close(tx, pr, record.ClosedEmpty, who)
		case f.Gone:
			return s.close(tx, pr, record.ClosedDeleted, who)
		}
		if err := s.headKnown(tx, r, pr, f); err != nil {
			return err
		}
		if err := s.JudgeCarry(tx, r, pr, f, d.PushedBy); err != nil {
			return err
		}
		if err := s.Move(tx, pr); err != nil {
			return err
		}
		if unknown || f.Mergeable != "conflict" || conflicted || pr.AbandonedAt != nil {
			return nil
		}
		return record.ConflictEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID},
			record.ConflictData{BaseSHA: f.Base, HeadSHA: pr.HeadSHA})
	})
}

// notRead notes that the host of a pull request does not let its branches be read. It is asked
// again at each pass.
func (s *Service) notRead(ctx context.Context, d record.FactsRow) error {
	if d.Unreadable {
		return nil
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, d.ID)
		if err != nil || !ok || pr.State != record.Open || pr.HeadSHA != d.HeadSHA {
			return err
		}
		pr.Unreadable = true
		if err := record.Save(tx, pr); err != nil {
			return err
		}
		return s.Move(tx, pr)
	})
}

// stopTask ends a check or round of a pull request that has ended or was abandoned.
func (s *Service) stopTask(ctx context.Context, m record.Found) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error { return record.TaskUnneeded.Send(tx, m.ID) })
}
