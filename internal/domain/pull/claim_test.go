package pull

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/pull/record"
)

var (
	orderOf = db.Q[record.Action](`SELECT ` + record.ActionColumns + ` FROM pull_actions WHERE pr_id = $1 AND kind = 'merge'`)
	// takeAway gives what a node works on to another one.
	takeAway = db.S(`UPDATE due SET fence = fence + 1, due_at = $1 WHERE queue = 'merges' AND state = 'held'`)
	// basedOn gives a branch to all pull requests as their base, and opens them.
	basedOn = db.S(`UPDATE pulls SET base_ref = $1, state = 'open' WHERE state = 'merged'`)
)

// What a node records of an order that another has taken meanwhile changes nothing, whatever the host
// has answered; the other goes on as if the first had not been there.
func TestOrderIsOfItsClaim(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"merged": nil, "conflict": codehost.ErrConflict, "moved": codehost.ErrHeadMoved, "fails": errors.New("no answer"),
		"base moved": codehost.ErrBaseMoved, "busy": &codehost.BusyError{After: time.Minute},
		"ungranted": &codehost.ForbiddenError{Permission: "merge_queues: write", Asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, y *yard) {
				sha := y.commit("svc/a", "a", "1\n")
				pr := y.propose("svc/a", sha)
				y.approve(pr, sha)
				var before, after record.Action
				state := func(a *record.Action) {
					y.write(func(tx *db.Tx) (err error) { *a, err = orderOf.One(tx, pr); return err })
				}
				y.host.merge, y.host.lost = answer, answer
				y.host.during = func() {
					y.write(func(tx *db.Tx) error { _, err := takeAway.Exec(tx, db.Micros(tx.Now.Add(time.Minute))); return err })
					state(&before)
				}
				y.pass(0)
				state(&after)
				if !before.Called || !reflect.DeepEqual(after, before) {
					t.Errorf("%+v, was %+v", after, before)
				}
				y.wantState(pr, record.Open)
				y.host.merge, y.host.lost, y.host.during = nil, nil, nil
				y.pass(time.Minute)
				y.wantState(pr, record.Merged)
				y.wantActions(pr, "applied")
			})
		})
	}
}

// The branch of a merged head is deleted by an intent of its own: also by a host that was busy, and
// after the answer of the merge was lost. One that has moved on, or that others are based on, stays.
func TestMergedBranchIsDropped(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: auto}\n")
		for _, c := range []struct {
			name      string
			meanwhile func(branch string)
			want      error
		}{
			{"svc/busy", func(string) { y.pass(time.Hour) }, codehost.ErrNotFound},
			{"svc/moved", func(branch string) { y.commit(branch, "more", "1\n") }, nil},
			{"svc/base", func(branch string) { // the last, since nobody moves that pull request on
				y.write(func(tx *db.Tx) error { _, err := basedOn.Exec(tx, branch); return err })
			}, nil},
		} {
			name := c.name
			y.host.remove = &codehost.BusyError{After: time.Minute}
			pr := y.propose(name, y.commit(name, name, "1\n"))
			y.pass(0)
			y.wantState(pr, record.Merged)
			duetest.Pass(y.ctx(), t, y.Intents.Due)
			if _, err := y.host.Head(y.ctx(), webRepo, name); err != nil {
				t.Errorf("%s, while the host is busy: %v", name, err)
			}
			c.meanwhile(name)
			y.host.remove = nil
			y.clock.Add(time.Hour.Microseconds())
			duetest.Pass(y.ctx(), t, y.Intents.Due)
			if _, err := y.host.Head(y.ctx(), webRepo, name); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	})
}

// What somebody requests while the host is told to merge counts as soon as the host has not done it.
func TestRequestedDuringTheMerge(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"base moved": codehost.ErrBaseMoved, "busy": &codehost.BusyError{After: time.Minute},
		"ungranted": &codehost.ForbiddenError{Permission: "merge_queues: write", Asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, y *yard) {
				sha := y.commit("svc/a", "a", "1\n")
				pr := y.propose("svc/a", sha)
				y.approve(pr, sha)
				y.host.merge = answer
				y.host.during = func() { y.host.during = nil; y.requests("bob", pr, sha, "Another name, please.") }
				duetest.Pass(y.ctx(), t, y.Due)
				y.asTable()
				if now := y.row(pr); now.Babysit != record.BabysitReview {
					t.Errorf("%s, needs %q", now.Babysit, now.Needs)
				}
			})
		})
	}
}
