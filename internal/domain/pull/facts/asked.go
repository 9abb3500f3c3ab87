package facts

import (
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// askedFacts are those about the question, and the order, to merge the head.
// dropped is the task below whose work was dropped; "": none was.
func (s *Reader) askedFacts(tx *db.Tx, at repo.Ref, pr *record.Pull, dropped string, f *moves.Facts) error {
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
func (s *Reader) placeFacts(tx *db.Tx, at repo.Ref, pr *record.Pull, f *moves.Facts) error {
	f.Turn = moves.TurnFree
	if f.Act.Is(moves.ActFailed) {
		return nil // it has left the queue
	}
	places, err := s.queue.Places(tx, []string{pr.ID})
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
