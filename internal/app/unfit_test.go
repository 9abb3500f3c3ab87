package app

import (
	"context"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

var (
	addOpenPull = db.S(`INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref, base_ref, head_sha, base_sha,
		checks, author_kind, created_at, updated_at)
		VALUES ($1, $2, $3, 1, 't', '', '', 'open', 'b', 'main', 'c0ffee', 'base', 'pending', 'agent', 0, 0)`)
	addCheck = db.SWith[addCheckArgs](`INSERT INTO ci_runs (id, account_id, repo_id, pr_id, sha, command, status, task_id, created_at)
		VALUES (:id, :account_id, :repo_id, :pr_id, 'c0ffee', 'make check', 'queued', :task_id, 0)`)
	checkIs = db.Q[string](`SELECT c.status || ' ' || p.checks FROM ci_runs c JOIN pulls p ON p.id = c.pr_id WHERE c.task_id = $1`)
	unfitIs = db.Q[string](`SELECT COALESCE(unfit, '') FROM boxes WHERE id = $1`)
	told    = db.Q[string](`SELECT data FROM audit WHERE account_id = $1 AND object = $2 AND kind = $3`)
)

// addCheckArgs are the parameters of addCheck.
type addCheckArgs struct {
	ID, AccountID, RepoID string
	PRID                  string `db:"pr_id"`
	TaskID                string
}

// A check on a box that cannot run anything says nothing of the head, whatever
// it came to there: another box runs it, and the first gets no more work.
func TestCheckOnAnUnfitBox(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, e)
			n, account, repo, pr := w.nodes[0], id.New(), id.New(), id.New()
			p := n.parts
			ctx := db.WithAccount(context.Background(), account)
			do := func(fn func(tx *db.Tx) error) {
				t.Helper()
				if err := n.db.Write(ctx, fn); err != nil {
					t.Fatal(err)
				}
			}
			var check task.Row
			boxes := [2]string{"a-" + account, "b-" + account}
			do(func(tx *db.Tx) error {
				if _, err := walkAccount.Exec(tx, account); err != nil {
					return err
				}
				if _, err := walkRepo.Exec(tx,
					walkRepoArgs{ID: repo, AccountID: account, Name: "web", PolicyYML: "version: 1\n"}); err != nil {
					return err
				}
				for _, b := range boxes {
					if _, err := walkBox.Exec(tx, b, account); err != nil {
						return err
					}
				}
				if _, err := addOpenPull.Exec(tx, pr, account, repo); err != nil {
					return err
				}
				var err error
				check, err = p.task.Create(tx, task.Repo{ID: repo},
					task.Spec{Kind: task.KindCI, Sink: task.SinkDirect, Title: "Check", Problem: "p",
						Command: []string{"make", "check"}, Checkout: "c0ffee", PRID: &pr})
				if err != nil {
					return err
				}
				_, err = addCheck.Exec(tx, addCheckArgs{ID: id.New(), AccountID: account, RepoID: repo, PRID: pr, TaskID: check.ID})
				return err
			})
			claim := func(box string) protocol.ClaimReply {
				t.Helper()
				reply, err := p.run.Claim(context.Background(), box, protocol.Claim{ID: id.New(), Free: 1})
				if err != nil {
					t.Fatal(err)
				}
				return reply
			}
			end := func(box string, st *protocol.Start, f protocol.Finished) {
				t.Helper()
				events := []protocol.Event{said(protocol.EventStarted, protocol.Started{Agent: "command"}), said(protocol.EventFinished, f)}
				events[0].Seq, events[1].Seq = 1, 2
				if _, err := p.run.Append(context.Background(), box,
					protocol.Envelope{V: protocol.Version, Run: st.Run, Attempt: st.Attempt, Events: events}); err != nil {
					t.Fatal(err)
				}
			}
			want := func(status task.Status, result string) (row task.Row) {
				t.Helper()
				do(func(tx *db.Tx) (err error) {
					if row, _, err = task.Get(tx, account, check.ID); err != nil {
						return err
					}
					got, err := checkIs.One(tx, check.ID)
					if row.Status != status || got != result {
						t.Errorf("the check is %s and its result %q, want %s and %q", row.Status, got, status, result)
					}
					return err
				})
				return row
			}

			first := claim(boxes[0])
			one := 1
			end(boxes[0], first.Run, protocol.Finished{State: protocol.Failed, Kind: protocol.FailureBoxUnfit,
				Error: "bwrap: no namespaces\n", ExitCode: &one})
			if row := want(task.Pending, "queued pending"); *row.FailureKind != task.BoxUnfit || row.Charged != 0 || row.Uncharged != 0 {
				t.Errorf("the check's task is %+v", row)
			}
			do(func(tx *db.Tx) error {
				why, err := unfitIs.One(tx, boxes[0])
				if why != "bwrap: no namespaces" {
					t.Errorf("the box is unfit for %q", why)
				}
				if err == nil {
					why, err = told.One(tx, account, boxes[0], "box.unfit")
				}
				if !strings.Contains(why, "bwrap: no namespaces") {
					t.Errorf("the record tells %q", why)
				}
				return err
			})
			if again := claim(boxes[0]); again.Run != nil || !slices.Equal(again.Reasons, []string{task.HoldUnfit}) {
				t.Errorf("the unfit box claims and gets %+v", again)
			}
			next := claim(boxes[1])
			if next.Run == nil || next.Run.Task != check.ID || next.Run.Attempt != 2 {
				t.Fatalf("the fit box claims and gets %+v", next)
			}
			none := 0
			end(boxes[1], next.Run, protocol.Finished{State: protocol.Succeeded, ExitCode: &none})
			want(task.Completed, "passed passed")
		})
	}
}
