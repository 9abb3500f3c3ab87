package flow

import (
	"context"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// onBoth runs a test in a transaction of acme, whose people are ann and olga and
// whose repository is web.
func onBoth(t *testing.T, fn func(t *testing.T, tx *db.Tx)) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		actor := policy.Actor{Credential: policy.PAT, CredentialID: "t", UserID: "olga", AccountID: "acme",
			Scopes: policy.Scopes(policy.WriteTasks)}
		err := d.Write(policy.With(db.WithAccount(context.Background(), "acme"), actor), func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ann", Name: "Ann"}, seed.User{ID: "olga"},
				seed.Repo{ID: "web", Account: "acme"}, seed.Task{ID: "asked", Account: "acme", Repo: "web", By: new("ann")},
				seed.Task{ID: "unasked", Account: "acme", Repo: "web"})
			if err != nil {
				return err
			}
			fn(t, tx)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// A merge commit names who asked for the work and who decided about it, where
// they are people.
func TestSigners(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		ann, olga := codehost.Person{Name: "Ann", Email: "ann@example.com"}, codehost.Person{Name: "olga", Email: "olga@example.com"}
		for _, c := range []struct {
			task, by string
			want     [2]codehost.Person
		}{
			{"asked", "user:olga", [2]codehost.Person{ann, olga}},
			{"asked", "policy", [2]codehost.Person{ann, {}}},
			{"unasked", "user:gone", [2]codehost.Person{}},
			{"gone", "user:ann", [2]codehost.Person{}},
		} {
			got, err := Signers{Address: "bot@example.com"}.Signers(tx, c.task, c.by)
			if err != nil || [2]codehost.Person{got.RequestedBy, got.ApprovedBy} != c.want {
				t.Errorf("%s by %s: %+v, %v", c.task, c.by, got, err)
			}
		}
	})
}

type filedRow struct {
	Source, FiledBy string
	RequestedBy     *string
}

var filed = db.Q[filedRow](`SELECT source, filed_by, requested_by FROM asks WHERE id = $1`)

// What siblings leave to triage is filed under their name, for the person whose
// work it is.
func TestAsksOfSiblings(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		want := func(askID string, err error, source, by, person string) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			r, err := filed.One(tx, askID)
			got := ""
			if r.RequestedBy != nil {
				got = *r.RequestedBy
			}
			if err != nil || r.Source != source || r.FiledBy != by || got != person {
				t.Errorf("%+v for %q (%v), want %s by %s for %q", r, got, err, source, by, person)
			}
		}
		a, err := PlanAsks{}.File(tx, plan.Filing{RepoIDs: []string{"web"}, Title: "t", Body: "b"})
		want(a, err, "plan", policy.From(tx.Context()).Label(), "olga")
		if tasks, ok, err := (PlanAsks{}).TasksOf(tx, a); err != nil || !ok || len(tasks) > 0 {
			t.Errorf("an ask that is not scheduled: %v %v %v", tasks, ok, err)
		}

		for taskID, person := range map[string]string{"asked": "ann", "unasked": "olga"} {
			f := blocker.FollowUp{BlockerID: "blocker-" + taskID, TaskID: taskID, RepoID: "web", Title: "t", Body: "b"}
			a, err := BlockerAsks{}.File(tx, f)
			want(a, err, "blocker", policy.From(tx.Context()).Label(), person)
			if again, err := (BlockerAsks{}).File(tx, f); err != nil || again != a {
				t.Errorf("a second ask for a blocker: %s, %v", again, err)
			}
		}

		for i, fresh := range []bool{true, false} {
			f := issue.Filing{RepoID: "web", Key: "h/1#2", Title: "t", Imported: true, By: "user:ann", Trusted: i == 0}
			if _, there, err := (IssueAsks{}).File(tx, f); err != nil || there == fresh {
				t.Errorf("time %d: %v, %v", i, there, err)
			}
		}
		for key, scopes := range map[string]string{"trusted": "write:tasks", "stranger": ""} {
			a, _, err := (IssueAsks{}).File(tx, issue.Filing{RepoID: "web", Key: key, Title: "t", Trusted: key == "trusted"})
			want(a, err, "issue", "system", "")
			var kept db.JSON[[]string]
			if kept, err = scopesOf.One(tx, a); err != nil || strings.Join(kept.V, " ") != scopes {
				t.Errorf("the ask of a %s may %q (%v), want %q", key, kept.V, err, scopes)
			}
		}
	})
}

// What is no token of a run is answered without a database.
func TestGitTokens(t *testing.T) {
	t.Parallel()
	if a, ok, err := (GitTokens{}).Attempt(t.Context(), "password"); ok || err != nil {
		t.Errorf("%+v %v %v", a, ok, err)
	}
}

var scopesOf = db.Q[db.JSON[[]string]](`SELECT scopes FROM asks WHERE id = $1`)
