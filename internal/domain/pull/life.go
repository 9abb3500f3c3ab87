package pull

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Why a pull request was closed.
const (
	ClosedCancelled = "cancelled"      // its task was
	ClosedDeleted   = "branch_deleted" // by a push
	ClosedEmpty     = "nothing_left"   // a push put its head on what its base has already
)

// OnPush is called for every branch that was pushed, with where it is now, or
// codehost.ZeroSHA if it was deleted, and who pushed it. It notes a new head,
// and which pull requests may be merged, closed or in conflict by the push: the
// loop asks the code host.
func (s *Service) OnPush(tx *db.Tx, r repo.Ref, branch, newSHA, by string) error {
	n, err := baseMoved.Exec(tx, baseMovedArgs{AccountID: tx.Account, RepoID: r.ID, BaseRef: branch, PushedBy: new(by)})
	if err != nil {
		return err
	}
	if n > 0 {
		s.Hub.Notify(tx, event.PullTopic)
	}
	pr, ok, err := lockByHead(tx, r.ID, branch)
	switch {
	case err != nil:
		return err
	case !ok && newSHA != codehost.ZeroSHA:
		return s.reopen(tx, r, branch, newSHA, by)
	case !ok || pr.HeadSHA == newSHA:
		return nil
	}
	if _, err := headMoved.Exec(tx, pr.ID, by); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	if newSHA == codehost.ZeroSHA {
		return nil // it keeps its last head
	}
	return s.moveHead(tx, r, pr, newSHA)
}

// by is who changes something in a transaction.
func by(tx *db.Tx) string {
	if actor := policy.From(tx.Context()); !actor.Anonymous() {
		return actor.Label()
	}
	return "system"
}

// Recheck has the facts of all open pull requests of a repository read again:
// pushes may have gone unnoticed.
func (s *Service) Recheck(tx *db.Tx, repoID string) error {
	_, err := recheck.Exec(tx, repoID)
	s.Hub.Notify(tx, event.PullTopic)
	return err
}

// reopen opens a pull request again whose branch was deleted and is back, if
// that is all that ended it.
func (s *Service) reopen(tx *db.Tx, r repo.Ref, branch, sha, by string) error {
	gone, ok, err := lastDeleted.Maybe(tx, tx.Account, r.ID, branch)
	if err != nil || !ok {
		return err
	}
	pr, ok, err := lock(tx, gone)
	if err != nil || !ok || pr.State != Closed {
		return err
	}
	if pr.TaskID != nil {
		if reopened, err := s.Tasks.Reopen(tx, *pr.TaskID, pr.ID); err != nil || !reopened {
			return err
		}
	}
	if _, err := setReopened.Exec(tx, pr.ID, by, tx.Micros()); err != nil {
		return err
	}
	data := reopenedData{By: by, HeadSHA: sha, Number: pr.Number}
	if err := reopenedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: r.ID}, data); err != nil {
		return err
	}
	pr.State, pr.Babysit = Open, BabysitWatching
	return s.moveHead(tx, r, pr, sha)
}

// Abandon ends what is asked, ordered and repaired about a pull request whose
// task was cancelled, and closes it unless the policy keeps it. A merge that is
// under way already is seen through: the loop closes it if that fails.
func (s *Service) Abandon(tx *db.Tx, prID, taskID string) error {
	pr, ok, err := lock(tx, prID)
	if err != nil || !ok || pr.TaskID == nil || *pr.TaskID != taskID || pr.State != Open || pr.AbandonedAt != nil {
		return err
	}
	if _, err := setAbandoned.Exec(tx, pr.ID, tx.Micros()); err != nil {
		return err
	}
	a, asked, err := openAction.Maybe(tx, pr.ID)
	if err != nil {
		return err
	}
	if asked {
		n, err := withdraw.Exec(tx, pr.ID, tx.Micros())
		if err != nil {
			return err
		}
		if n > 0 {
			err := staleEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, questionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
			if err != nil {
				return err
			}
		}
	}
	s.Hub.Notify(tx, event.PullTopic)
	return s.closeAbandoned(tx, pr)
}

// closeAbandoned closes a locked pull request that was abandoned, unless its
// merge is under way or the policy keeps it.
func (s *Service) closeAbandoned(tx *db.Tx, pr row) error {
	if _, busy, err := openAction.Maybe(tx, pr.ID); err != nil || busy {
		return err
	}
	r, ok, err := repo.ByID(tx, pr.RepoID)
	switch {
	case err != nil:
		return err
	case ok && r.Policy.Merge.OnCancel == "keep":
		if err := s.needs(tx, pr.ID, leftTo(pr)); err != nil {
			return err
		}
		return s.over(tx, pr, "The task was cancelled.")
	}
	return s.close(tx, pr, ClosedCancelled, by(tx))
}

// leftTo is what gets a pull request going that nobody looks after any more.
func leftTo(pr row) string {
	if passed(pr.Checks) {
		return NeedsMerge
	}
	return NeedsRearm
}

// close ends a locked, open pull request that is not merged.
func (s *Service) close(tx *db.Tx, pr row, why, by string) error {
	if n, err := setClosed.Exec(tx, setClosedArgs{ID: pr.ID, ClosedWhy: why, ClosedBy: by, ClosedAt: tx.Micros()}); err != nil || n == 0 {
		return err
	}
	if _, err := staleActions.Exec(tx, pr.ID, tx.Micros()); err != nil {
		return err
	}
	data := closedData{ClosedBy: by, HeadSHA: pr.HeadSHA, Number: pr.Number, TaskID: pr.TaskID, Why: why}
	if err := closedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	if err := s.over(tx, pr, "The pull request was closed."); err != nil || pr.TaskID == nil || why == ClosedCancelled {
		return err
	}
	return TaskClosed.Send(tx, Progress{TaskID: *pr.TaskID, PRID: pr.ID, Why: closedWords[why]})
}

var closedWords = map[string]string{
	ClosedDeleted: "Its pull request was closed: the branch was deleted.",
	ClosedEmpty:   "Its pull request was closed: a push left nothing on the branch that its base does not have.",
}

// over ends what is about a pull request that has just ended, or is kept: the
// loop stops the checks and rounds that still go on, and nobody needs to look at
// it any more.
func (s *Service) over(tx *db.Tx, pr row, note string) error {
	s.Hub.Notify(tx, event.PullTopic)
	return SeenTo.Send(tx, Note{PRID: pr.ID, Text: note})
}

// mergedByHand records that a push brought the head of a pull request into its
// base.
func (s *Service) mergedByHand(tx *db.Tx, pr row, mergeSHA, by string) error {
	if n, err := setMerged.Exec(tx, setMergedArgs{
		ID: pr.ID, MergeSHA: mergeSHA, MergedBy: new(by), MergedAt: tx.Micros(), HeadSHA: pr.HeadSHA, Checks: pr.Checks,
	}); err != nil || n == 0 {
		return err
	}
	if _, err := staleActions.Exec(tx, pr.ID, tx.Micros()); err != nil {
		return err
	}
	return s.landed(tx, pr, pr.HeadSHA, mergeSHA, &by)
}

// landed tells of a merge that has just been recorded, whoever made it.
func (s *Service) landed(tx *db.Tx, pr row, headSHA, mergeSHA string, by *string) error {
	var plan *string
	if pr.TaskID != nil {
		var err error
		if plan, _, err = planOf.Maybe(tx, tx.Account, *pr.TaskID); err != nil {
			return err
		}
	}
	err := MergedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, mergedData{
		HeadSHA: headSHA, MergeSHA: mergeSHA, MergedAt: tx.Now.UTC(), MergedBy: by, Number: pr.Number, PlanID: plan, PRID: pr.ID,
		Repo: pr.Owner + "/" + pr.Name, TaskID: pr.TaskID, URL: s.url(pr.ID),
	})
	if err != nil {
		return err
	}
	if _, err := baseMoved.Exec(tx, baseMovedArgs{AccountID: tx.Account, RepoID: pr.RepoID, BaseRef: pr.BaseRef, PushedBy: by}); err != nil {
		return err
	}
	if err := s.over(tx, pr, "The pull request was merged."); err != nil || pr.TaskID == nil {
		return err
	}
	if _, err := dueAbove.Exec(tx, *pr.TaskID, tx.Micros()); err != nil {
		return err
	}
	return TaskMerged.Send(tx, Progress{TaskID: *pr.TaskID, PRID: pr.ID})
}

// facts are what git says of a pull request.
type facts struct {
	gone      bool   // the branch
	head      string // where that is, if not where it was last heard to be
	merge     string // the commit that brought the head into the base; "" is none
	empty     bool   // the base had the head before
	base      string
	patch     string
	mergeable string
}

var errNoRepo = errors.New("the repository has no commit at the code host")

func (s *Service) factsAt(ctx context.Context, r codehost.Repo, d factsRow) (f facts, err error) {
	host, err := s.Hosts.Of(r)
	if err != nil {
		return f, err
	}
	if info, err := host.Info(ctx, r); err != nil || info.Empty {
		return f, errors.Join(errNoRepo, err) // of a repository that was lost nothing can be said
	}
	switch head, err := host.Head(ctx, r, d.HeadRef); {
	case errors.Is(err, codehost.ErrNotFound):
		f.gone = true
	case err != nil:
		return f, err
	case head != d.HeadSHA:
		f.head = head
		return f, nil
	}
	f.mergeable = "unknown"
	if f.merge, err = host.Landed(ctx, r, d.BaseRef, d.HeadSHA); err != nil {
		return f, err
	}
	if f.merge != "" {
		had, err := host.Landed(ctx, r, d.BaseSHA, d.HeadSHA)
		if errors.Is(err, codehost.ErrNotFound) {
			err = nil // the base was pushed backwards, too
		}
		f.empty = had != ""
		return f, err
	}
	c, err := host.Compare(ctx, r, d.BaseRef, d.HeadSHA)
	if err != nil {
		return f, err
	}
	f.base, f.patch, f.mergeable = c.BaseSHA, c.PatchID, "conflict"
	ok, _, err := host.Mergeable(ctx, r, c.BaseSHA, d.HeadSHA)
	if ok {
		f.mergeable = "clean"
	}
	return f, err
}

// readFacts asks the code host about a pull request whose head or base was
// pushed since it was asked last.
func (s *Service) readFacts(ctx context.Context, d factsRow) error {
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByID(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	f, err := s.factsAt(ctx, r.HostRepo(), d)
	unknown := err != nil && errors.Is(err, codehost.ErrNotFound) && !errors.Is(err, errNoRepo) // its base, or its head
	if err != nil && !unknown {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := lock(tx, d.ID)
		if err != nil || !ok || pr.State != Open || pr.HeadSHA != d.HeadSHA {
			return err
		}
		if f.head != "" {
			return s.moveHead(tx, r, pr, f.head)
		}
		a, asked, err := openAction.Maybe(tx, pr.ID)
		if err != nil || asked && a.State == ActionApproved && a.Tries > 0 && (f.merge != "" || f.gone) {
			return err // its merge is under way and ends soon: then it is looked at again
		}
		if _, err := setFacts.Exec(tx, setFactsArgs{
			ID: pr.ID, FactsHave: d.FactsWant, BaseSHA: f.base, Patch: f.patch, Mergeable: f.mergeable,
		}); err != nil {
			return err
		}
		who := "git"
		if d.PushedBy != nil {
			who = *d.PushedBy
		}
		switch {
		case f.merge != "" && !f.empty:
			return s.mergedByHand(tx, pr, f.merge, who)
		case f.merge != "":
			return s.close(tx, pr, ClosedEmpty, who)
		case f.gone:
			return s.close(tx, pr, ClosedDeleted, who)
		case unknown || f.mergeable != "conflict" || pr.Mergeable == "conflict" || pr.AbandonedAt != nil:
			return nil
		}
		return conflictEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, conflictData{BaseSHA: f.base, HeadSHA: pr.HeadSHA})
	})
}

// stopMinder ends a check or round of a pull request that has ended, or that is
// nobody's any more.
func (s *Service) stopMinder(ctx context.Context, m found) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error { return MinderUnneeded.Send(tx, m.ID) })
}
