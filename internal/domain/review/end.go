package review

import (
	"cmp"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// ending is how a run ends.
type ending struct {
	State, Note string
	Kept        *int64
	More        int64
	Fixed       int64
	Stop        bool // its tasks may still go on
}

// end ends a run. The caller holds the lock of the pull request, or has none of its rows.
func (s *Service) end(tx *db.Tx, run Run, p Pull, e ending) error {
	r, _, err := repo.ByID(tx, run.RepoID)
	if err != nil {
		return err
	}
	verdict := VerdictNeutral
	if e.State == Completed {
		if verdict, err = s.verdict(tx, r, p); err != nil {
			return err
		}
	}
	left, err := unlookedOf.One(tx, tx.Account, run.PRID)
	if err != nil {
		return err
	}
	n, err := endRun.Exec(tx, endRunArgs{ID: run.ID, State: e.State, Note: e.Note, Verdict: &verdict, Kept: e.Kept, More: e.More,
		Unlooked: left, Stop: e.Stop, EndedAt: tx.Now})
	if err != nil || n == 0 {
		return err
	}
	if _, err := unclaim.Exec(tx, run.PRID); err != nil {
		return err
	}
	run.State, run.Note, run.Verdict, run.Kept, run.Unlooked = e.State, e.Note, &verdict, e.Kept, left
	if err := s.Poster.SetCheck(tx, r, p, run.check()); err != nil {
		return err
	}
	if e.Stop {
		s.wake(tx, run.ID)
	}
	about := event.Subject{ID: run.ID, RepoID: run.RepoID}
	switch e.State {
	case Completed:
		err = completedEvent.Record(tx, about, completedData{FindingsKept: *e.Kept, Fixed: e.Fixed, HeadSHA: run.HeadSHA, PRID: run.PRID,
			Unlooked: left, Verdict: verdict})
	case Failed:
		err = failedEvent.Record(tx, about, endedData{HeadSHA: run.HeadSHA, PRID: run.PRID, Why: e.Note})
	default:
		err = cancelledEvent.Record(tx, about, endedData{HeadSHA: run.HeadSHA, PRID: run.PRID, Why: e.Note})
	}
	if err != nil {
		return err
	}
	return s.tell(tx, r, p)
}

// TaskMoved is a move of the task of a pass.
type TaskMoved struct {
	TaskID    string
	Running   bool   // a box works on it
	Held      bool   // it is held, or was until now
	Over      bool   // it has ended without an answer
	Cancelled bool   // by a person, or because nothing needs it any more
	Why       string // it ended
}

// Moved moves the run of a task of tx.Account on. A task of no open run changes nothing.
func (s *Service) Moved(tx *db.Tx, m TaskMoved) error {
	run, ok, err := runByTask.Maybe(tx, tx.Account, m.TaskID)
	if err != nil || !ok {
		return err
	}
	if m.Held {
		if err := s.hold(tx, run); err != nil {
			return err
		}
	}
	finder := run.TaskID != nil && *run.TaskID == m.TaskID
	switch {
	case m.Over && (finder && (run.State == Queued || run.State == Looking) || !finder && run.State == Verifying):
		p, _, err := s.Pulls.Lock(tx, run.PRID)
		if err != nil {
			return err
		}
		if m.Cancelled {
			return s.end(tx, run, p, ending{State: Cancelled, Note: noteStopped})
		}
		return s.end(tx, run, p, ending{State: Failed, Note: m.Why})
	case m.Over || !finder:
		return nil
	case m.Running && run.State == Queued:
		_, err = setRunState.Exec(tx, run.ID, Looking)
	case !m.Running && run.State == Looking:
		_, err = setRunState.Exec(tx, run.ID, Queued)
	}
	return err
}

// hold tells the pull request of a run that its review is held, or is so no longer.
func (s *Service) hold(tx *db.Tx, run Run) error {
	p, ok, err := s.Pulls.Lock(tx, run.PRID)
	if err != nil || !ok || p.HeadSHA != run.HeadSHA {
		return err
	}
	r, ok, err := repo.ByID(tx, run.RepoID)
	if err != nil || !ok {
		return err
	}
	return s.tell(tx, r, p)
}

// Reported takes the answer of a pass of tx.Account, which is valid under its schema. The
// answer of a pass that is of no use any more changes nothing.
func (s *Service) Reported(tx *db.Tx, taskID, answer string) error {
	run, ok, err := runByTask.Maybe(tx, tx.Account, taskID)
	if err != nil || !ok {
		return err
	}
	if run.TaskID != nil && *run.TaskID == taskID {
		if run.State != Queued && run.State != Looking {
			return nil
		}
		s.wake(tx, run.ID)
		_, err := setRaw.Exec(tx, run.ID, answer)
		return err
	}
	if run.State != Verifying {
		return nil
	}
	p, ok, err := s.Pulls.Lock(tx, run.PRID)
	if err != nil || !ok {
		return err
	}
	if why := useless(run, p, true); why != "" {
		return s.end(tx, run, p, ending{State: Cancelled, Note: why})
	}
	claims, err := claimed.All(tx, tx.Account, run.PRID)
	if err != nil {
		return err
	}
	return s.conclude(tx, run, p, claims, readVerdicts(answer, len(claims)))
}

// conclude posts what was confirmed, answers what is mended, and ends a run. A finding of an
// earlier review is mended if it is refuted; one of which the verifier cannot tell stays as it
// is, and is looked at again on the next head.
func (s *Service) conclude(tx *db.Tx, run Run, p Pull, claims []Finding, said map[int]opinion) error {
	r, _, err := repo.ByID(tx, run.RepoID)
	if err != nil {
		return err
	}
	var kept []Finding
	fixed := int64(0)
	for _, f := range claims {
		v := said[f.ClaimNo]
		f.ClaimNo, f.UpdatedAt = 0, tx.Now
		if v.verdict != "" {
			f.Evidence, f.Unlooked = v.evidence, false
		}
		switch {
		case f.State == Raw && v.verdict == verdictConfirmed:
			f.State = Kept
			kept = append(kept, f)
			continue // it is stored below
		case f.State == Raw:
			f.State, f.StateWhy, f.Evidence = Refuted, "not confirmed", v.evidence
		case v.verdict == verdictRefuted && allowed(f.State, Fixed):
			fixed++
			f.State, f.FixedSHA = Fixed, &run.HeadSHA
			if err := s.Poster.Answer(tx, r, p, f, "Fixed in "+run.HeadSHA+".", true); err != nil {
				return err
			}
		}
		if _, err := updateFinding.Exec(tx, f); err != nil {
			return err
		}
	}
	all, err := shownOf.All(tx, tx.Account, run.PRID)
	if err != nil {
		return err
	}
	slices.SortStableFunc(kept, worse)
	room := max(0, min(maxPosted, maxOnPull-len(all)))
	for i := range kept {
		if kept[i].State = Posted; i >= room {
			kept[i].State, kept[i].StateWhy = Below, "beyond the limit"
		}
		if _, err := updateFinding.Exec(tx, kept[i]); err != nil {
			return err
		}
	}
	more := run.More + int64(max(0, len(kept)-room))
	posted := kept[:min(room, len(kept))]
	if len(posted) > 0 {
		posting := Posting{RunID: run.ID, HeadSHA: run.HeadSHA, Findings: posted, More: int(more)}
		if err := s.Poster.PostReview(tx, r, p, posting); err != nil {
			return err
		}
	}
	n := int64(len(posted))
	return s.end(tx, run, p, ending{State: Completed, Kept: &n, More: more, Fixed: fixed})
}

// worse orders findings: the worst first, then the surest.
func worse(a, b Finding) int {
	return cmp.Or(cmp.Compare(a.Severity.Rank(), b.Severity.Rank()),
		cmp.Compare(b.Confidence, a.Confidence))
}

// PullOver makes the findings of a pull request of tx.Account stale that is merged or
// closed. Its passes are stopped as its checks are.
func (s *Service) PullOver(tx *db.Tx, prID string) error {
	_, err := staleRest.Exec(tx, prID, tx.Now)
	return err
}

// Answer notes that somebody has answered a finding of tx.Account in its thread: it holds
// the merge no longer. again takes that back.
func (s *Service) Answer(tx *db.Tx, findingID string, again bool) error {
	from, to := Posted, Answered
	if again {
		from, to = Answered, Posted
	}
	f, ok, err := findingByID.Maybe(tx, tx.Account, findingID)
	if err != nil || !ok || f.State != from {
		return err
	}
	p, ok, err := s.Pulls.Lock(tx, f.PRID)
	if err != nil || !ok {
		return err
	}
	r, _, err := repo.ByID(tx, f.RepoID)
	if err != nil {
		return err
	}
	f.State, f.UpdatedAt = to, tx.Now
	if _, err := updateFinding.Exec(tx, f); err != nil {
		return err
	}
	if err := s.settle(tx, r, p); err != nil {
		return err
	}
	return s.tell(tx, r, p)
}
