package run

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// Preferred is what the person who asked for a run likes best, and the run follows.
type Preferred struct {
	Provider string // empty: nothing; the run goes as its template says
	Model    string // empty: the provider's own default
}

// judges tells whether tasks of a kind judge work: whoever asked for the work does not
// choose who judges it.
func judges(kind string) bool { return kind == task.KindReview || kind == task.KindCI }

// prefer lets the person whose task it is, and nobody else's, choose the model of a run
// where its template leaves it open.
func (s *Service) prefer(tx *db.Tx, t *task.Row, st *protocol.Start) (Preferred, error) {
	person := ownerOf(t)
	if person == "" || judges(t.Kind) {
		return Preferred{}, nil
	}
	tpl := Template{Agent: st.Agent, Model: st.Model, Options: st.Options}
	p, err := s.Setup.Prefer(tx, t.AccountID, t.Template, person, &tpl)
	st.Model, st.Options = tpl.Model, tpl.Options
	return p, err
}

// keep stores what a run follows, and with which model it begins.
func (p Preferred) keep(tx *db.Tx, runID, model string) error {
	var provider, own *string
	if p.Provider != "" {
		provider, own = &p.Provider, &p.Model
	}
	_, err := preferRun.Exec(tx, preferArgs{ID: runID, Provider: provider, Own: own, Model: model})
	return err
}

// PreferredOf is what the newest run of a task of tx.Account follows; the zero value for one without.
func PreferredOf(tx *db.Tx, taskID string) (Preferred, error) {
	p, _, err := selectPreferred.Maybe(tx, tx.Account, taskID)
	return p, err
}
