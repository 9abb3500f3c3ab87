package pull

import (
	"fmt"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/babysit"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/event"
)

// Whatever changes a pull request does three things: it locks the row, changes facts, and
// calls move. What happens next is decided by the table of package moves alone.

// mostMoves limits the steps of one move. The table has no circle of steps without a change
// from outside, so that no pull request comes near it.
const mostMoves = 12

// Move takes the next steps of a locked pull request, until something outside of the
// transaction is to happen. It says then what is waited for, and leaves the row as it is by then.
func (s *Service) Move(tx *db.Tx, pr *record.Pull) error {
	for range mostMoves {
		looked, ok, err := s.Look(tx, pr)
		if err != nil || !ok {
			return err
		}
		m := moving{looked}
		if again, err := s.step(tx, &m); err != nil || again {
			if err != nil {
				return err
			}
			continue
		}
		return s.rest(tx, m)
	}
	return fmt.Errorf("the steps of pull request %s do not end", pr.ID)
}

// moving is a pull request that moves.
type moving struct{ facts.Moving }

// step takes a step that needs nothing but the database; again tells that facts have
// changed by it. The other steps are for the passes of Loop. A round for which the queue of the
// account has no room is waited for.
func (s *Service) step(tx *db.Tx, m *moving) (again bool, err error) {
	switch m.Step.Do {
	case moves.DoTakeOver:
		return true, s.TakeOver(tx, m.Pull)
	case moves.DoAsk:
		return s.AskMerge(tx, m.Pull)
	case moves.DoStopWork:
		return true, babysit.StopWork(tx, m.Pull)
	case moves.DoRepair:
		again, full, err := s.Attend(tx, m.Repo, m.Pull, m.Step.Of)
		if full {
			m.Facts.Seat = moves.SeatFull
			m.Step = facts.Next(m.Facts, facts.Rules(m.Repo))
		}
		return again, err
	case moves.DoClose:
		if m.Step.Of == moves.Cancelled {
			return true, s.close(tx, m.Pull, record.ClosedCancelled, by(tx))
		}
	case moves.DoLook:
		s.Hub.Notify(tx, event.PullTopic)
	}
	if facts.Ordered(m.Step) {
		return false, s.OrderGoesOn(tx, m.Moving)
	}
	return false, nil
}

// task is what the task of a pull request is told of a step; "": nothing new.
func (m moving) task() string {
	switch {
	case m.Step.Do == moves.DoDone:
		return ""
	case facts.Ordered(m.Step):
		return record.ToldMergeable
	case m.Step.Do == moves.DoPerson && slices.Contains([]string{moves.NeedRearm, moves.NeedRetry, moves.NeedHands}, m.Step.Of):
		return record.ToldStuck
	case m.Step.Do == moves.DoPerson && record.Passed(m.Checks) && m.ChecksHold == "":
		return record.ToldAwaitsReview
	}
	return m.unordered()
}

// unordered is what the task of a pull request is told whose merge is not ordered.
func (m moving) unordered() string {
	if m.Mergeable == "conflict" || !record.Passed(m.Checks) || m.ChecksHold != "" {
		return record.ToldAwaits
	}
	return record.ToldAwaitsReview
}

// rest says what a pull request waits for: the reason why a person is needed, when the
// clock moves it on, and what its task, and people, are told of that.
func (s *Service) rest(tx *db.Tx, m moving) error {
	looks := m.Step.Do == moves.DoLook
	if looks { // until git has answered, nothing new is said to be in its way
		m.Facts.Known = moves.Read
		m.Step = facts.Next(m.Facts, facts.Rules(m.Repo))
	}
	needs, told, at := "", m.task(), int64(0)
	full := m.Step == moves.Step{Do: moves.DoWait, Of: moves.ForSeat}
	if m.Step.Do == moves.DoPerson {
		needs = m.Step.Of
	}
	if looks && told == record.ToldMergeable {
		if _, ordered, err := record.OpenAction.Maybe(tx, m.ID); err != nil {
			return err
		} else if !ordered {
			told = m.unordered()
		}
	}
	switch {
	case looks: // the pass that reads moves it
	case m.Step == moves.Step{Do: moves.DoWait, Of: moves.ForRest}:
		at = m.AttendAt
	case m.Step.Do == moves.DoRepair:
		at = max(m.AttendAt, tx.Micros()) // each pass tries again
	case full:
		at = db.Micros(tx.Now.Add(sweep))
	}
	if told == "" {
		told = m.Told
	}
	if needs == m.Needs && told == m.Told && at == m.MoveAt && full == (m.SeatSince != nil) {
		return nil
	}
	neededBefore, toldBefore := m.Needs, m.Told
	m.Rests(needs, full, tx.Now)
	m.Told, m.MoveAt = told, at
	if err := record.Save(tx, m.Pull); err != nil {
		return err
	}
	if err := s.help(tx, m, neededBefore, needs); err != nil {
		return err
	}
	if told == toldBefore && !(told == record.ToldStuck && needs != neededBefore) || m.TaskID == nil {
		return nil
	}
	p := record.Progress{TaskID: *m.TaskID, PRID: m.ID}
	switch told {
	case record.ToldAwaits:
		return record.TaskAwaits.Send(tx, p)
	case record.ToldAwaitsReview:
		return record.TaskAwaitsReview.Send(tx, p)
	case record.ToldMergeable:
		return record.TaskMergeable.Send(tx, p)
	}
	if toldBefore == record.ToldMergeable {
		signal := record.TaskAwaits
		if m.unordered() == record.ToldAwaitsReview {
			signal = record.TaskAwaitsReview
		}
		if err := signal.Send(tx, p); err != nil {
			return err
		}
	}
	f := m.failing()
	p.FailureKind, p.Why = f.kind, f.why
	return record.TaskStuck.Send(tx, p)
}
