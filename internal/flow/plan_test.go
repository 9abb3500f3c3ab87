package flow

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
)

var discard = slog.New(slog.DiscardHandler)

// newPlans returns plans that nothing is asked of outside of the database.
func newPlans(d *db.DB, tasks *task.Service, boxes plan.Boxes, hosts *codehost.Hosts) *plan.Service {
	return plan.New(plan.Needs{
		DB: d, Tasks: tasks, Hosts: hosts, Logger: discard, Scouts: Scouts{}, Repos: PlanRepos{}, Asks: PlanAsks{}, Pulls: Pulls{},
		Boxes: boxes, Budgets: PlanBudgets{},
	})
}

type planned struct {
	RepoID, Overview, Source string
	Hold                     bool
	AskID, RequestedBy       *string
}

type plannedGroup struct {
	Slug, RepoID, Title, Problem string
	Files                        db.JSON[[]string]
}

type plannedEdge struct{ Slug, Upstream, Kind string }

type plannedTask struct{ RepoID, Title string }

var (
	readPlan = db.Q[planned](`SELECT repo_id, overview, source, hold, ask_id, requested_by FROM plans WHERE id = $1`)
	readCut  = db.Q[plannedGroup](`SELECT slug, repo_id, title, problem, files FROM plan_groups WHERE plan_id = $1 ORDER BY place`)
	readNet  = db.Q[plannedEdge](`SELECT g.slug, u.slug AS upstream, e.kind FROM plan_edges e
		JOIN plan_groups g ON g.id = e.group_id JOIN plan_groups u ON u.id = e.upstream_id WHERE e.plan_id = $1`)
	readMinted = db.Q[plannedTask](`SELECT repo_id, title FROM tasks WHERE plan_id = $1 ORDER BY title`)
)

// TestAuthor holds that triage makes a plan with a group for each slice, in order,
// and that nothing of it is queued while it is held for a person.
func TestAuthor(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		for _, hold := range []bool{true, false} {
			var p planned
			var groups []plannedGroup
			var edges []plannedEdge
			var minted []plannedTask
			w.write(func(tx *db.Tx) error {
				made, err := w.Author(tx, ask.NewPlan{
					AskID: "ask", RequestedBy: "ann", Title: "Two shops", Summary: "One after the other.", Hold: hold,
					Slices: []ask.NewSlice{
						{RepoID: "web", Title: "a", Problem: "First.", Files: []string{"a.go"}},
						{RepoID: "shop", Title: "b", Problem: "Then.", DependsOn: []int{0}},
					},
				})
				if err != nil {
					return err
				}
				id := made.PlanID
				if named, minted := len(made.TaskIDs), map[bool]int{false: 2}[hold]; named != minted {
					t.Errorf("held %v: %d tasks are named, %d were minted", hold, named, minted)
				}
				if p, err = readPlan.One(tx, id); err != nil {
					return err
				}
				if groups, err = readCut.All(tx, id); err != nil {
					return err
				}
				if edges, err = readNet.All(tx, id); err != nil {
					return err
				}
				minted, err = readMinted.All(tx, id)
				return err
			})
			want := planned{RepoID: "web", Overview: "# Two shops\n\nOne after the other.\n", Source: "triage", Hold: hold,
				AskID: new("ask"), RequestedBy: new("ann")}
			if !reflect.DeepEqual(p, want) {
				t.Errorf("the plan is %+v of %q for %q", p, deref(p.AskID), deref(p.RequestedBy))
			}
			if !reflect.DeepEqual(groups, []plannedGroup{
				{Slug: "slice-01", RepoID: "web", Title: "a", Problem: "First.", Files: db.JSON[[]string]{V: []string{"a.go"}}},
				{Slug: "slice-02", RepoID: "shop", Title: "b", Problem: "Then.", Files: db.JSON[[]string]{V: []string{}}},
			}) {
				t.Errorf("the groups are %+v", groups)
			}
			if !slices.Equal(edges, []plannedEdge{{"slice-02", "slice-01", plan.Code}}) {
				t.Errorf("the edges are %+v", edges)
			}
			queued := []plannedTask{{"web", "a"}, {"shop", "b"}}
			if hold {
				queued = nil
			}
			if !slices.Equal(minted, queued) {
				t.Errorf("held %v: the tasks are %+v, want %+v", hold, minted, queued)
			}
		}
		if err := w.tryWrite(func(tx *db.Tx) error {
			_, err := w.Author(tx, ask.NewPlan{AskID: "ask", Title: "t", Slices: []ask.NewSlice{{RepoID: "gone", Title: "a"}}})
			return err
		}); err == nil {
			t.Error("a plan is made in no repository")
		}
	})
}

// noBus is a bus without boxes.
type noBus struct{ run.Bus }

// noVault has no secrets.
type noVault struct{ run.Vault }

// TestSurvey holds that a plan reads what the newest run of its own account's scout
// reported, and nothing before it has.
func TestSurvey(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		scouts := Scouts{Runs: run.New(run.Needs{
			DB: w.db, Hub: event.NewHub(), Tasks: w.tasks, Queue: w.Queue, Bus: noBus{}, Logger: discard, Setup: RunSetup{},
			Boxes: RunBoxes{},
			Vault: noVault{}, Branches: Branches{}, Settler: Settler{}, Asks: RunAsks{}, Artifacts: RunArtifacts{},
		})}
		w.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "rival"}, seed.Repo{ID: "theirs", Account: "rival"}, seed.Box{ID: "box", Account: "acme"},
				seed.Task{ID: "scout", Account: "acme", Repo: "web"}, seed.Task{ID: "foreign", Account: "rival", Repo: "theirs"},
				seed.Run{ID: "run", Account: "acme", Task: "scout", Repo: "web", Box: "box"},
				seed.Run{ID: "spy", Account: "rival", Task: "foreign", Repo: "theirs", Box: "box"})
		})
		survey := func(taskID string) (got plan.Survey, ok bool) {
			w.write(func(tx *db.Tx) (err error) {
				got, ok, err = scouts.Survey(tx, taskID)
				return err
			})
			return got, ok
		}
		if _, ok := survey("scout"); ok {
			t.Error("a run without a report has a survey")
		}
		report := "# It is small\n\nSee a.go:7.\n\n## Split hints\n\n- by page\n\n## Handoffs\n\n- the texts\n\n## Access needed\n\n- the shop\n"
		w.write(func(tx *db.Tx) error {
			for _, id := range []string{"run", "spy"} {
				if _, err := seed.SetReport.Exec(tx, id, report); err != nil {
					return err
				}
			}
			return nil
		})
		want := plan.Survey{Report: report, Summary: "It is small", SplitHints: []string{"by page"}, Handoffs: []string{"the texts"},
			AccessNeeded: []string{"the shop"}}
		if got, ok := survey("scout"); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, ok)
		}
		for _, id := range []string{"foreign", "gone"} {
			if got, ok := survey(id); ok {
				t.Errorf("the task %s has the survey %+v", id, got)
			}
		}
	})
}

// TestWrote holds that the commit of a plan's documents is a push of the plan, also
// when the caller is gone.
func TestWrote(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		root := t.TempDir()
		host, err := builtin.New(builtin.Config{Root: root, BaseURL: "http://host"})
		if err != nil {
			t.Fatal(err)
		}
		repos := PlanRepos{Repos: repo.New(repo.Needs{
			DB: d, Hub: event.NewHub(),
			Hosts:   codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: host, Forge: builtin.Forge{}}}),
			Folders: host, Attempts: GitTokens{}, Holders: Holders{},
			Pulls: Pulls{}, Contents: Contents{}, Logger: discard,
		})}
		var pushes []string
		repo.PushedEvent.On(d, func(_ *db.Tx, e event.Event[repo.Push]) error {
			pushes = append(pushes, strings.Join([]string{e.Subject.Account, e.Data.Repo.ID, e.Data.Branch, e.Data.Old, e.Data.New,
				e.Data.Head, e.Data.By}, " "))
			return nil
		})
		web := codehost.Repo{Host: codehost.BuiltIn, Owner: "acme", Name: "web"}
		if err := host.Create(t.Context(), web, codehost.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		git := exec.Command("sh", "-c",
			`git update-ref refs/heads/main $(git commit-tree -m plan $(git mktree </dev/null)) && git rev-parse main`)
		git.Env = append(os.Environ(), "GIT_DIR="+filepath.Join(root, "acme", "web.git"), "GIT_AUTHOR_NAME=Ann",
			"GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com")
		out, err := git.Output()
		if err != nil {
			t.Fatal(err)
		}
		sha := strings.TrimSpace(string(out))
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "repo", Account: "acme", Name: "web"})
		}); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := repos.Wrote(gone, web, "main", codehost.ZeroSHA, sha); err != nil {
			t.Fatal(err)
		}
		want := strings.Join([]string{"acme", "repo", "main", codehost.ZeroSHA, sha, sha, "plan.file"}, " ")
		if !slices.Equal(pushes, []string{want}) {
			t.Errorf("the pushes are %q, want %q", pushes, want)
		}
		if err := repos.Wrote(t.Context(), codehost.Repo{Owner: "acme", Name: "gone"}, "main", codehost.ZeroSHA, sha); err == nil ||
			!strings.Contains(err.Error(), "record the commit of a plan") {
			t.Errorf("a repository that is not there: %v", err)
		}
	})
}
