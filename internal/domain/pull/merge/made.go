package merge

import (
	"context"
	"fmt"
	"log/slog"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/pull/trial"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

// compared compares the commit of a merge with the merge that was tried. If the base was
// elsewhere, or the merge was made before, the merge is tried again at the commit of the base
// that it was made at. What cannot be read is logged, and no difference.
func (s *Merger) compared(ctx context.Context, r repo.Ref, a record.Attempt, t trial.Trial, sha string) record.Made {
	otherwise, err := s.Otherwise(ctx, r, a, t, sha)
	if err != nil && ctx.Err() == nil {
		observe.Complain(ctx, s.Logger, "compare the merge "+sha+" with the one that was tried", err)
	}
	return record.Made{SHA: sha, Otherwise: otherwise}
}

// alarm tells that the merge of a pull request is not the one that was tried.
func (s *Merger) alarm(tx *db.Tx, pr *record.Pull, headSHA string, m record.Made) error {
	s.Logger.WarnContext(tx.Context(), "a merge is not the one that was tried", slog.String("pr", pr.ID), slog.String("merge", m.SHA))
	data := record.OtherwiseData{HeadSHA: headSHA, MergeSHA: m.SHA, PRID: pr.ID, Why: m.Otherwise}
	if err := record.OtherwiseEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, data); err != nil {
		return err
	}
	return record.RoundsSpent.Send(tx, record.Trouble{
		PRID: pr.ID, RepoID: pr.RepoID, TaskID: pr.TaskID, URL: pr.Address(s.BaseURL), Category: "merged_otherwise", Reason: m.Otherwise,
		Title: fmt.Sprintf("The merge of pull request #%d is not what was approved", pr.Number),
		Body:  fmt.Sprintf("%s\n%s\n\n%s", pr.Title, pr.Address(s.BaseURL), m.Otherwise),
	})
}

// CompareQueued compares a merge that the queue of a host has made of an order.
func (s *Merger) CompareQueued(ctx context.Context, r repo.Ref, p codehost.Pull) error {
	var pr record.Pull
	ordered := false
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		prID, ok, err := record.ByNumber.Maybe(tx, tx.Account, r.ID, p.Number)
		if err != nil || !ok {
			return err
		}
		if pr, err = record.ByID.One(tx, tx.Account, prID); err == nil {
			ordered, err = record.CarriedOutAt.One(tx, prID, pr.HeadSHA)
		}
		return err
	})
	if err != nil || !ordered || pr.State != record.Merged || pr.MergeSHA == nil || pr.Otherwise != "" {
		return err
	}
	m := s.compared(ctx, r, pr.Attempt(pr.HeadSHA), trial.Trial{Done: true}, *pr.MergeSHA)
	if m.Otherwise == "" {
		return nil
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, pr.ID)
		if err != nil || !ok || pr.Otherwise != "" { // told once
			return err
		}
		pr.Otherwise = m.Otherwise
		if err := record.Save(tx, pr); err != nil {
			return err
		}
		return s.alarm(tx, pr, pr.HeadSHA, m)
	})
}

// MergedByHand records that a push brought the head of a pull request into its
// base.
func (s *Merger) MergedByHand(tx *db.Tx, pr *record.Pull, mergeSHA, by string) error {
	if pr.State != record.Open { // the answer to our own merge has told of it before
		return nil
	}
	pr.EndMerged(record.Made{SHA: mergeSHA}, &by, tx.Now)
	if err := record.Save(tx, pr); err != nil {
		return err
	}
	if err := s.EndQuestions(tx, pr); err != nil {
		return err
	}
	return s.announceMerge(tx, pr, pr.HeadSHA, mergeSHA, &by)
}

// announceMerge records the event of a merge, and moves on the task of the pull request
// and the work that was begun on top of it. by is the label of the actor who merged.
func (s *Merger) announceMerge(tx *db.Tx, pr *record.Pull, headSHA, mergeSHA string, by *string) error {
	var plan *string
	if pr.TaskID != nil {
		var err error
		if plan, _, err = record.PlanOf.Maybe(tx, tx.Account, *pr.TaskID); err != nil {
			return err
		}
	}
	err := record.MergedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID}, record.MergedData{
		HeadSHA: headSHA, MergeSHA: mergeSHA, MergedAt: tx.Now.UTC(), MergedBy: by, Number: pr.Number, PlanID: plan, PRID: pr.ID,
		Repo: pr.Owner + "/" + pr.Name, TaskID: pr.TaskID, URL: record.PageAt(s.BaseURL, pr.ID),
	})
	if err != nil {
		return err
	}
	if _, err := record.LookAtAll.Exec(tx, record.LookAtAllArgs{RepoID: pr.RepoID, BaseRef: pr.BaseRef, PushedBy: by}); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	if err := record.SeenTo.Send(tx, record.Note{PRID: pr.ID, Text: "The pull request was merged."}); err != nil || pr.TaskID == nil {
		return err
	}
	above, err := record.OrdersAbove.All(tx, *pr.TaskID)
	if err != nil {
		return err
	}
	for _, actionID := range above {
		s.orders.Hurry(tx, actionID)
	}
	if err := s.BelowMoved(tx, *pr.TaskID); err != nil {
		return err
	}
	return record.TaskMerged.Send(tx, record.Progress{TaskID: *pr.TaskID, PRID: pr.ID})
}

// BelowMoved has the next pass move those pull requests on whose work was begun on that of a
// task of tx.Account.
func (s *Merger) BelowMoved(tx *db.Tx, taskID string) error {
	n, err := record.MoveAbove.Exec(tx, taskID)
	if n > 0 {
		s.Hub.Notify(tx, event.PullTopic)
	}
	return err
}
