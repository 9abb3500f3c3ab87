package pull

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

var orderOf = db.Q[actionRow](`SELECT ` + actionColumns + ` FROM pull_actions WHERE pr_id = $1 AND kind = 'merge'`)

// What a node notes of an order that another has taken meanwhile changes nothing, whatever it notes,
// and the host is not told by it; the other goes on as if the first had not been there.
func TestOrderIsOfItsClaim(t *testing.T) {
	t.Parallel()
	why := "late"
	late := map[string]func(y *yard, tx *db.Tx, d dueRow, pr row) error{
		"renews": func(_ *yard, tx *db.Tx, d dueRow, _ row) error {
			_, err := keepDue.Exec(tx, d.ID, d.Claim, db.Micros(tx.Now.Add(time.Hour)))
			return err
		},
		"puts off": func(_ *yard, tx *db.Tx, d dueRow, _ row) error {
			_, err := postpone.Exec(tx, putOffArgs{d.ID, d.Claim, tx.Micros(), why})
			return err
		},
		"waits for the host": func(y *yard, tx *db.Tx, d dueRow, pr row) error { return y.ungranted(tx, d, pr, "merge_queues: write") },
		"waits longer": func(_ *yard, tx *db.Tx, d dueRow, _ row) error {
			_, err := waitLonger.Exec(tx, d.ID, d.Claim, tx.Micros())
			return err
		},
		"calls": func(_ *yard, tx *db.Tx, d dueRow, _ row) error {
			_, err := callHost.Exec(tx, d.ID, d.Claim)
			return err
		},
		"ends": func(_ *yard, tx *db.Tx, d dueRow, _ row) error {
			_, err := endAction.Exec(tx, endArgs{d.ID, d.Claim, ActionFailed, &why})
			return err
		},
		"conflict": func(y *yard, tx *db.Tx, d dueRow, _ row) error { return y.applied(tx, d, made{}, codehost.ErrConflict) },
		"moved": func(y *yard, tx *db.Tx, d dueRow, _ row) error {
			return y.applied(tx, d, made{}, codehost.ErrHeadMoved)
		},
		"fails": func(y *yard, tx *db.Tx, d dueRow, _ row) error {
			return y.applied(tx, d, made{}, errors.New("no answer"))
		},
		"asks": func(y *yard, tx *db.Tx, d dueRow, _ row) error {
			if _, _, goes, err := y.goesOn(tx, d); err != nil || goes {
				return errors.Join(err, errors.New("it goes on"))
			}
			return nil
		},
	}
	onBoth(t, func(t *testing.T, y *yard) {
		sha := y.commit("svc/a", "a", "1\n")
		pr := y.propose("svc/a", sha)
		y.approve(pr, sha)
		y.line.on = true // it has yet to be admitted
		take := func() dueRow {
			due, err := y.take(y.ctx())
			if err != nil || len(due) != 1 {
				t.Fatal(due, err)
			}
			return due[0]
		}
		state := func() (a actionRow, p row) {
			y.write(func(tx *db.Tx) (err error) {
				if a, err = orderOf.One(tx, pr); err == nil {
					p, err = byID.One(tx, tx.Account, pr)
				}
				return err
			})
			return a, p
		}
		first := take()
		y.clock.Add((2 * hold).Microseconds())
		second := take()
		before, pull := state()
		for name, note := range late {
			y.write(func(tx *db.Tx) error { return note(y, tx, first, pull) })
			after, now := state()
			if !reflect.DeepEqual(after, before) || now.State != pull.State || now.Mergeable != pull.Mergeable || now.Needs != pull.Needs {
				t.Errorf("%s: %+v, was %+v", name, after, before)
			}
		}
		y.line.on = false
		if err := y.apply(y.ctx(), first); err != nil {
			t.Error(err)
		}
		y.wantState(pr, Open)
		if err := y.apply(y.ctx(), second); err != nil {
			t.Error(err)
		}
		y.wantState(pr, Merged)
	})
}
