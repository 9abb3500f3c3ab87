package review

import (
	"cmp"
	"fmt"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// Notes of runs that reviewed nothing.
const (
	noteRebase  = "rebase"
	noteOver    = "the pull request is over"
	noteStopped = "its task was cancelled"
)

// closed says why a pull request is not open to reviews.
func (p Pull) closed() string { return cmp.Or(p.Why, noteOver) }

// HeadKnown begins the review of a head, if the policy says so and the head was not reviewed
// yet; a review that ended because the pull request was closed meanwhile, or a draft, is begun
// again. A run of an earlier head ends. It may be called again for the same head.
func (s *Service) HeadKnown(tx *db.Tx, r repo.Ref, p Pull) error {
	open, running, err := openRun.Maybe(tx, tx.Account, p.ID)
	if err != nil {
		return err
	}
	if running && open.HeadSHA != p.HeadSHA {
		if err := s.end(tx, open, p, ending{State: Cancelled, Note: "the branch has a newer head", Stop: true}); err != nil {
			return err
		}
		running = false
	}
	if p.Open || p.closed() != noteOver { // it may be opened again
		if _, err := revive.Exec(tx, p.ID, tx.Now); err != nil {
			return err
		}
	}
	last, any, err := lastRun.Maybe(tx, tx.Account, p.ID)
	if err != nil {
		return err
	}
	done := any && last.HeadSHA == p.HeadSHA && (last.State != Cancelled || last.Note == noteStopped)
	if running || done || !r.Enabled || r.Policy.Review.Mode != "auto" || !p.Watched || !p.Open {
		return s.tell(tx, r, p)
	}
	return s.begin(tx, r, p, nil)
}

// Request begins the review of the present head of a pull request because a person asks for
// it, whatever the policy says of reviews that nobody asked for; false if the policy
// switches reviews off, or one of the head is under way.
func (s *Service) Request(tx *db.Tx, r repo.Ref, p Pull, by *string) (bool, error) {
	_, running, err := openRun.Maybe(tx, tx.Account, p.ID)
	if err != nil || running || r.Policy.Review.Mode == "off" || !p.Open || p.MergeBase == "" {
		return false, err
	}
	return true, s.begin(tx, r, p, by)
}

// begin makes the run of a head. A head that only moves a reviewed change, and a review
// without a model, are over at once.
func (s *Service) begin(tx *db.Tx, r repo.Ref, p Pull, by *string) error {
	run := Run{ID: id.New(), AccountID: tx.Account, RepoID: p.RepoID, PRID: p.ID, HeadSHA: p.HeadSHA, MergeBase: p.MergeBase,
		Change: p.Change, State: Queued, RequestedBy: by, CreatedAt: tx.Now}
	if by == nil {
		run.RequestedBy = p.RequestedBy
	} else if *by == "" { // somebody who is no user
		run.RequestedBy = nil
	}
	about := event.Subject{ID: run.ID, RepoID: p.RepoID}
	read, known, err := lastRead.Maybe(tx, tx.Account, p.ID)
	if err != nil {
		return err
	}
	if known && by == nil && read.Change != "" && read.Change == p.Change {
		verdict, err := s.verdict(tx, r, p)
		if err != nil {
			return err
		}
		run.State, run.Note, run.Verdict, run.EndedAt, run.Carry = Completed, noteRebase, &verdict, &tx.Now, true
		s.wake(tx, run.ID)
		if err := s.insert(tx, r, p, run); err != nil {
			return err
		}
		return rebasedEvent.Record(tx, about, rebasedData{FromSHA: read.HeadSHA, HeadSHA: p.HeadSHA, PRID: p.ID})
	}
	if known && read.HeadSHA != p.HeadSHA {
		run.SinceSHA = read.HeadSHA
	}
	if run.Template, run.Blind, err = s.Models.Resolve(tx, r.Policy.Review.Template, p.Template, p.ID); err != nil {
		return err
	}
	if run.Blind != "" {
		verdict := VerdictNeutral
		run.State, run.Verdict, run.EndedAt = Completed, &verdict, &tx.Now
		if err := s.insert(tx, r, p, run); err != nil {
			return err
		}
		return blindEvent.Record(tx, about, blindData{Gap: run.Blind, HeadSHA: p.HeadSHA, PRID: p.ID})
	}
	if err := s.insert(tx, r, p, run); err != nil {
		return err
	}
	s.wake(tx, run.ID)
	return queuedEvent.Record(tx, about, queuedData{HeadSHA: p.HeadSHA, PRID: p.ID, SinceSHA: run.SinceSHA})
}

// insert stores a new run, sets the check of its head, and tells the pull request.
func (s *Service) insert(tx *db.Tx, r repo.Ref, p Pull, run Run) error {
	if _, err := insertRun.Exec(tx, run); err != nil {
		return err
	}
	if err := s.Poster.SetCheck(tx, r, p, run.check()); err != nil {
		return err
	}
	return s.tell(tx, r, p)
}

// check is the check of a run at the code host.
func (r Run) check() Check {
	c := Check{RunID: r.ID, HeadSHA: r.HeadSHA, State: r.State}
	if r.Verdict != nil {
		c.State = *r.Verdict
	}
	switch {
	case r.Blind != "":
		c.Title = "No model was there to review this head"
	case r.Note == noteRebase:
		c.Title = "The change was reviewed before it was rebased"
	case r.Kept != nil && *r.Kept == 0 && c.State == VerdictFailure:
		c.Title = "Nothing new found; what was found before holds the merge"
	case r.Kept != nil && *r.Kept == 0:
		c.Title = "Nothing found"
	case r.State == Failed, r.State == Cancelled:
		c.Title = "The review did not come to an end"
	}
	if r.State == Completed && r.Unlooked > 0 {
		c.Title = strings.TrimPrefix(c.Title+"; ", "; ") + fmt.Sprintf("earlier findings that were not looked at again: %d", r.Unlooked)
	}
	return c
}

// settle has the verdict of the newest review follow what a person has said of a finding, if it
// is one of the present head, and tells the code host.
func (s *Service) settle(tx *db.Tx, r repo.Ref, p Pull) error {
	run, ok, err := lastRun.Maybe(tx, tx.Account, p.ID)
	if err != nil || !ok || !p.Open || run.HeadSHA != p.HeadSHA || run.State != Completed || run.Blind != "" {
		return err
	}
	verdict, err := s.verdict(tx, r, p)
	if err != nil || run.Verdict != nil && *run.Verdict == verdict {
		return err
	}
	if _, err := setVerdict.Exec(tx, run.ID, verdict); err != nil {
		return err
	}
	run.Verdict = &verdict
	return s.Poster.SetCheck(tx, r, p, run.check())
}

// tell says to a pull request how far its review has come.
func (s *Service) tell(tx *db.Tx, r repo.Ref, p Pull) error {
	open, running, err := openRun.Maybe(tx, tx.Account, p.ID)
	if err != nil {
		return err
	}
	held, err := s.held(tx, open)
	if err != nil {
		return err
	}
	outcome, err := outcomeOf(tx, p)
	if err != nil {
		return err
	}
	n, err := holding(tx, r, p.ID)
	if err != nil {
		return err
	}
	return s.Pulls.Reviewed(tx, p.ID, p.HeadSHA, Result{Running: running, Held: held, Outcome: outcome, Findings: n})
}

// held tells whether the pass of a run that goes on is held.
func (s *Service) held(tx *db.Tx, run Run) (bool, error) {
	taskID := run.pass()
	if taskID == "" {
		return false, nil
	}
	return s.Tasks.Held(tx, taskID)
}

// pass is the task of the newest pass; "" before there is one.
func (r Run) pass() string {
	switch {
	case r.VerifyTaskID != nil:
		return *r.VerifyTaskID
	case r.TaskID != nil:
		return *r.TaskID
	}
	return ""
}

// outcomeOf is what the runs of the present head have come to; "" if none of them has ended.
func outcomeOf(tx *db.Tx, p Pull) (string, error) {
	run, known, err := endedOf.Maybe(tx, tx.Account, p.ID, p.HeadSHA)
	switch {
	case err != nil || !known:
		return "", err
	case run.Blind != "":
		return Blind, nil
	case run.State == Completed:
		return Looked, nil
	}
	return run.State, nil
}

// holding counts the findings that hold the merge of a pull request.
func holding(tx *db.Tx, r repo.Ref, prID string) (n int, err error) {
	rows, err := waiting.All(tx, tx.Account, prID)
	for _, f := range rows {
		if holds(f.State, f.Severity, r.Policy.Review.Block) {
			n++
		}
	}
	return n, err
}

// verdict is what the findings of a pull request come to.
func (s *Service) verdict(tx *db.Tx, r repo.Ref, p Pull) (string, error) {
	n, err := holding(tx, r, p.ID)
	if n > 0 {
		return VerdictFailure, err
	}
	return VerdictSuccess, err
}
