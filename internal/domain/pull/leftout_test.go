package pull

import (
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/protocol"
)

// TestLeftOut holds that what runs have left out is with the pull request and the question
// about it, of all runs, on each of its heads.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: ask}\n")
		prID := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		note := func(left ...protocol.LeftOut) {
			y.write(func(tx *db.Tx) error { return y.NoteLeftOut(tx, prID, left) })
		}
		if got := y.pr(prID).LeftOut; got == nil || len(got) > 0 {
			t.Errorf("at first %v", got)
		}
		web := protocol.LeftOut{Kind: protocol.LeftRepository, Name: "web", Why: "a repository of its own"}
		model := protocol.LeftOut{Kind: protocol.LeftFile, Name: "model.bin", Why: "larger than 50 MB"}
		again := protocol.LeftOut{Kind: protocol.LeftFile, Name: "model.bin", Why: "it cannot be read"}
		note(web, model)
		note()
		note(again)
		y.pass(0)
		want := []protocol.LeftOut{again, web}
		if got := y.pr(prID).LeftOut; !slices.Equal(got, want) {
			t.Errorf("the pull request: %v", got)
		}
		y.wantNeed(prID, record.NeedsDecision, "pr.approve_pending")
		var asked struct {
			Data []Approval
		}
		y.call(200, "GET", "/v1/approvals", "", &asked)
		if len(asked.Data) != 1 || !slices.Equal(asked.Data[0].LeftOut, want) {
			t.Errorf("the question: %+v", asked)
		}
		sha := y.commit("svc/a", "b", "1\n")
		y.push("svc/a")
		y.reported("svc/a", sha)
		if got := y.pr(prID).LeftOut; !slices.Equal(got, want) {
			t.Errorf("at another head: %v", got)
		}
	})
}

func TestWithLeftOut(t *testing.T) {
	t.Parallel()
	if got := WithLeftOut("Done.", nil); got != "Done." {
		t.Error(got)
	}
	got := WithLeftOut("Done.\n", []protocol.LeftOut{{Kind: protocol.LeftFile, Name: "a`b\nc", Why: "too\nlarge"},
		{Kind: protocol.LeftBranch, Name: "own", Why: "1 commit"}})
	want := "Done.\n\nMade by the agent, and not in this pull request:\n\n* `\"a'b\\nc\"`: too large\n* branch `own`: 1 commit"
	if got != want {
		t.Errorf("%q", got)
	}
}
