package flow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/review"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/source"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
	"yardmaster/internal/reach"
	"yardmaster/internal/seal"
)

// noStops are no limits of judges.
type noStops struct{}

func (noStops) Stops(*db.Tx, []string) ([]ask.Stop, error) { return nil, nil }

// The table of runs knows every kind of task.
func TestTableKnowsEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		task.KindWork, task.KindScout, task.KindSetup, task.KindReview, task.KindBabysit, task.KindKB, task.KindDevops, task.KindCI,
	} {
		if d := reach.Of(kind, reach.Blocker, reach.Own, reach.Account); d.Outcome != reach.Done {
			t.Errorf("%s: %v", kind, d)
		}
	}
}

// asked files asks as the connected systems, issues and people do, and answers their ids.
func (w *work) asked() map[string]string {
	out := map[string]string{}
	w.write(func(tx *db.Tx) error {
		for name, trusted := range map[string]bool{"source": false, "trusted source": true} {
			id, _, _, err := SourceAsks{}.File(tx, source.Filing{
				RepoID: "web", SourceID: "s", Key: name, Title: "t", Body: "b", Trusted: trusted,
			})
			if out[name] = id; err != nil {
				return err
			}
		}
		for name, strangers := range map[string]bool{"issue of a writer": false, "issue of a stranger": true} {
			id, _, err := IssueAsks{}.File(tx, issue.Filing{
				RepoID: "web", Key: name, Title: "t", Body: "b", Trusted: true, Strangers: strangers,
			})
			if out[name] = id; err != nil {
				return err
			}
		}
		a, _, err := ask.File(tx, ask.Filing{RepoIDs: []string{"web"}, Title: "t", Body: "b"})
		out["person"] = a.ID
		return err
	})
	return out
}

// askService makes the service of the asks.
func (w *work) askService() *ask.Service {
	hub := event.NewHub()
	return ask.New(ask.Needs{
		DB: w.db, Hub: hub, Due: duetest.New(w.db, hub), Logger: discard, Judge: TriageModel{}, Queue: w.AskQueue, Boxes: AskBoxes{},
		Plans: w.AskPlans, Budgets: noStops{}, Issues: AskIssues{}, Pages: AskPages{},
	})
}

// task makes a task of web.
func (w *work) task(edit func(*task.Spec)) (t task.Row) {
	w.t.Helper()
	w.write(func(tx *db.Tx) error {
		r, err := TaskRepos{w.AskQueue.Hosts}.ByID(tx, "web")
		if err != nil {
			return err
		}
		sp := task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "Look", Problem: "Look.", Confidence: 1}
		edit(&sp)
		t, err = w.tasks.Create(tx, r, sp)
		return err
	})
	return t
}

// A run has text of strangers if the ask of its task, or of the work that its pull request
// is of, was theirs, and that goes on down the chain; a run about a fork has the fork's.
func TestWhoseTextARunHas(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		asks := w.asked()
		of := func(name string) func(*task.Spec) { return func(sp *task.Spec) { sp.AskID = new(asks[name]) } }
		given := func(what string, made task.Row, want reach.Text) {
			t.Helper()
			if err := w.tryWrite(func(tx *db.Tx) error {
				got, err := textOf(tx, &made)
				if got != want {
					t.Errorf("%s: the text is of %s, want %s", what, got, want)
				}
				return err
			}); err != nil {
				t.Error(err)
			}
		}
		given("task of a person", w.task(func(*task.Spec) {}), reach.Account)
		given("check of a group", w.task(func(sp *task.Spec) { sp.Kind = task.KindCI }), reach.Strangers)
		for name, want := range map[string]reach.Text{
			"source": reach.Strangers, "trusted source": reach.Strangers, "issue of a stranger": reach.Strangers,
			"issue of a writer": reach.Account, "person": reach.Account,
		} {
			given(name, w.task(of(name)), want)
		}
		theirs, ours := w.task(of("source")), w.task(of("person"))
		w.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Pull{ID: "theirs", Account: "acme", Repo: "web", Task: &theirs.ID},
				seed.Pull{ID: "ours", Account: "acme", Repo: "web", Task: &ours.ID, Number: 2},
				seed.Pull{ID: "people", Account: "acme", Repo: "web", Number: 3, Author: "human"},
				seed.Pull{ID: "fork", Account: "acme", Repo: "web", Number: 4, Fork: true})
		})
		for pr, want := range map[string]reach.Text{
			"theirs": reach.Strangers, "ours": reach.Account, "people": reach.Account, "fork": reach.Fork, "gone": reach.Fork,
		} {
			for _, kind := range []string{task.KindReview, task.KindCI, task.KindBabysit} {
				given(kind+" of "+pr, w.task(func(sp *task.Spec) { sp.Kind, sp.PRID = kind, &pr }), want)
			}
		}
		// What a lent box has had in its hands is the word of whoever runs it.
		gift, here := w.task(of("person")), w.task(of("person"))
		w.write(func(tx *db.Tx) error {
			return errors.Join(seed.Add(tx, seed.Pull{ID: "gift", Account: "acme", Repo: "web", Task: &gift.ID, Number: 5},
				seed.Pull{ID: "repaired", Account: "acme", Repo: "web", Task: &here.ID, Number: 6}, seed.Box{ID: "b", Account: "acme"},
				seed.Run{ID: "lent", Account: "acme", Task: gift.ID, Repo: "web", Box: "b"}))
		})
		round := w.task(func(sp *task.Spec) { sp.Kind, sp.PRID = task.KindBabysit, new("repaired") })
		w.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Run{ID: "lent round", Account: "acme", Task: round.ID, Repo: "web", Box: "b"})
		})
		onGift, onTheirs, onMerged := w.task(of("person")), w.task(of("person")), w.task(of("person"))
		onGiftToo := w.task(of("person"))
		w.write(func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Task{ID: "below", Account: "acme", Repo: "web", Status: "merged"},
				seed.Run{ID: "merged", Account: "acme", Task: "below", Repo: "web", Box: "b"})
			_, right := seed.GiveRight.Exec(tx, "merged", fleet.Gift)
			err = errors.Join(err, right)
			for on, below := range map[string]string{
				onGift.ID: gift.ID, onGiftToo.ID: onGift.ID, onTheirs.ID: theirs.ID, onMerged.ID: "below",
			} {
				_, failed := seed.SetStackedOn.Exec(tx, on, below)
				err = errors.Join(err, failed)
			}
			for _, made := range []*task.Row{&onGift, &onGiftToo, &onTheirs, &onMerged} {
				again, _, failed := task.Get(tx, "acme", made.ID)
				*made, err = again, errors.Join(err, failed)
			}
			return err
		})
		given("begun on work of strangers", onTheirs, reach.Strangers)
		given("begun on merged work of a lent box", onMerged, reach.Account)
		for _, right := range []string{fleet.Own, fleet.Shared, fleet.Consent, fleet.Gift} {
			want := reach.Account
			if right == fleet.Gift {
				want = reach.Strangers
			}
			w.write(func(tx *db.Tx) error {
				_, first := seed.GiveRight.Exec(tx, "lent", right)
				_, second := seed.GiveRight.Exec(tx, "lent round", right)
				return errors.Join(first, second)
			})
			given(right+" box", gift, want)
			given("repaired by "+right+" box", round, want)
			given("beside "+right+" box", here, reach.Account)
			given("begun on the work of "+right+" box", onGift, want)
			given("begun on that", onGiftToo, want)
			for _, pr := range []string{"gift", "repaired"} {
				for _, kind := range []string{task.KindReview, task.KindCI, task.KindBabysit} {
					made := w.task(func(sp *task.Spec) { sp.Kind, sp.PRID = kind, &pr })
					given(kind+" of what a "+right+" box made", made, want)
					w.write(func(tx *db.Tx) error {
						without, first := withoutSecrets(tx, &made)
						lent, second := RunSetup{}.OfLent(tx, &made)
						if without != (want == reach.Strangers) || lent != without {
							t.Errorf("%s of what a %s box made: without secrets %t, without the person's %t", kind, right, without, lent)
						}
						return errors.Join(first, second)
					})
				}
			}
		}
		// What a run with such text asks for is theirs, too, also once a person has approved it.
		var filed []string
		w.write(func(tx *db.Tx) error {
			from, err := originOf(tx, &theirs, "run-1")
			if err != nil {
				return err
			}
			if err := w.askService().FileOfRun(tx, ask.OfRun{Origin: from, ID: "1", Title: "More", Body: "b"}); err != nil {
				return err
			}
			filed, err = ask.OfRuns(tx, []string{"run-1"})
			return err
		})
		given("a link further", w.task(func(sp *task.Spec) { sp.AskID = &filed[0] }), reach.Strangers)
	})
}

// An ask waits if the task that it asks for may run in a weaker sandbox than the run does.
func TestWeakerSandboxWaits(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		set := func(name, isolation, more string) {
			w.write(func(tx *db.Tx) error {
				_, err := seed.PutTemplate.Exec(tx, "acme", name, `{"agent":"builtin","isolation":"`+isolation+`"`+more+`}`)
				return err
			})
		}
		for i, c := range []struct {
			of, minted, floor string
			waits             bool
			challenger        string // of minted
		}{
			{"bubblewrap", "none", "", true, ""}, {"bubblewrap", "landlock", "", true, ""}, {"landlock", "none", "", true, ""},
			{"none", "none", "", false, ""}, {"none", "bubblewrap", "", false, ""}, {"landlock", "landlock", "", false, ""},
			{"bubblewrap", "none", "bubblewrap", false, ""}, {"bubblewrap", "none", "landlock", true, ""},
			{"gone", "landlock", "", true, ""},
			{"landlock", "landlock", "", true, "none"}, {"landlock", "landlock", "", false, "bubblewrap"},
			{"landlock", "landlock", "landlock", false, "none"},
		} {
			set("of", c.of, "")
			set("minted", c.minted, "")
			if c.challenger != "" {
				set("minted", c.minted, `,"challenger":"bold","share":1`)
				set("bold", c.challenger, "")
			}
			made := w.task(func(sp *task.Spec) { sp.Template = "of" })
			if c.of == "gone" {
				made.Template = "gone"
			}
			w.write(func(tx *db.Tx) error {
				var r repo.Ref
				r.Policy.Agent.Template, r.Policy.Agent.Isolation = "minted", protocol.LeastIsolation(c.floor)
				got, err := weaker(tx, &made, r)
				if got != c.waits {
					t.Errorf("%d: %+v: weaker is %v", i, c, got)
				}
				return err
			})
		}
	})
}

// The slices of a scout's plan wait if they are in another repository than the scout's.
func TestScoutsReachTheirRepository(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		scout := w.task(func(sp *task.Spec) { sp.Kind = task.KindScout })
		asks := w.asked()
		theirs := w.task(func(sp *task.Spec) { sp.Kind, sp.AskID = task.KindScout, new(asks["source"]) })
		for _, c := range []struct {
			scout task.Row
			repos []string
			why   string
		}{
			{scout, []string{"web", "web"}, ""}, {scout, []string{"web", "shop"}, "another repository"},
			{theirs, []string{"web"}, "strangers"},
		} {
			w.write(func(tx *db.Tx) error {
				why, err := Scouts{}.Waits(tx, &c.scout, c.repos)
				if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
					t.Errorf("%v: %q", c.repos, why)
				}
				return err
			})
		}
	})
}

// A question of a run with text of strangers says so, and one of a run about a fork is not
// put.
func TestQuestionsOfRuns(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		asks := w.asked()
		w.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Box{ID: "box", Account: "acme"}, seed.Pull{ID: "fork", Account: "acme", Repo: "web", Fork: true})
		})
		blockers := blocker.New(blocker.Needs{
			DB: w.db, BaseURL: "http://x", Ring: seal.New(), Repos: BlockerRepos{}, Vault: BlockerVault{}, Tasks: BlockerTasks{w.tasks},
			Asks: BlockerAsks{},
		})
		for i, c := range []struct {
			edit func(*task.Spec)
			want string
		}{
			{func(*task.Spec) {}, "Which key?"},
			{func(sp *task.Spec) { sp.AskID = new(asks["source"]) }, byStranger + "Which key?"},
			{func(sp *task.Spec) { sp.Kind, sp.PRID = task.KindReview, new("fork") }, ""},
		} {
			made := w.task(c.edit)
			runID := "run-" + string(rune('a'+i))
			w.write(func(tx *db.Tx) error {
				if err := seed.Add(tx, seed.Run{ID: runID, Account: "acme", Task: made.ID, Repo: "web", Box: "box"}); err != nil {
					return err
				}
				return DeclareBlockers(blockers)(tx, run.Declaration[protocol.BlockerDeclared]{
					Task: &made, Run: &run.Row{ID: runID, RepoID: "web"},
					Declared: protocol.BlockerDeclared{ID: "1", Kind: "decision", Question: "Which key?"},
				})
			})
			w.write(func(tx *db.Tx) error {
				before, ok, err := question(tx, &made, reach.Action)
				if before+"Which key?" != c.want && ok || ok != (c.want != "") {
					t.Errorf("an action is asked for: %v, and begins with %q", ok, before)
				}
				if err != nil {
					return err
				}
				all, err := questionsOf.All(tx, made.ID)
				if got := strings.Join(all, "; "); got != c.want {
					t.Errorf("people are asked %q, want %q", got, c.want)
				}
				return err
			})
		}
	})
}

var questionsOf = db.Q[string](`SELECT question FROM blockers WHERE task_id = $1`)

// What answers a blocker too late is an ask that waits as one of its run would.
func TestFollowUpsOfRuns(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		asks := w.asked()
		w.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Pull{ID: "fork", Account: "acme", Repo: "web", Fork: true})
		})
		for why, edit := range map[string]func(*task.Spec){
			"": func(*task.Spec) {}, "was given text of strangers": func(sp *task.Spec) { sp.AskID = new(asks["source"]) },
			"is about a fork": func(sp *task.Spec) { sp.Kind, sp.PRID = task.KindReview, new("fork") },
		} {
			made := w.task(edit)
			w.write(func(tx *db.Tx) error {
				id, err := BlockerAsks{}.File(tx, blocker.FollowUp{
					BlockerID: "b-" + why, TaskID: made.ID, RunID: "r", RepoID: "web", Title: "Go on", Body: "b"})
				if err != nil {
					return err
				}
				a, _, err := ask.Get(tx, id)
				switch {
				case why == "" && a.State != ask.Pending:
					t.Errorf("the ask is %s", a.State)
				case why != "" && (a.State != ask.Escalated || *a.EscalationReason != reach.StrangersText ||
					!strings.Contains(a.Verdict.Reason, why)):
					t.Errorf("the ask is %s, and does not wait because its run %s: %+v", a.State, why, a.Verdict)
				}
				return err
			})
		}
	})
}

// placed is where an ask is in its chain, and the limit that it shares.
type placed struct {
	Depth        int64
	BudgetMicros *int64
	FromTask     *string
}

var placeOf = db.Q[placed](`SELECT depth, budget_micros, from_task FROM asks WHERE id = $1`)

// What a run asks for, also one that looks after a pull request, and what answers its
// blocker too late, has the limit of the work that the run is for, and follows from the ask
// of that work.
func TestAsksFollowFromTheWork(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		first, pulls := w.asked()["person"], 0
		for _, kind := range []string{task.KindWork, task.KindReview, task.KindBabysit} {
			for _, late := range []bool{false, true} {
				before := first
				for depth := int64(1); depth <= 4; depth++ {
					work := w.task(func(sp *task.Spec) { sp.AskID, sp.BudgetMicros = &before, new(int64(700_000)) })
					asker := work
					if kind != task.KindWork {
						pulls++
						pr := fmt.Sprint("pr-", pulls)
						w.write(func(tx *db.Tx) error {
							return seed.Add(tx, seed.Pull{ID: pr, Account: "acme", Repo: "web", Task: &work.ID, Number: pulls, SHA: pr})
						})
						asker = w.task(func(sp *task.Spec) { sp.Kind, sp.PRID = kind, &pr })
					}
					what, runID := fmt.Sprintf("%s, late %v, %d", kind, late, depth), "run-"+asker.ID
					who := fmt.Sprintf("The run %s of the task %q (%s) in", runID, asker.Title, asker.ID)
					w.write(func(tx *db.Tx) (err error) {
						if late {
							before, err = BlockerAsks{}.File(tx, blocker.FollowUp{
								BlockerID: "b-" + runID, TaskID: asker.ID, RunID: runID, RepoID: "web", Title: "Go on", Body: "b"})
						} else if err = FileOfRun(w.askService())(tx, run.Declaration[protocol.AskFiled]{
							Task: &asker, Run: &run.Row{ID: runID, RepoID: "web"},
							Declared: protocol.AskFiled{ID: "1", Title: "More", Body: "b"},
						}); err == nil {
							var filed []string
							filed, err = ask.OfRuns(tx, []string{runID})
							before = filed[0]
						}
						if err != nil {
							return err
						}
						at, err := placeOf.One(tx, before)
						if err != nil {
							return err
						}
						if at.Depth != depth || at.BudgetMicros == nil || *at.BudgetMicros != 700_000 || *at.FromTask != work.ID {
							t.Errorf("%s: %+v", what, at)
						}
						a, _, err := ask.Get(tx, before)
						switch {
						case depth <= 3 && a.State != ask.Pending:
							t.Errorf("%s: the ask is %s", what, a.State)
						case depth > 3 && (a.State != ask.Escalated || *a.EscalationReason != ask.ChainTooLong):
							t.Errorf("%s: the ask is %s", what, a.State)
						case depth > 3 && !strings.Contains(a.Verdict.Reason, who):
							t.Errorf("%s: a person is told %q", what, a.Verdict.Reason)
						}
						return err
					})
				}
			}
		}
	})
}

// The checks, reviews and repairs of a task go without the token of its requester if the
// task does.
func TestChecksAndRoundsLendNoToken(t *testing.T) {
	t.Parallel()
	eachWork(t, task.Uncapped, func(t *testing.T, w *work) {
		for i, unbound := range []bool{false, true} {
			made := w.task(func(sp *task.Spec) { sp.Unbound = unbound })
			pr := "pr-" + string(rune('a'+i))
			w.write(func(tx *db.Tx) error {
				err := seed.Add(tx, seed.Pull{ID: pr, Account: "acme", Repo: "web", Task: &made.ID, Number: i + 1, SHA: pr})
				if err != nil {
					return err
				}
				r, _, err := repo.ByID(tx, "web")
				if err != nil {
					return err
				}
				check, err := CheckTasks{w.tasks, w.AskQueue.Hosts}.Check(tx, r, pr, pr)
				if err != nil {
					return err
				}
				pass := review.Pass{PRID: pr, HeadSHA: pr, Title: "t", Problem: "p"}
				look, err := ReviewTasks{w.tasks, w.AskQueue.Hosts}.Queue(tx, r, pass)
				if err != nil {
					return err
				}
				for _, id := range []string{check, look} {
					beside, _, err := task.Get(tx, "acme", id)
					if err != nil {
						return err
					}
					if beside.Unbound != unbound {
						t.Errorf("the task of kind %s goes without a token: %v, want %v", beside.Kind, beside.Unbound, unbound)
					}
				}
				return nil
			})
		}
	})
}
