package merge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/pull/trial"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// apply carries an order out. The merge of the host is idempotent, so that a crash before the
// commit of our transaction does no harm: apply runs again.
func (s *Merger) apply(ctx context.Context, j due.Job[record.DueRow]) due.Outcome {
	d := j.Row
	var o stand
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		o, err = s.stands(tx, d)
		return err
	})
	// An order of which the host was told is tried in any case, since it may be carried out.
	if err != nil {
		return due.Again(err)
	} else if o.is != ordersGoes && !(d.Called && o.State == record.Open) {
		return s.unmade(d, nil)
	}
	pr, r := o.Pull, o.Repo
	// The merge is tried first, and then made into the same commit of the base.
	var t trial.Trial
	host, mergeErr := s.Hosts.Of(r.HostRepo())
	if mergeErr == nil {
		t, mergeErr = s.Try(ctx, r, pr.Attempt(d.HeadSHA))
	}
	if mergeErr == nil && !t.Done {
		if begun, instead := s.begin(ctx, j, r, pr, t); !begun {
			return instead
		}
	}
	var m record.Made
	if mergeErr == nil {
		message, err := s.message(ctx, pr, d)
		if err != nil {
			return due.Again(err)
		}
		m.SHA, mergeErr = s.mergeAt(ctx, host, r, pr, codehost.MergeOptions{
			Base: pr.BaseRef, Head: pr.HeadRef, HeadSHA: d.HeadSHA, BaseSHA: t.Base, Landed: t.Landed,
			Method: codehost.Method(r.Policy.Merge.Method),
			Title:  fmt.Sprintf("%s (#%d)", pr.Title, pr.Number), Body: message,
			Author: s.Bot, Committer: s.Bot,
		})
	}
	if mergeErr == nil {
		m = s.compared(ctx, r, pr.Attempt(d.HeadSHA), t, m.SHA)
		return due.Done(func(tx *db.Tx) error { return s.Merged(tx, r, d, m) })
	}
	if ctx.Err() != nil {
		return due.Again(ctx.Err()) // a node takes the order again
	}
	s.Logger.WarnContext(ctx, "merge", slog.String("pr", pr.ID), slog.Any("error", mergeErr))
	return s.failed(d, int64(j.Tries), mergeErr)
}

// failed is what comes of an order that the host did not carry out.
func (s *Merger) failed(d record.DueRow, tries int64, mergeErr error) due.Outcome {
	wait := func(after time.Duration, why string, and func(*db.Tx) error) due.Outcome {
		return s.uncalled(d, after, func(tx *db.Tx) error {
			_, err := record.Postpone.Exec(tx, record.PostponeArgs{ID: d.ID, Error: why, RetryAt: db.Micros(tx.Now.Add(after))})
			if err == nil && and != nil {
				err = and(tx)
			}
			return err
		})
	}
	if busy, is := errors.AsType[*codehost.BusyError](mergeErr); is {
		why := record.Unanswered
		if busy.Limit {
			why = record.Limited
		}
		return wait(min(max(busy.After, time.Second), LongestWait), why, nil)
	}
	if forbidden, is := errors.AsType[*codehost.ForbiddenError](mergeErr); is && forbidden.Asked { // see RetryNow
		return wait(LongestWait, record.UngrantedWords+forbidden.Permission+".", func(tx *db.Tx) error {
			pr, err := record.ByID.One(tx, tx.Account, d.PRID)
			if err != nil {
				return err
			}
			return Ungranted.Send(tx, Refusal{pr.RepoID, forbidden.Permission})
		})
	}
	if errors.Is(mergeErr, codehost.ErrBaseMoved) {
		return s.waits(d, 0)
	}
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		pr, ok, err := record.Lock(tx, d.PRID)
		if err != nil || !ok {
			return due.Done(nil), err
		}
		a, open, err := record.OpenAction.Maybe(tx, pr.ID)
		if err != nil || !open || a.ID != d.ID || a.HeadSHA != d.HeadSHA {
			return due.Done(nil), err // the transaction that took the order back did the rest
		}
		if again, err := s.notMerged(tx, d, tries, pr, mergeErr); err != nil || !again {
			return due.Done(nil), err
		}
		return due.Again(errors.New(whyNot(mergeErr))), nil
	})
}

// Refusal is a merge that waits for a permission which the owner of its repository has yet to
// grant, as the host calls it.
type Refusal struct{ RepoID, Permission string }

// Ungranted is sent each time that a merge is refused for such a permission.
var Ungranted = event.DeclareSignal[Refusal]("pull.ungranted", "A merge waits for a permission that is yet to be granted.")

// RetryNow makes the merges due that wait in repositories of tx.Account for their next try:
// their owner has granted more. Those that wait for a limit of the host wait on.
func (s *Merger) RetryNow(tx *db.Tx, repoIDs []string) error {
	for _, repoID := range repoIDs {
		ids, err := record.RefusedOrders.All(tx, repoID, record.Limited)
		if err != nil {
			return err
		}
		for _, actionID := range ids {
			s.orders.Hurry(tx, actionID)
		}
	}
	return nil
}

// mergeAt merges a head. A host that keeps pull requests merges it itself: its rules
// count, besides those of the policy.
func (s *Merger) mergeAt(ctx context.Context, host codehost.Host, r repo.Ref, pr *record.Pull, o codehost.MergeOptions) (string, error) {
	if !s.Kept(r) {
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

// Merged records that an order was carried out, and has the branch deleted if the policy says
// so. A branch that was merged otherwise is kept for whoever looks into it.
func (s *Merger) Merged(tx *db.Tx, r repo.Ref, d record.DueRow, m record.Made) error {
	pr, recorded, err := s.applied(tx, d, m)
	if err != nil || !recorded || m.Otherwise != "" || !r.Policy.Merge.DeleteBranch || pr.AuthorKind != record.ByAgent {
		return err
	}
	return s.DropBranch(tx, r, pr.ID, pr.HeadRef, d.HeadSHA)
}

// applied records the merge of an order; false if it is recorded already. It reads the pull
// request again, because the head may have moved.
func (s *Merger) applied(tx *db.Tx, d record.DueRow, m record.Made) (pr *record.Pull, recorded bool, err error) {
	pr, _, err = record.Lock(tx, d.PRID)
	if err != nil {
		return pr, false, err
	}
	checks := record.ChecksNone
	if _, checked, err := s.Checks.Of(tx, pr.ID, d.HeadSHA); err != nil {
		return pr, false, err
	} else if checked {
		checks = record.ChecksPassed
	}
	if pr.State != record.Open { // a push, or the host, has told of the merge before
		return pr, false, nil
	}
	if pr.HeadSHA != d.HeadSHA { // the head that was merged is kept, although a newer one has come
		pr.HeadSHA, pr.Checks = d.HeadSHA, checks
	}
	pr.EndMerged(m, d.DecidedBy, tx.Now)
	if err := record.Save(tx, pr); err != nil {
		return pr, false, err
	}
	if err := s.Queue.Merged(tx, pr.ID, d.ID, m.SHA); err != nil {
		return pr, false, err
	}
	if _, err := record.CarriedOut.Exec(tx, d.ID); err != nil {
		return pr, false, err
	}
	// There may be a question about a newer head.
	if err := s.EndQuestions(tx, pr); err != nil {
		return pr, false, err
	}
	if err := s.announceMerge(tx, pr, d.HeadSHA, m.SHA, d.DecidedBy); err != nil || m.Otherwise == "" {
		return pr, true, err
	}
	return pr, true, s.alarm(tx, pr, d.HeadSHA, m)
}

// notMerged records why the host did not carry out an order. The merge is tried again,
// an agent repairs the head, or a person decides. again tells that the order stands.
func (s *Merger) notMerged(tx *db.Tx, d record.DueRow, tries int64, pr *record.Pull, mergeErr error) (again bool, err error) {
	moved := errors.Is(mergeErr, codehost.ErrHeadMoved) || errors.Is(mergeErr, codehost.ErrNotFound)
	conflict := errors.Is(mergeErr, codehost.ErrConflict)
	why := whyNot(mergeErr)
	if !moved && !conflict && tries < MaxTries {
		at := db.Micros(tx.Now.Add(Retries.After(int(tries))))
		_, err := record.Postpone.Exec(tx, record.PostponeArgs{ID: d.ID, Error: why, RetryAt: at, Told: true})
		return true, err
	}
	state, reason := record.ActionFailed, "host_failed"
	switch {
	case moved:
		state = record.ActionStale
	case conflict:
		reason = "merge_conflict"
		pr.Mergeable = "conflict"
		if err := record.Save(tx, pr); err != nil {
			return false, err
		}
	}
	if n, err := record.EndAction.Exec(tx, d.ID, state, why); err != nil || n == 0 {
		return false, err // the transaction that moved the head did the rest
	}
	if conflict {
		if _, err := record.SetToMend.Exec(tx, d.ID); err != nil {
			return false, err
		}
	}
	if moved {
		err = record.StaleEvent.Record(tx, event.Subject{ID: d.ID, RepoID: pr.RepoID}, record.QuestionData{HeadSHA: d.HeadSHA, PRID: pr.ID})
	} else {
		err = record.MergeFailedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, record.MergeFailedData{Reason: reason})
	}
	if err != nil {
		return false, err
	}
	if !conflict {
		// A push was not reported yet, or the answer to a merge that was made got lost: the
		// loop asks the host.
		pr.FactsWant++
		if err := record.Save(tx, pr); err != nil {
			return false, err
		}
		s.Hub.Notify(tx, event.PullTopic)
	}
	return false, s.Pulls.Move(tx, pr)
}

// whyNot is the reason why a merge was not made, for people. An error that is no fault
// appears in the log only.
func whyNot(err error) string {
	if blocked, ok := errors.AsType[*codehost.BlockedError](err); ok {
		return "A rule of the code host is not met: " + record.Enumerate(blocked.Missing, 0) + "."
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Detail
	}
	return "The code host did not carry out the merge; the log of the server says why."
}
