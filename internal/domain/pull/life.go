package pull

import (
	"context"
	"errors"
	"reflect"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// Reasons why a pull request was closed.
const (
	ClosedCancelled = "cancelled"      // the task was cancelled
	ClosedDeleted   = "branch_deleted" // a push deleted the branch
	ClosedEmpty     = "nothing_left"   // a push moved the branch to a commit that the base has
	ClosedAtHost    = "closed_at_host" // somebody closed it at its host
	ClosedAsked     = "asked"          // an agent asked for it, and a person said yes
	ClosedRefused   = "refused_by_host"
)

// OnPush records the push of a branch. newSHA is the present commit of the branch, or
// codehost.ZeroSHA if the branch was deleted; by is the label of the actor who pushed. A
// pull request of the branch gets a new head. The pull requests that the push may have
// merged, closed or brought into conflict are marked: Loop asks the code host.
func (s *Service) OnPush(tx *db.Tx, r repo.Ref, branch, newSHA, by string) error {
	n, err := lookAtAll.Exec(tx, lookAtAllArgs{RepoID: r.ID, BaseRef: branch, PushedBy: &by})
	if err != nil {
		return err
	}
	if n > 0 {
		s.Hub.Notify(tx, event.PullTopic)
	}
	ids, err := openOfHead.All(tx, tx.Account, r.ID, branch)
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
	pr, ok, err := lock(tx, prID)
	if err != nil || !ok || pr.State != Open || pr.HeadSHA == newSHA {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	pr.PushedBy = &by
	if newSHA == codehost.ZeroSHA { // the pull request keeps its last head
		pr.FactsWant++
		return save(tx, pr)
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
	_, err := lookAtAll.Exec(tx, lookAtAllArgs{RepoID: repoID})
	s.Hub.Notify(tx, event.PullTopic)
	return err
}

// reopen opens a pull request again whose branch was deleted and is back, unless its task
// has gone on without it.
func (s *Service) reopen(tx *db.Tx, r repo.Ref, branch, sha, by string) error {
	gone, ok, err := lastDeleted.Maybe(tx, tx.Account, r.ID, branch)
	if err != nil || !ok {
		return err
	}
	pr, ok, err := lock(tx, gone)
	if err != nil || !ok || pr.State != Closed || pr.HostAt > 0 {
		return err // a host that keeps pull requests tells when one is opened again
	}
	return s.reopenRow(tx, r, pr, sha, by)
}

// reopenRow opens a locked pull request again, unless its task has gone on without it.
func (s *Service) reopenRow(tx *db.Tx, r repo.Ref, pr *row, sha, by string) error {
	if pr.TaskID != nil {
		if reopened, err := s.Tasks.Reopen(tx, *pr.TaskID, pr.ID); err != nil || !reopened {
			return err
		}
	}
	pr.State, pr.ClosedWhy, pr.ClosedBy, pr.ClosedAt, pr.AbandonedAt, pr.PushedBy = Open, "", nil, nil, nil, &by
	if pr.Babysit = BabysitWatching; !watched(r, pr) { // the policy may be another one than when it was closed
		pr.endRound(BabysitOff)
	}
	if err := save(tx, pr); err != nil {
		return err
	}
	if err := s.endQuestions(tx, pr); err != nil {
		return err
	}
	data := reopenedData{By: by, HeadSHA: sha, Number: pr.Number}
	if err := reopenedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: r.ID}, data); err != nil {
		return err
	}
	return s.moveHead(tx, r, pr, sha)
}

// Abandon ends the questions, orders and rounds of a pull request whose task was
// cancelled, and closes the pull request unless the policy keeps it. A merge that has
// begun goes on; if it fails, the pull request is closed then.
func (s *Service) Abandon(tx *db.Tx, prID, taskID string) error {
	pr, ok, err := lock(tx, prID)
	if err != nil || !ok || pr.TaskID == nil || *pr.TaskID != taskID || pr.AbandonedAt != nil {
		return err
	}
	if pr.State == Opening {
		if err := intent.Drop(tx, pr.RepoID, pr.ID); err != nil {
			return err
		}
		return s.close(tx, pr, ClosedCancelled, by(tx))
	}
	if pr.State != Open {
		return nil
	}
	pr.AbandonedAt, pr.Babysit, pr.Needs, pr.NeedsAt = &tx.Now, BabysitOff, "", nil
	if err := save(tx, pr); err != nil {
		return err
	}
	if err := endCarry(tx, pr); err != nil {
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
			s.orderEnded(tx, a)
			err := staleEvent.Record(tx, event.Subject{ID: a.ID, RepoID: pr.RepoID}, questionData{HeadSHA: a.HeadSHA, PRID: pr.ID})
			if err != nil {
				return err
			}
		}
	}
	s.Hub.Notify(tx, event.PullTopic)
	if err := s.move(tx, pr); err != nil {
		return err
	}
	if pr.State != Open {
		return nil
	}
	return s.over(tx, pr, "The task was cancelled.")
}

// close ends a locked, open pull request that is not merged.
func (s *Service) close(tx *db.Tx, pr *row, why, by string) error {
	if pr.State != Open && pr.State != Opening { // it has ended otherwise, and that stays
		return nil
	}
	pr.State, pr.Babysit, pr.Needs, pr.NeedsAt = Closed, BabysitOff, "", nil
	pr.ClosedWhy, pr.ClosedBy, pr.ClosedAt = why, &by, &tx.Now
	if err := save(tx, pr); err != nil {
		return err
	}
	if err := errors.Join(s.endQuestions(tx, pr), endCarry(tx, pr)); err != nil {
		return err
	}
	if why != ClosedAtHost && why != ClosedAsked {
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return err
		}
		if err := s.closeThere(tx, r, pr); err != nil {
			return err
		}
	}
	data := closedData{ClosedBy: by, HeadSHA: pr.HeadSHA, Number: max(pr.Number, 0), TaskID: pr.TaskID, Why: why}
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
	ClosedAtHost:  "Its pull request was closed at the code host.",
	ClosedAsked:   "Its pull request was closed: an agent asked for it, and a person said yes.",
	ClosedRefused: "The code host did not open its pull request.",
	ClosedEmpty:   "Its pull request was closed: a push left nothing on the branch that its base does not have.",
}

// over does what follows the end of a pull request, or of the care for one that is kept:
// Loop stops its checks and rounds, and escalations about it are resolved with the note.
func (s *Service) over(tx *db.Tx, pr *row, note string) error {
	s.Hub.Notify(tx, event.PullTopic)
	return SeenTo.Send(tx, Note{PRID: pr.ID, Text: note})
}

// mergedByHand records that a push brought the head of a pull request into its
// base.
func (s *Service) mergedByHand(tx *db.Tx, pr *row, mergeSHA, by string) error {
	if pr.State != Open { // the answer to our own merge has told of it before
		return nil
	}
	pr.endMerged(made{sha: mergeSHA}, &by, tx.Now)
	if err := save(tx, pr); err != nil {
		return err
	}
	if err := s.endQuestions(tx, pr); err != nil {
		return err
	}
	return s.announceMerge(tx, pr, pr.HeadSHA, mergeSHA, &by)
}

// endMerged is the end of a pull request that was merged.
func (r *row) endMerged(m made, by *string, now time.Time) {
	r.State, r.Babysit, r.Mergeable, r.Needs, r.NeedsAt = Merged, BabysitDone, "clean", "", nil
	r.MergeSHA, r.MergedBy, r.MergedAt, r.Otherwise, r.Would = &m.sha, by, &now, m.otherwise, nil
}

// announceMerge records the event of a merge, and moves on the task of the pull request
// and the work that was begun on top of it. by is the label of the actor who merged.
func (s *Service) announceMerge(tx *db.Tx, pr *row, headSHA, mergeSHA string, by *string) error {
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
	if _, err := lookAtAll.Exec(tx, lookAtAllArgs{RepoID: pr.RepoID, BaseRef: pr.BaseRef, PushedBy: by}); err != nil {
		return err
	}
	if err := s.over(tx, pr, "The pull request was merged."); err != nil || pr.TaskID == nil {
		return err
	}
	above, err := ordersAbove.All(tx, *pr.TaskID)
	if err != nil {
		return err
	}
	for _, actionID := range above {
		s.orders.Hurry(tx, actionID)
	}
	if err := s.BelowMoved(tx, *pr.TaskID); err != nil {
		return err
	}
	return TaskMerged.Send(tx, Progress{TaskID: *pr.TaskID, PRID: pr.ID})
}

// BelowMoved has the next pass move those pull requests on whose work was begun on that of a
// task of tx.Account.
func (s *Service) BelowMoved(tx *db.Tx, taskID string) error {
	n, err := moveAbove.Exec(tx, taskID)
	if n > 0 {
		s.Hub.Notify(tx, event.PullTopic)
	}
	return err
}

// facts are the state of a pull request in git.
type facts struct {
	gone      bool   // there is no such branch
	head      string // the commit of the branch; "" if it is the recorded head
	merge     string // the commit that brought the head into the base; "": there is none
	empty     bool   // the base contained the head before
	base      string
	patch     string
	mergeable string

	change, mergeBase string
	mergeBases        int
	paths             []string
	added, deleted    int
	unwanted          *db.JSON[Unwanted]
	lastPush          bool // the base wants the last push approved by somebody else
	would             *db.JSON[Would]
	had               []string // for the next look
}

// headOf is the commit of the branch of a pull request. The branch of a fork is in another
// repository: its host tells of a new head.
func headOf(ctx context.Context, host codehost.Host, r codehost.Repo, d factsRow) (string, error) {
	if !codehost.ValidBranch(d.HeadRef) {
		return d.HeadSHA, nil
	}
	return host.Head(ctx, r, d.HeadRef)
}

var errNoRepo = errors.New("the repository has no commit at the code host")

func (s *Service) factsAt(ctx context.Context, at repo.Ref, d factsRow) (f facts, err error) {
	r := at.HostRepo()
	host, err := s.Hosts.Of(r)
	if err != nil {
		return f, err
	}
	if info, err := host.Info(ctx, r); err != nil || info.Empty {
		return f, errors.Join(errNoRepo, err) // a lost repository gives no facts
	}
	switch head, err := headOf(ctx, host, r, d); {
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
			err = nil // the old commit of the base is gone: the base was force-pushed
		}
		f.empty = had != ""
		return f, err
	}
	c, err := host.Compare(ctx, r, d.BaseRef, d.HeadSHA)
	if err != nil {
		return f, err
	}
	f.base, f.patch, f.mergeable = c.BaseSHA, c.PatchID, "conflict"
	f.change, f.mergeBase, f.mergeBases, f.paths = c.Change, c.MergeBase, c.MergeBases, c.Paths
	f.added, f.deleted = c.Added, c.Deleted
	if c.MergeBase != "" {
		found, err := host.Unwanted(ctx, r, c.MergeBase, c.HeadSHA)
		if err != nil {
			return f, err
		}
		f.unwanted = unwanted(found)
	}
	if d.Carry == carryLook {
		if f.lastPush, err = lastPush(ctx, s.Hosts, r, d.BaseRef); err != nil {
			return f, err
		}
	}
	o, _, err := s.tried(ctx, at, attempt{d.BaseRef, d.HeadSHA, d.StartSHA, d.Had.V})
	if err != nil {
		return f, err
	}
	if !o.Conflict {
		f.mergeable = "clean"
	}
	f.base, f.would, f.had = o.BaseSHA, would(at, o), had(o)
	return f, nil
}

// readFacts asks the code host about a pull request whose head or base may have moved
// since the last question, and records the answer.
func (s *Service) readFacts(ctx context.Context, d factsRow) error {
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, _, err = repo.ByID(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	f, err := s.factsAt(ctx, r, d)
	unknown := err != nil && errors.Is(err, codehost.ErrNotFound) && !errors.Is(err, errNoRepo) // the host has no such base or head
	if _, refused := errors.AsType[*codehost.ForbiddenError](err); refused && !unknown {
		return errors.Join(err, s.notRead(ctx, d))
	}
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
		if begun, err := s.mergeBegun(tx, pr); err != nil || begun && (f.merge != "" || f.gone) {
			return err // its end marks the pull request again
		}
		conflicted := pr.Mergeable == "conflict"
		pr.FactsHave = d.FactsWant
		pr.learn(f)
		if err := save(tx, pr); err != nil {
			return err
		}
		if _, err := knowAction.Exec(tx, pr.ID, pr.HeadSHA); err != nil {
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
		}
		if err := s.headKnown(tx, r, pr, f); err != nil {
			return err
		}
		if err := s.judgeCarry(tx, r, pr, f, d.PushedBy); err != nil {
			return err
		}
		if err := s.move(tx, pr); err != nil {
			return err
		}
		if unknown || f.mergeable != "conflict" || conflicted || pr.AbandonedAt != nil {
			return nil
		}
		return conflictEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, conflictData{BaseSHA: f.base, HeadSHA: pr.HeadSHA})
	})
}

// learn sets what git has answered.
func (r *row) learn(f facts) {
	if r.Unreadable = false; f.base == "" {
		return
	}
	if f.would != nil && !reflect.DeepEqual(f.would.V.Back, r.backOf()) {
		r.LookedSHA = "" // what is asked does not name what the merge would bring back
	}
	r.BaseSHA, r.PatchID, r.Change, r.MergeBase, r.MergeBases = f.base, f.patch, f.change, f.mergeBase, int64(f.mergeBases)
	r.ChangedFiles, r.AddedLines, r.DeletedLines = new(int64(len(f.paths))), new(int64(f.added)), new(int64(f.deleted))
	r.Unwanted, r.Mergeable, r.Would, r.Had.V = f.unwanted, f.mergeable, f.would, f.had
}

// notRead notes that the host of a pull request does not let its branches be read. It is asked
// again at each pass.
func (s *Service) notRead(ctx context.Context, d factsRow) error {
	if d.Unreadable {
		return nil
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := lock(tx, d.ID)
		if err != nil || !ok || pr.State != Open || pr.HeadSHA != d.HeadSHA {
			return err
		}
		pr.Unreadable = true
		if err := save(tx, pr); err != nil {
			return err
		}
		return s.move(tx, pr)
	})
}

// stopTask ends a check or round of a pull request that has ended or was abandoned.
func (s *Service) stopTask(ctx context.Context, m found) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error { return TaskUnneeded.Send(tx, m.ID) })
}
