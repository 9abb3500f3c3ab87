package pull

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// apply merges one approved head. The merge of the host is idempotent, so a crash before
// the commit of our transaction does no harm: apply runs again.
func (s *Service) apply(ctx context.Context, d dueRow) error {
	var pr row
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if pr, err = byID.One(tx, tx.Account, d.PRID); err == nil {
			r, _, err = repo.ByID(tx, pr.RepoID)
		}
		return err
	})
	if err != nil {
		return err
	}
	if pr.State != Open {
		return s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := endAction.Exec(tx, endArgs{d.ID, d.Claim, ActionStale, nil})
			return err
		})
	}
	ready, err := s.ready(ctx, d)
	if err != nil || !ready {
		return err
	}
	// The merge is tried first, and then made into the same commit of the base.
	var t trial
	host, mergeErr := s.Hosts.Of(r.HostRepo())
	if mergeErr == nil {
		t, mergeErr = s.tryMerge(ctx, r, pr.attempt(d.HeadSHA))
	}
	if mergeErr == nil && !t.done {
		if ordered, err := s.ordered(ctx, d, t.protected); err != nil || !ordered {
			return err
		}
		if goes, err := s.turn(ctx, r, pr, d, t.base); err != nil || !goes {
			return err
		}
	}
	var message string
	var m made
	if mergeErr == nil {
		if message, err = s.message(ctx, pr, d); err != nil {
			return err
		}
		m.sha, mergeErr = s.mergeAt(ctx, host, r, pr, codehost.MergeOptions{
			Base: pr.BaseRef, Head: pr.HeadRef, HeadSHA: d.HeadSHA, BaseSHA: t.base, Landed: t.landed,
			Method: codehost.Method(r.Policy.Merge.Method),
			Title:  fmt.Sprintf("%s (#%d)", pr.Title, pr.Number), Body: message,
			Author: s.Bot, Committer: s.Bot,
		})
	}
	if ctx.Err() != nil {
		return nil // a node takes the action again after the hold
	}
	if busy, is := errors.AsType[*codehost.BusyError](mergeErr); is {
		why := unanswered
		if busy.Limit {
			why = limited
		}
		return s.DB.Write(ctx, func(tx *db.Tx) error {
			until := tx.Now.Add(min(max(busy.After, time.Second), longestWait))
			_, err := waitHost.Exec(tx, putOffArgs{d.ID, d.Claim, db.Micros(until), why})
			return err
		})
	}
	if forbidden, is := errors.AsType[*codehost.ForbiddenError](mergeErr); is && forbidden.Asked {
		return s.DB.Write(ctx, func(tx *db.Tx) error { return s.ungranted(tx, d, pr, forbidden.Permission) })
	}
	if errors.Is(mergeErr, codehost.ErrBaseMoved) {
		return s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := waitLonger.Exec(tx, d.ID, d.Claim, tx.Micros())
			return err
		})
	}
	if mergeErr != nil {
		s.Logger.WarnContext(ctx, "merge", slog.String("pr", pr.ID), slog.Any("error", mergeErr))
	} else if m, err = s.finished(ctx, host, r, pr, d.HeadSHA, t, m.sha); err != nil {
		observe.Complain(ctx, s.Logger, "delete the merged branch of "+pr.ID, err)
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error { return s.applied(tx, d, m, mergeErr) })
}

// Refusal is a merge that waits for a permission which the owner of its repository has yet to
// grant, as the host calls it.
type Refusal struct{ RepoID, Permission string }

// Ungranted is sent each time that a merge is refused for such a permission.
var Ungranted = event.DeclareSignal[Refusal]("pull.ungranted", "A merge waits for a permission that is yet to be granted.")

// ungranted has an order wait until a permission is granted, see RetryNow. That is no try.
func (s *Service) ungranted(tx *db.Tx, d dueRow, pr row, permission string) error {
	why := ungrantedWords + permission + "."
	if _, err := waitHost.Exec(tx, putOffArgs{d.ID, d.Claim, db.Micros(tx.Now.Add(longestWait)), why}); err != nil {
		return err
	}
	return Ungranted.Send(tx, Refusal{pr.RepoID, permission})
}

// RetryNow makes the merges due that wait in repositories of tx.Account for their next try:
// their owner has granted more. Those that wait for a limit of the host wait on.
func (s *Service) RetryNow(tx *db.Tx, repoIDs []string) error {
	for _, repoID := range repoIDs {
		if _, err := retryMerges.Exec(tx, repoID, tx.Micros(), limited); err != nil {
			return err
		}
	}
	s.Hub.Notify(tx, event.PullTopic)
	return nil
}

// finished compares a merge that was made with the one that was tried, and deletes the branch
// if the policy says so. A branch that was merged otherwise is kept for whoever looks into it.
func (s *Service) finished(ctx context.Context, host codehost.Host, r repo.Ref, pr row, head string, t trial, sha string) (made, error) {
	m := s.compared(ctx, r, pr.attempt(head), t, sha)
	if m.otherwise != "" || !r.Policy.Merge.DeleteBranch || pr.AuthorKind != ByAgent {
		return m, nil
	}
	return m, s.deleteMerged(ctx, host, r, pr, head)
}

// deleteMerged deletes the branch of a head that was merged. A branch that has moved or is
// gone stays as it is, and so does one that is the base of other open pull requests: hosts
// close those, or give them another base.
func (s *Service) deleteMerged(ctx context.Context, host codehost.Host, r repo.Ref, pr row, sha string) error {
	based := false
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		based, err = isBase.One(tx, tx.Account, r.ID, pr.HeadRef)
		return err
	})
	if err != nil || based {
		return err
	}
	err = host.DeleteBranch(ctx, r.HostRepo(), pr.HeadRef, sha)
	if errors.Is(err, codehost.ErrNotFound) || errors.Is(err, codehost.ErrHeadMoved) {
		return nil
	}
	return err
}

// mergeAt merges a head. A host that keeps pull requests merges it itself: its rules
// count, besides those of the policy.
func (s *Service) mergeAt(ctx context.Context, host codehost.Host, r repo.Ref, pr row, o codehost.MergeOptions) (string, error) {
	if !s.kept(r) {
		return host.Merge(ctx, r.HostRepo(), o)
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return "", err
	}
	ctx = codehost.WithUrgency(ctx, codehost.ForPeople)
	once := codehost.Once(pr.ID + "/" + o.HeadSHA)
	return forge.MergePull(ctx, r.HostRepo(), once, pr.Number, codehost.PullMerge{
		HeadSHA: o.HeadSHA, Method: o.Method, Title: o.Title, Body: o.Body,
	})
}

// lockDue locks the pull request of an order; false if the order was taken back, or another node
// has taken it.
func lockDue(tx *db.Tx, d dueRow) (pr row, a actionRow, ok bool, err error) {
	pr, ok, err = lock(tx, d.PRID)
	if err != nil || !ok {
		return pr, a, false, err
	}
	a, ok, err = openAction.Maybe(tx, pr.ID)
	return pr, a, ok && a.ID == d.ID && a.HeadSHA == d.HeadSHA && a.Claim == d.Claim, err
}

// goesOn locks the pull request of an order and tells whether the table has the head merged
// now, whatever the host was told of that before. An order that it does not have merged waits
// until it does, and ends with its task, or with the policy that gave it.
func (s *Service) goesOn(tx *db.Tx, d dueRow) (m moving, a actionRow, goes bool, err error) {
	pr, a, ok, err := lockDue(tx, d)
	if err != nil || !ok {
		return m, a, false, err
	}
	if pr.AbandonedAt != nil {
		if err := s.replace(tx, pr, a); err != nil {
			return m, a, false, err
		}
		return m, a, false, s.move(tx, pr.ID)
	}
	if m, _, err = s.look(tx, pr.ID); err != nil {
		return m, a, false, err
	}
	if m.facts.Act.Is(moves.ActCalled) {
		m.facts.Act = moves.NoAct
		m.step = nextOf(m.facts, rulesOf(m.repo))
	}
	// Its queue says whether its turn has come.
	if m.step.Do == moves.DoMerge || m.step.Do == moves.DoEnter || m.step == (moves.Step{Do: moves.DoWait, Of: moves.ForTurn}) {
		return m, a, true, nil
	}
	if m.step.Do == moves.DoPerson && m.facts.Yes.Is(moves.NoYes) {
		err = s.replace(tx, pr, a) // the policy, which ordered it, has it no more
	} else {
		_, err = waitLonger.Exec(tx, d.ID, d.Claim, db.Micros(tx.Now.Add(sweep)))
	}
	if err != nil {
		return m, a, false, err
	}
	return m, a, false, s.move(tx, pr.ID)
}

// ready tells whether an approved merge may be tried. One of which the host was told is tried
// in any case, since it may be made.
func (s *Service) ready(ctx context.Context, d dueRow) (ready bool, err error) {
	if d.Called {
		return true, nil
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		_, _, ready, err = s.goesOn(tx, d)
		return err
	})
	return ready, err
}

// ordered tells whether the order to merge a head stands although the merge would make the
// protected changes p; nil is none. If it does not, a person is asked, or the policy leaves the
// merge to people.
func (s *Service) ordered(ctx context.Context, d dueRow, p *Protected) (ordered bool, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		m, a, goes, err := s.goesOn(tx, d)
		if ordered = false; err != nil || !goes {
			return err
		}
		free := a.DecidedBy != nil && *a.DecidedBy == byPolicy
		mode := m.repo.Policy.Merge.Mode
		if ordered = a.covers(p) && (!free || mode == "auto"); ordered {
			return nil
		}
		if err := s.replace(tx, m.row, a); err != nil {
			return err
		}
		if p != nil || mode != "never" { // the policy has changed since its order, else
			if _, err := setLooked.Exec(tx, m.ID, m.HeadSHA); err != nil {
				return err
			}
			if err := s.question(tx, m.row, p); err != nil {
				return err
			}
		}
		return s.move(tx, m.ID)
	})
	return ordered, err
}

// applied records the result of a merge. It reads the pull request again, because the
// head may have moved.
func (s *Service) applied(tx *db.Tx, d dueRow, m made, mergeErr error) error {
	pr, _, err := lock(tx, d.PRID)
	if err != nil {
		return err
	}
	if mergeErr != nil {
		a, open, err := openAction.Maybe(tx, pr.ID)
		if err != nil || !open || a.ID != d.ID || a.HeadSHA != d.HeadSHA || a.Claim != d.Claim {
			return err // the transaction that took the order back did the rest, or the node that took it does
		}
		return s.notMerged(tx, d, pr, mergeErr)
	}
	checks := ChecksNone
	if _, checked, err := s.Checks.Of(tx, pr.ID, d.HeadSHA); err != nil {
		return err
	} else if checked {
		checks = ChecksPassed
	}
	n, err := setMerged.Exec(tx, setMergedArgs{
		ID: pr.ID, MergeSHA: m.sha, MergedBy: d.DecidedBy, MergedAt: tx.Micros(), HeadSHA: d.HeadSHA, Checks: checks,
		Otherwise: m.otherwise,
	})
	if err != nil || n == 0 {
		return err // the merge is recorded already
	}
	if err := s.Queue.Merged(tx, pr.ID, d.ID, m.sha); err != nil {
		return err
	}
	if _, err := carriedOut.Exec(tx, d.ID); err != nil {
		return err
	}
	// There may be a question about a newer head.
	if err := s.endQuestions(tx, pr); err != nil {
		return err
	}
	if err := s.announceMerge(tx, pr, d.HeadSHA, m.sha, d.DecidedBy); err != nil || m.otherwise == "" {
		return err
	}
	return s.alarm(tx, pr, d.HeadSHA, m)
}

// notMerged records why the host did not carry out an order. The merge is tried again,
// an agent repairs the head, or a person decides.
func (s *Service) notMerged(tx *db.Tx, d dueRow, pr row, mergeErr error) error {
	moved := errors.Is(mergeErr, codehost.ErrHeadMoved) || errors.Is(mergeErr, codehost.ErrNotFound)
	conflict := errors.Is(mergeErr, codehost.ErrConflict)
	why := whyNot(mergeErr)
	if !moved && !conflict && d.Tries < maxTries {
		until := tx.Now.Add(time.Second << min(d.Tries, 6))
		_, err := postpone.Exec(tx, putOffArgs{d.ID, d.Claim, db.Micros(until), why})
		return err
	}
	state, reason := ActionFailed, "host_failed"
	switch {
	case moved:
		state = ActionStale
	case conflict:
		reason = "merge_conflict"
		pr.Mergeable = "conflict"
		if _, err := setClean.Exec(tx, pr.ID, pr.Mergeable, tx.Micros()); err != nil {
			return err
		}
	}
	if n, err := endAction.Exec(tx, endArgs{d.ID, d.Claim, state, &why}); err != nil || n == 0 {
		return err // the transaction that moved the head did the rest
	}
	if conflict {
		if _, err := setToMend.Exec(tx, d.ID); err != nil {
			return err
		}
	}
	var err error
	if moved {
		err = staleEvent.Record(tx, event.Subject{ID: d.ID, RepoID: pr.RepoID}, questionData{HeadSHA: d.HeadSHA, PRID: pr.ID})
	} else {
		err = mergeFailedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, mergeFailedData{Reason: reason})
	}
	if err != nil {
		return err
	}
	if !conflict {
		// A push was not reported yet, or the answer to a merge that was made got lost: the
		// loop asks the host.
		if _, err := lookAgain.Exec(tx, pr.ID); err != nil {
			return err
		}
		s.Hub.Notify(tx, event.PullTopic)
	}
	return s.move(tx, pr.ID)
}

// taskGoesOn tells the task of a pull request that it waits for checks again.
func (s *Service) taskGoesOn(tx *db.Tx, pr row) error {
	if pr.TaskID == nil {
		return nil
	}
	return TaskAwaits.Send(tx, Progress{TaskID: *pr.TaskID, PRID: pr.ID})
}

// Reasons why a merge waits for its host.
const (
	limited        = "The code host permits no more calls for now."
	unanswered     = "The code host does not answer now. It is asked again."
	ungrantedWords = "The owner of the repository has yet to grant the permission " // and its name
)

// whyNot is the reason why a merge was not made, for people. An error that is no fault
// appears in the log only.
func whyNot(err error) string {
	if blocked, ok := errors.AsType[*codehost.BlockedError](err); ok {
		return "A rule of the code host is not met: " + enumerate(blocked.Missing, 0) + "."
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Detail
	}
	return "The code host did not carry out the merge; the log of the server says why."
}
