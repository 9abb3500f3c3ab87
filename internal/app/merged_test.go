package app

import (
	"context"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/patience"
)

var (
	setPullHead = db.S(`UPDATE pulls SET head_sha = $2 WHERE id = $1`)
	policyIs    = db.Q[string](`SELECT COALESCE(policy_yml, '') FROM repos WHERE id = $1`)
)

// A node that dies between a merge and the look at what it did to the policy
// file leaves the look to another node, however far the first came.
func TestMergeIsLookedAtByAnotherNode(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			const before = "version: 1\n"
			const merged, again = before + "merge: {mode: auto}\n", before + "merge: {mode: never}\n"
			w := newWorld(t, e)
			account, repoID, pr := id.New(), id.New(), id.New()
			dead, other := w.nodes[0], w.nodes[1]
			r := builtIn(account, "web")
			w.forge.install(r, before)
			head := w.forge.push(r, "b", "")
			ctx, stop := context.WithCancel(db.WithAccount(t.Context(), account))
			do := func(fn func(tx *db.Tx) error) {
				t.Helper()
				if err := dead.db.Write(ctx, fn); err != nil {
					t.Fatal(err)
				}
			}
			do(func(tx *db.Tx) error {
				if _, err := walkAccount.Exec(tx, account); err != nil {
					return err
				}
				web := walkRepoArgs{ID: repoID, AccountID: account, Name: "web", PolicyYML: "version: 1\n# old\n"}
				if _, err := walkRepo.Exec(tx, web); err != nil {
					return err
				}
				if _, err := addOpenPull.Exec(tx, pr, account, repoID); err != nil {
					return err
				}
				_, err := setPullHead.Exec(tx, pr, head)
				return err
			})
			want := func(text string) {
				t.Helper()
				var got string
				if !patience.Come(t, func() bool {
					do(func(tx *db.Tx) (err error) {
						got, err = policyIs.One(tx, repoID)
						return err
					})
					return got == text
				}) {
					t.Fatalf("the policy is %q, want %q", got, text)
				}
			}
			if err := other.readers.Begin(ctx); err != nil {
				t.Fatal(err)
			}
			var loops sync.WaitGroup
			defer loops.Wait()
			defer stop()
			for _, loop := range []func(context.Context) error{other.readers.Loop, other.parts.repo.Loop} {
				loops.Go(func() {
					if err := loop(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			want(before) // the first pass of the other is over, and the next an hour away

			w.forge.rewrite(r, merged)
			w.forge.bring(r, head)
			do(func(tx *db.Tx) error { return part[*pull.Service](dead).Recheck(tx, repoID) })
			part[*pull.Service](dead).Pass(ctx) // it finds the merge, and ends with that
			want(merged)

			w.forge.rewrite(r, again)
			do(func(tx *db.Tx) error { return dead.parts.repo.RefreshSoon(tx, repoID) }) // it ends with that
			want(again)
		})
	}
}
