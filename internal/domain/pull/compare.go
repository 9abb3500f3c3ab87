package pull

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
)

// Difference is a pull request that was not moved on after its facts have changed, or whose
// facts cannot occur together.
type Difference struct {
	PRID, Needs string
	Step        moves.Step
	Facts       moves.Facts
	Cannot      bool // the facts cannot occur together
}

func (d Difference) String() string {
	if d.Cannot {
		return fmt.Sprintf("%s: these facts cannot occur together: %+v", d.PRID, d.Facts)
	}
	return fmt.Sprintf("%s waits with %q, and its step is %v: %+v", d.PRID, d.Needs, d.Step, d.Facts)
}

// Compare lists the differences about the pull requests of tx.Account that have not ended.
// Nothing calls Compare but tests: a change of facts that no move follows is a fault.
func (s *Service) Compare(tx *db.Tx) (out []Difference, err error) {
	ids, err := record.Unended.All(tx, tx.Account)
	if err != nil {
		return nil, err
	}
	for _, prID := range ids {
		m, _, err := s.look(tx, &record.Pull{ID: prID})
		if err != nil {
			return nil, err
		}
		d := Difference{PRID: prID, Needs: m.Needs, Step: m.step, Facts: m.facts, Cannot: !moves.Valid(m.facts)}
		settled, err := m.settled(tx)
		if err != nil {
			return nil, err
		}
		if d.Cannot || !settled {
			out = append(out, d)
		}
	}
	return out, nil
}

// settled tells whether a move would change nothing, or the next pass moves the pull request.
func (m moving) settled(tx *db.Tx) (bool, error) {
	switch {
	case m.step.Do == moves.DoLook, m.MoveAt == record.MoveSoon:
		return true, nil
	case m.step.Do == moves.DoPerson:
		return m.Needs == m.step.Of, nil
	case m.Needs != "":
		return false, nil
	case isOrdered(m.step):
		_, open, err := record.OpenAction.Maybe(tx, m.ID)
		return open, err
	}
	switch m.step.Do {
	case moves.DoAsk, moves.DoTakeOver, moves.DoStopWork, moves.DoCheck, moves.DoReview: // over at once, as the page says
		return false, nil
	case moves.DoClose:
		return m.step.Of != moves.Cancelled, nil
	case moves.DoRepair:
		return m.MoveAt > 0, nil
	}
	return true, nil
}
