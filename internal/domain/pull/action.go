package pull

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
)

// Limits of what agents ask for, in bytes.
const (
	maxLabel = 50
	MaxWhy   = 500
)

// Wish is something that an agent asks a person to do to a pull request.
type Wish struct {
	PRID, Kind, Label, Why string
}

// Wish asks a person for what an agent of tx.Account wishes. It fails with faults that
// name the field, and with the reasons wrong_state and asked_already.
func (s *Service) Wish(tx *db.Tx, w Wish) error {
	w.Why = strings.Join(strings.Fields(w.Why), " ")
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	switch {
	case !slices.Contains([]string{record.KindClose, record.KindReopen, record.KindLabel}, w.Kind):
		return fault.Field("kind", "must be close, reopen or label")
	case w.Kind == record.KindLabel && (strings.TrimSpace(w.Label) == "" || len(w.Label) > maxLabel ||
		strings.ContainsFunc(w.Label, hidden)):
		return fault.Field("label", "must have 1 to 50 bytes that can be shown")
	case w.Kind != record.KindLabel && w.Label != "":
		return fault.Field("label", "is for the kind label alone")
	case w.Why == "" || len(w.Why) > MaxWhy || strings.ContainsFunc(w.Why, hidden):
		return fault.Field("why", "must have 1 to 500 bytes that can be shown")
	}
	pr, ok, err := record.Lock(tx, w.PRID)
	switch {
	case err != nil:
		return err
	case !ok:
		return fault.Missing("pull request")
	case pr.State != record.StateFor(w.Kind) || pr.ClosedWhy == record.ClosedCancelled || pr.AbandonedAt != nil:
		return fault.Reason("wrong_state", "The pull request is "+pr.State+".")
	case w.Kind == record.KindLabel && slices.Contains(pr.Labels.V, w.Label):
		return fault.Reason("wrong_state", "The pull request has the label already.")
	}
	asked, err := s.ask(tx, pr, w.Kind, record.Details{Label: w.Label, Why: w.Why})
	if err == nil && !asked {
		err = fault.Reason("asked_already", "A person is asked that already.")
	}
	return err
}

// ask puts a question that is not about a merge; false if it is open already.
func (s *Service) ask(tx *db.Tx, pr *record.Pull, kind string, d record.Details) (bool, error) {
	actionID := id.New()
	n, err := record.InsertAction.Exec(tx, record.InsertActionArgs{
		ID: actionID, AccountID: tx.Account, PRID: pr.ID, Kind: kind, HeadSHA: pr.HeadSHA, State: record.ActionPending,
		RequestedAt: tx.Micros(),
		ExpiresAt:   db.Micros(tx.Now.Add(record.AskFor)), Details: db.JSON[record.Details]{V: d},
	})
	if err != nil || n == 0 {
		return false, err
	}
	s.Hub.Notify(tx, event.PullTopic)
	data := record.AskedData{HeadSHA: pr.HeadSHA, Kind: kind, PRID: pr.ID}
	return true, record.AskedEvent.Record(tx, event.Subject{ID: actionID, RepoID: pr.RepoID}, data)
}

// otherOf finds the open question of a decision if that is not about a merge: the one that
// is named, or the only one.
func (s *Service) otherOf(tx *db.Tx, in decideIn) (record.Action, bool, error) {
	if !id.Valid(in.ID) {
		return record.Action{}, false, nil
	}
	open, err := record.OpenOthers.All(tx, tx.Account, in.ID)
	if err != nil || len(open) == 0 {
		return record.Action{}, false, err
	}
	if in.ActionID != "" {
		i := slices.IndexFunc(open, func(a record.Action) bool { return a.ID == in.ActionID })
		if i < 0 {
			return record.Action{}, false, nil
		}
		return open[i], true, nil
	}
	if _, merge, err := record.OpenAction.Maybe(tx, in.ID); err != nil || merge || len(open) > 1 {
		return record.Action{}, false, err
	}
	return open[0], true, nil
}

// decideOther answers a question that is not about a merge. It fails as decide does.
func (s *Service) decideOther(tx *db.Tx, in decideIn, a record.Action, state string) (record.Action, error) {
	pr, ok, err := record.Lock(tx, in.ID)
	switch {
	case err != nil:
		return a, err
	case !ok:
		return a, fault.Missing("pull request")
	case pr.HeadSHA != in.HeadSHA:
		return a, movedTo(pr.HeadSHA)
	}
	a, ok, err = record.OtherByID.Maybe(tx, tx.Account, a.ID)
	switch {
	case err != nil:
		return a, err
	case !ok || a.State != record.ActionPending || a.HeadSHA != pr.HeadSHA || !tx.Now.Before(a.ExpiresAt):
		return a, fault.Reason("no_pending_action", "Nothing on this head waits for a decision.")
	case pr.State != record.StateFor(a.Kind):
		return a, fault.Reason("pr_not_open", "The pull request is "+pr.State+".")
	}
	if state == record.ActionApproved && in.ActionID != a.ID { // the person may have read a question about a merge
		return a, fault.Reason("question_changed", "A yes to what an agent asks for names the question in action_id: read it first.").
			With("action_id", a.ID).With("question", a.Asked())
	}
	label := by(tx)
	if _, err := record.DecideAction.Exec(tx, record.DecideActionArgs{ID: a.ID, State: state, DecidedBy: label,
		DecidedAt: tx.Micros()}); err != nil {
		return a, err
	}
	a.State, a.DecidedBy, a.DecidedAt = state, &label, &tx.Now
	s.Hub.Notify(tx, event.PullTopic)
	about := event.Subject{ID: a.ID, RepoID: pr.RepoID}
	if state == record.ActionApproved {
		if err := record.ApprovedEvent.Record(tx, about, record.ApprovedData{HeadSHA: a.HeadSHA, Kind: a.Kind, PRID: pr.ID}); err != nil {
			return a, err
		}
		if _, err := s.carryOutOther(tx, pr, a); err != nil {
			return a, err
		}
		return a, s.Move(tx, pr)
	}
	if err := record.SkippedEvent.Record(tx, about, record.QuestionData{HeadSHA: a.HeadSHA, PRID: pr.ID}); err != nil {
		return a, err
	}
	if a.Kind == record.KindPush {
		if err := s.notPushed(tx, pr); err != nil {
			return a, err
		}
	}
	return a, s.Move(tx, pr)
}

// notPushed ends the rounds of a pull request whose work a person did not want, or did not
// Look at in time.
func (s *Service) notPushed(tx *db.Tx, pr *record.Pull) error {
	if pr.State != record.Open || pr.Repairing() || pr.Unwatched() {
		return nil
	}
	pr.EndRound(record.BabysitSpent)
	return record.Save(tx, pr)
}

// carryOutOther has an action carried out that a person has said yes to. A host that keeps
// no pull requests is not called: the row is changed then.
func (s *Service) carryOutOther(tx *db.Tx, pr *record.Pull, a record.Action) (record.Action, error) {
	r, _, err := repo.ByID(tx, pr.RepoID)
	if err != nil {
		return a, err
	}
	_, err = actAtHost.Put(tx, intent.Want[actArgs]{Repo: r, Object: pr.ID, Rank: intent.ForPeople, Args: actArgs{
		ActionID: a.ID, Kind: a.Kind, Number: pr.Number, Label: a.Details.V.Label, Branch: pr.HeadRef, HeadSHA: pr.HeadSHA,
		SHA: a.Details.V.SHA,
	}})
	return a, err
}

// acted records that an action was carried out, and what follows from that.
func (s *Service) acted(tx *db.Tx, r repo.Ref, pr *record.Pull, a record.Action) error {
	if _, err := record.CarriedOut.Exec(tx, a.ID); err != nil {
		return err
	}
	if err := record.ActedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID},
		record.ActionData{ActionID: a.ID, Kind: a.Kind}); err != nil {
		return err
	}
	who := "system"
	if a.DecidedBy != nil {
		who = *a.DecidedBy
	}
	switch a.Kind {
	case record.KindClose:
		if pr.State == record.Open {
			return s.close(tx, pr, record.ClosedAsked, who)
		}
	case record.KindReopen:
		if pr.State == record.Closed {
			return s.reopenRow(tx, r, pr, pr.HeadSHA, who)
		}
	case record.KindLabel:
		if !slices.Contains(pr.Labels.V, a.Details.V.Label) {
			pr.Labels.V = append(slices.Clone(pr.Labels.V), a.Details.V.Label)
			if err := record.Save(tx, pr); err != nil {
				return err
			}
		}
		if pr.State == record.Open {
			return s.rewatch(tx, r, pr)
		}
	case record.KindPush:
		if pr.State == record.Open && pr.HeadSHA != a.Details.V.SHA {
			pr.PushedBy = &who
			return s.moveHead(tx, r, pr, a.Details.V.SHA)
		}
	}
	return nil
}

// RoundPushed takes the work that a round has pushed to a branch of its own: a person is
// asked before it gets to the branch of the pull request. It is false for a round that has
// pushed to that branch itself.
func (s *Service) RoundPushed(tx *db.Tx, prID, taskID, branch, sha string) (bool, error) {
	pr, ok, err := record.Lock(tx, prID)
	if err != nil || !ok || branch == pr.HeadRef {
		return ok && branch != pr.HeadRef, err
	}
	d := record.Details{Branch: branch, SHA: sha}
	if pr.State != record.Open || pr.BabysitTask == nil || *pr.BabysitTask != taskID || pr.HeadSHA != pr.RoundSHA || pr.AbandonedAt != nil {
		_, err := record.InsertAction.Exec(tx, record.InsertActionArgs{ // nobody is asked: it only has the branch removed
			ID: id.New(), AccountID: tx.Account, PRID: pr.ID, Kind: record.KindPush, HeadSHA: pr.RoundSHA, State: record.ActionStale,
			RequestedAt: tx.Micros(), DecidedAt: &tx.Now, ExpiresAt: tx.Micros(), Details: db.JSON[record.Details]{V: d},
		})
		return true, err
	}
	if _, err := s.ask(tx, pr, record.KindPush, d); err != nil {
		return true, err
	}
	return true, s.Move(tx, pr)
}

// actAtHost carries out what a person has said yes to.
var actAtHost = intent.Declare[actArgs, string]("pull.action", false)

type actArgs struct {
	ActionID, Kind, Label, Branch, HeadSHA, SHA string
	Number                                      int64
}

// actor carries out pull.action.
type actor struct{ s *Service }

// Still implements intent.Handler.
func (actor) Still(tx *db.Tx, c intent.Call[actArgs]) (bool, error) {
	a, ok, err := record.OtherByID.Maybe(tx, tx.Account, c.Args.ActionID)
	return ok && a.State == record.ActionApproved && c.Repo.Enabled, err
}

// Do implements intent.Handler.
func (h actor) Do(ctx context.Context, f codehost.Forge, c intent.Call[actArgs]) (string, error) {
	at, edit := c.Repo.HostRepo(), codehost.PullEdit{}
	if c.Args.Kind != record.KindPush && !f.Can(codehost.KeepPulls) {
		return "", nil // the row is all there is, and Done changes it
	}
	switch c.Args.Kind {
	case record.KindClose:
		edit.Open = new(false)
	case record.KindReopen:
		edit.Open = new(true)
	case record.KindLabel:
		edit.AddLabels = []string{c.Args.Label}
	case record.KindPush:
		host, err := h.s.Hosts.Of(at)
		if err != nil {
			return "", err
		}
		mover, able := host.(codehost.Mover)
		if !able {
			return "", codehost.ErrCannot
		}
		return "", mover.MoveBranch(ctx, at, c.Args.Branch, c.Args.HeadSHA, c.Args.SHA)
	}
	_, err := f.EditPull(ctx, at, c.ID, c.Args.Number, edit)
	return "", err
}

// Done implements intent.Handler. What a person has taken back meanwhile, or a newer head,
// is stale; a failure is told.
func (h actor) Done(tx *db.Tx, c intent.Call[actArgs], _ string, failure error) error {
	pr, ok, err := record.Lock(tx, c.Object)
	if err != nil || !ok {
		return err
	}
	a, ok, err := record.OtherByID.Maybe(tx, tx.Account, c.Args.ActionID)
	if err != nil || !ok {
		return err
	}
	if failure == nil {
		return h.s.acted(tx, c.Repo, pr, a)
	}
	state, why := record.ActionFailed, "The code host did not carry it out."
	if f, is := errors.AsType[*fault.Error](failure); is {
		why = f.Detail
	}
	if errors.Is(failure, codehost.ErrHeadMoved) || errors.Is(failure, codehost.ErrNotFound) {
		state, why = record.ActionStale, "The branch has a newer head, or is gone."
	}
	if n, err := record.EndAction.Exec(tx, a.ID, state, why); err != nil || n == 0 {
		return err
	}
	h.s.Hub.Notify(tx, event.PullTopic)
	about := event.Subject{ID: pr.ID, RepoID: pr.RepoID}
	if err := record.NotActedEvent.Record(tx, about, record.ActionData{ActionID: a.ID, Error: why, Kind: a.Kind}); err != nil {
		return err
	}
	if a.Kind == record.KindPush {
		if err := h.s.notPushed(tx, pr); err != nil {
			return err
		}
	}
	return h.s.Move(tx, pr)
}

// tidy has the branch of a round deleted that is not needed any more.
func (s *Service) tidy(ctx context.Context, d record.UntidyRow) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if n, err := record.SetTidied.Exec(tx, d.ID); err != nil || n == 0 {
			return err
		}
		r, _, err := repo.ByID(tx, d.RepoID)
		if err != nil {
			return err
		}
		return s.DropBranch(tx, r, d.PRID, d.Details.V.Branch, d.Details.V.SHA)
	})
}
