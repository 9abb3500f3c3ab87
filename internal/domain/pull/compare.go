package pull

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/facts"
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
		looked, _, err := s.Look(tx, &record.Pull{ID: prID})
		if err != nil {
			return nil, err
		}
		m := moving{looked}
		d := Difference{PRID: prID, Needs: m.Needs, Step: m.Step, Facts: m.Facts, Cannot: !moves.Valid(m.Facts)}
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
	case m.Step.Do == moves.DoLook, m.MoveAt == record.MoveSoon:
		return true, nil
	case m.Step.Do == moves.DoPerson:
		return m.Needs == m.Step.Of, nil
	case m.Needs != "":
		return false, nil
	case facts.Ordered(m.Step):
		_, open, err := record.OpenAction.Maybe(tx, m.ID)
		return open, err
	}
	switch m.Step.Do {
	case moves.DoAsk, moves.DoTakeOver, moves.DoStopWork, moves.DoCheck, moves.DoReview: // over at once, as the page says
		return false, nil
	case moves.DoClose:
		return m.Step.Of != moves.Cancelled, nil
	case moves.DoRepair:
		return m.MoveAt > 0, nil
	}
	return true, nil
}
