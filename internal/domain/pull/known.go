package pull

import (
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// rulesOf are the rules of a repository for its pull requests.
func rulesOf(r repo.Ref) moves.Rules {
	out := moves.Rules{Mode: moves.ModeAsk, Reviewer: moves.ReviewUnasked, OnCancel: moves.CancelCloses, Pushes: moves.PushesAsk}
	switch r.Policy.Merge.Mode {
	case "auto":
		out.Mode = moves.ModeAuto
	case "never":
		out.Mode = moves.ModeNever
	}
	if r.Policy.Review.Mode == "auto" {
		out.Reviewer = moves.ReviewAuto
	}
	if r.Policy.Merge.OnCancel == "keep" {
		out.OnCancel = moves.CancelKeeps
	}
	switch r.Policy.Pulls.Push {
	case "auto":
		out.Pushes = moves.PushesAuto
	case "never":
		out.Pushes = moves.PushesNever
	}
	return out
}

// factsOf reads all that the next step of a pull request depends on. It is the one place
// that knows where each fact is stored.
func (s *Service) factsOf(tx *db.Tx, r repo.Ref, pr *record.Pull) (f moves.Facts, err error) {
	pr.PlainFacts(r, &f)
	switch {
	case pr.FactsHave < pr.FactsWant:
		f.Known = moves.Unread
	case pr.Mergeable == "unknown":
		f.Known = moves.NoBase
	}
	pr.ReviewFacts(r, &f)
	pr.RoundFacts(tx, &f)
	below, dropped, err := s.below(tx, pr)
	if err != nil {
		return f, err
	}
	if f.Under = moves.NoneBelow; below != "" && !dropped {
		f.Under = moves.UnmergedBelow
	}
	if !dropped {
		below = ""
	}
	if err := s.askedFacts(tx, r, pr, below, &f); err != nil {
		return f, err
	}
	if err := pr.OtherFacts(tx, &f); err != nil {
		return f, err
	}
	if pr.Unreadable && f.Known.Is(moves.Unread) {
		f.Host = moves.HostRefuses
	}
	return f, s.placeFacts(tx, r, pr, &f)
}

// below is the task on whose work the head of a pull request was begun, while that is not
// merged; "": there is none. Dropped tells that it never will be.
func (s *Service) below(tx *db.Tx, pr *record.Pull) (on string, dropped bool, err error) {
	if pr.TaskID == nil {
		return "", false, nil
	}
	if on, dropped, err = s.Tasks.Unmerged(tx, *pr.TaskID); err != nil || !dropped {
		return on, false, err
	}
	// A person may have merged the work of a task that was cancelled.
	if _, merged, err := record.MergedOfTask.Maybe(tx, tx.Account, on); err != nil || merged {
		return "", false, err
	}
	return on, true, nil
}

// askedFacts are those about the question, and the order, to merge the head.
// dropped is the task below whose work was dropped; "": none was.
func (s *Service) askedFacts(tx *db.Tx, at repo.Ref, pr *record.Pull, dropped string, f *moves.Facts) error {
	f.Names, f.Question, f.Refused, f.Carry = moves.NamesNothing, moves.NoQuestion, moves.NeverRefused, moves.NoCarry
	f.Yes, f.Act, f.Host = moves.NoYes, moves.NoAct, moves.HostAnswers
	a, ok, err := record.LastAsked.Maybe(tx, pr.ID, pr.HeadSHA)
	if err != nil {
		return err
	}
	if dropped != "" || ok && a.Protected != nil {
		f.Names = moves.NamesSomething
	}
	byPerson := a.DecidedBy != nil && *a.DecidedBy != record.ByPolicy
	switch {
	case !ok:
		_, agreed, err := record.Standing.Maybe(tx, pr.ID, pr.HeadSHA)
		if err != nil {
			return err
		}
		if agreed {
			f.Yes = moves.YesFirm
		}
	case a.State == record.ActionPending:
		f.Question = moves.Asked
	case a.State == record.ActionSkipped:
		f.Question = moves.Declined
	case a.State == record.ActionExpired:
		f.Question = moves.Expired
	case a.State == record.ActionFailed && a.StaleWhy != record.ToMend && pr.AbandonedAt == nil:
		f.Act = moves.ActFailed
		if byPerson {
			f.Yes = moves.YesFirm
		}
	case a.State == record.ActionApproved:
		if byPerson {
			f.Yes = moves.YesFirm
		}
		if a.Called {
			f.Act = moves.ActCalled
		} else if byPerson && a.DecidedAt != nil && tx.Now.Before(a.DecidedAt.Add(time.Duration(at.Policy.Merge.Grace)*time.Second)) {
			f.Yes = moves.YesFresh
		}
		f.Host = hostOf(a)
	}
	if dropped != "" && a.Details.V.Dropped != dropped { // what was asked, or ordered, does not name it
		if f.Question.Is(moves.Asked) {
			f.Question = moves.Narrow
		}
		if f.Yes.Is(moves.YesFirm, moves.YesFresh) {
			f.Yes = moves.YesNarrow
		}
	}
	no, err := record.Refused.One(tx, pr.ID)
	if err != nil {
		return err
	}
	if no {
		f.Refused = moves.WasRefused
	}
	return pr.CarryFacts(tx, f)
}

// hostOf reads how the host took the last call of an order from the words about that.
func hostOf(a record.Action) moves.Host {
	switch {
	case a.Error == nil:
	case *a.Error == record.Limited || *a.Error == record.Unanswered:
		return moves.HostBusy
	case strings.HasPrefix(*a.Error, record.UngrantedWords):
		return moves.HostRefuses
	}
	return moves.HostAnswers
}

// placeFacts are those about the place of a head in a merge queue.
func (s *Service) placeFacts(tx *db.Tx, at repo.Ref, pr *record.Pull, f *moves.Facts) error {
	f.Turn = moves.TurnFree
	if f.Act.Is(moves.ActFailed) {
		return nil // it has left the queue
	}
	places, err := s.Queue.Places(tx, []string{pr.ID})
	if err != nil {
		return err
	}
	switch place, in := places[pr.ID]; {
	case in && place.State != "going":
		f.Turn, f.Act = moves.TurnWaiting, moves.NoAct
	case !in && at.Policy.Merge.Queue == "batch" && f.Act.Is(moves.NoAct):
		f.Turn = moves.TurnOut
	}
	return nil
}
