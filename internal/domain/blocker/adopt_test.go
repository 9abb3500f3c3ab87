package blocker

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/protocol"
)

// TestAdoption: a run that asks for the same as an open blocker of an earlier run of
// its task gets that blocker, and the answer. It also gets the answers to blockers
// that only the earlier run has declared.
func TestAdoption(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		key := func(id, question string) protocol.BlockerDeclared {
			return protocol.BlockerDeclared{ID: id, Kind: MissingCredential, Question: question,
				Fields: []protocol.BlockerField{{Name: "DEPLOY_KEY", Kind: EnvSecret, Description: question}}}
		}
		ask := func(run string, b protocol.BlockerDeclared) {
			t.Helper()
			f.write(func(tx *db.Tx) error { return f.Declare(tx, "repo", "task", run, b) })
		}
		open := func() []Blocker {
			t.Helper()
			page, err := f.list(f.ctx(), listIn{PageIn: op.PageIn{PerPage: 100}})
			if err != nil {
				t.Fatal(err)
			}
			return page.Data
		}
		decision := protocol.BlockerDeclared{ID: "d", Kind: "decision", Question: "Left or right?"}
		ask("dead", key("k", "Where is the key?"))
		ask("dead", decision)
		f.live, f.how = "live", Woken
		for range 2 {
			ask("live", key("other name", "Please give me the key."))
		}
		if got := open(); len(got) != 2 || got[0].RunID != "live" || got[1].RunID != "dead" {
			t.Fatalf("open are %+v", got)
		}
		ask("live", protocol.BlockerDeclared{ID: "x", Kind: "decision", Question: "Up or down?"})
		if got := open(); len(got) != 3 {
			t.Fatalf("another question is taken for the same: %+v", got)
		}
		f.write(func(tx *db.Tx) error { // and is cleared
			r, err := f.lock(tx, open()[2].ID)
			if err == nil {
				err = f.finish(tx, &r, Withdrawn, nil)
			}
			return err
		})
		if out, err := f.put(open()[0].ID, "DEPLOY_KEY", "secret"); err != nil || out.Kind != Woken {
			t.Errorf("filled in: %+v, %v", out, err)
		}
		if out, err := f.answer(f.ctx(), answerIn{open()[0].ID, "Left."}); err != nil || out.Kind != Woken {
			t.Errorf("answered: %+v, %v", out, err)
		}
		if len(f.resumed) != 2 || f.resumed[0] != "live" || f.resumed[1] != "live" || !strings.Contains(f.words[0], "DEPLOY_KEY") ||
			!strings.Contains(f.words[1], "Left.") {
			t.Errorf("told %v: %q", f.resumed, f.words)
		}
		f.write(func(tx *db.Tx) error {
			if n, err := countOf.One(tx, "blocker.adopted"); err != nil || n != 1 {
				t.Errorf("%d adoptions on record, %v", n, err)
			}
			return nil
		})
	})
}

// TestAnsweredWhileAskedAgain: a person closes a blocker of an earlier run while the
// live run is about to declare the same. Whichever comes first, nobody is asked
// twice, and the live run gets the answer. Declared once more it is a new blocker.
func TestAnsweredWhileAskedAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		decision := func(id, name string) protocol.BlockerDeclared { // a decision has no fields
			return protocol.BlockerDeclared{ID: id, Kind: "decision", Question: "Left  or right?",
				Fields: []protocol.BlockerField{{Name: name, Kind: EnvSecret}}}
		}
		form := func(id, _ string) protocol.BlockerDeclared {
			return protocol.BlockerDeclared{ID: id, Kind: MissingCredential, Question: "Where?",
				Fields: []protocol.BlockerField{{Name: "docs", Kind: MCPServer}, {Name: "KEY", Kind: EnvSecret}}}
		}
		open := func() (ids []string) {
			t.Helper()
			page, err := f.list(f.ctx(), listIn{PageIn: op.PageIn{PerPage: 100}})
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range page.Data {
				ids = append(ids, b.ID)
			}
			return ids
		}
		say := map[string]func(string) error{
			"answered": func(id string) error { _, err := f.answer(f.ctx(), answerIn{id, "Left."}); return err },
			"filled in": func(id string) error {
				return f.DB.Write(f.ctx(), func(tx *db.Tx) error {
					r, err := f.lock(tx, id)
					if err == nil {
						_, err = f.fillIn(tx, &r, map[string]entry{"KEY": {text: "v"},
							"mcp:docs": {server: &server{URL: "https://docs.example/mcp", Transport: "http", Token: "t"}}})
					}
					return err
				})
			},
			"withdrawn": func(id string) error { _, err := f.withdraw(f.ctx(), blockerIn{id}); return err },
		}
		hears := map[string][]string{"answered": {"Left or right?", "Left."}, "filled in": {"Where?", "KEY", "https://docs.example/mcp"},
			"withdrawn": {withdrawnText}}
		for how, person := range say {
			of := decision
			if how == "filled in" {
				of = form
			}
			for round := range 8 {
				dead, live := fmt.Sprint("dead ", how, round), fmt.Sprint("live ", how, round)
				declare := func(run, id string) error {
					return f.DB.Write(f.ctx(), func(tx *db.Tx) error { return f.Declare(tx, "repo", "task", run, of(id, "A")) })
				}
				f.live, f.how = dead, Woken
				if err := declare(dead, "k"); err != nil {
					t.Fatal(err)
				}
				asked := open()
				if len(asked) != 1 {
					t.Fatalf("open are %q", asked)
				}
				f.live, f.words, f.resumed = live, nil, nil
				again := func() error { return declare(live, "another name") }
				switch round {
				case 0: // the answer is first
					errs(t, person(asked[0]), again(), again())
				case 1:
					errs(t, again(), person(asked[0]), again())
				default:
					var wg sync.WaitGroup
					wg.Go(func() { errs(t, person(asked[0])) })
					wg.Go(func() { errs(t, again()) })
					wg.Wait()
				}
				if left := open(); len(left) != 0 {
					t.Fatalf("%s, round %d: %q are asked again", how, round, left)
				}
				for i, run := range f.resumed {
					if run != live {
						t.Errorf("%s: %s is told", how, run)
					}
					for _, want := range hears[how] {
						if strings.Count(f.words[i], want) != 1 {
							t.Errorf("%s, round %d: told %q, want %q once", how, round, f.words, want)
						}
					}
				}
				if len(f.resumed) == 0 {
					t.Errorf("%s, round %d: nobody is told", how, round)
				}
				if round == 0 {
					errs(t, declare(live, "once more"))
					if left := open(); len(left) != 1 {
						t.Fatalf("%s: asked for again after the answer, %q are open", how, left)
					}
					errs(t, person(open()[0]))
				}
			}
		}
	})
}

func errs(t *testing.T, all ...error) {
	t.Helper()
	if err := errors.Join(all...); err != nil {
		t.Error(err)
	}
}
