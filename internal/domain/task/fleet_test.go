package task

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

var (
	addUser   = db.S(`INSERT INTO users (id, login, name, email, created_at) VALUES ($1, $1, $1, $1, 0)`)
	addMember = db.S(`INSERT INTO memberships (account_id, user_id, role, created_at) VALUES ($1, $2, 'member', 0)`)
	dropOut   = db.S(`DELETE FROM memberships WHERE account_id = $1 AND user_id = $2`)
	setTarget = db.S(`UPDATE boxes SET owner_target = $2, owner_id = $3 WHERE id = $1`)
	setState  = db.S(`UPDATE boxes SET state = $2 WHERE id = $1`)
)

// Whom a box serves: its account, every account, or one member's tasks in
// every account that the member belongs to.
func TestWhomABoxServes(t *testing.T) {
	each(t, func(f *fixture) {
		f.write("", func(tx *db.Tx) error {
			if _, err := addUser.Exec(tx, "ann"); err != nil {
				return err
			}
			_, err := addMember.Exec(tx, "rival", "ann")
			return err
		})
		target := func(target string, owner *string) {
			f.write("", func(tx *db.Tx) error { _, err := setTarget.Exec(tx, "box", target, owner); return err })
		}
		next := func() (id string) {
			f.write("", func(tx *db.Tx) error {
				t, err := f.Claimable(tx, "box")
				if t != nil {
					id = t.ID
				}
				return err
			})
			return id
		}
		rivals := f.call("rival", "POST", "/v1/tasks", object{"repo": "rival/web", "title": "Theirs", "problem": "Something."}, 202)["task_id"].(string)
		holds := func() []string { return reasons(f.call("rival", "GET", "/v1/tasks/"+rivals, nil, 200)) }

		if next() != "" || len(holds()) != 1 || holds()[0] != HoldNoBox {
			f.t.Errorf("another account's box: claimable %q, holds %v", next(), holds())
		}
		target("shared", nil)
		if next() != rivals || len(holds()) != 0 {
			f.t.Errorf("shared box: claimable %q, holds %v", next(), holds())
		}
		ann, bob := "ann", "bob"
		target("user", &ann)
		if next() != rivals || len(holds()) != 0 {
			f.t.Errorf("its author's box: claimable %q, holds %v", next(), holds())
		}
		f.write("", func(tx *db.Tx) error { _, err := dropOut.Exec(tx, "rival", "ann"); return err })
		if next() != "" || len(holds()) != 1 {
			f.t.Errorf("box of a former member: claimable %q, holds %v", next(), holds())
		}
		target("user", &bob)
		if next() != "" || len(holds()) != 1 {
			f.t.Errorf("somebody else's box: claimable %q, holds %v", next(), holds())
		}
	})
}

func TestDrainingBoxesGetNothing(t *testing.T) {
	each(t, func(f *fixture) {
		id := f.create(nil)
		f.write("", func(tx *db.Tx) error { _, err := setState.Exec(tx, "box", "draining"); return err })
		if got := reasons(f.get(id)); f.claim() != "" || len(got) != 1 || got[0] != HoldDraining {
			f.t.Errorf("holds %v", got)
		}
		f.write("", func(tx *db.Tx) error {
			why, err := f.WhyNot(tx, "box")
			if len(why) != 1 || why[0] != HoldDraining {
				f.t.Errorf("the box is told %v", why)
			}
			return err
		})
	})
}

func TestStatements(t *testing.T) { dbtest.Declared(t) }

// TestQueueIsNotScanned holds that what is asked of a long queue is read off an
// index of what it is about.
func TestQueueIsNotScanned(t *testing.T) {
	for part, want := range map[string]string{
		"GROUP BY repo_id, template, (waiting_deps > 0)":                          "SEARCH tasks USING INDEX tasks_waiting (account_id=? AND status=?)\nUSE TEMP B-TREE FOR GROUP BY\n",
		isWaiting + " ORDER BY created_at, id LIMIT $2":                           "SEARCH tasks USING INDEX tasks_waiting (account_id=? AND status=?)\n",
		"priority = $4\n\t\tAND " + isReady + " ORDER BY created_at, id LIMIT $5": "SEARCH tasks USING INDEX tasks_ready (account_id=? AND repo_id=? AND template=? AND priority=?)\n",
	} {
		if got := dbtest.Plan(t, part); !strings.Contains(got, want) || strings.Contains(got, "tasks_status") {
			t.Errorf("%s: %s", part, got)
		}
	}
}
