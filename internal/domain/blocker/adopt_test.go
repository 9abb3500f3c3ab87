package blocker

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/op"
	"yardmaster/internal/protocol"
)

// TestAdoption: a run that asks for what an earlier one of its task still waits
// for asks for it once more of nobody, and is the one that is told; and so is a
// run told what only the earlier one had asked.
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
		if len(f.resumed) != 2 || f.resumed[0] != "live" || f.resumed[1] != "live" || !strings.Contains(f.words[0], "DEPLOY_KEY") || !strings.Contains(f.words[1], "Left.") {
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
