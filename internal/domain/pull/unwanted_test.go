package pull

import (
	"testing"

	"yardmaster/internal/domain/pull/record"
)

// What a head changes that it should not is shown with it, and with the question about it; it
// holds nothing up. Nothing is shown until somebody has looked at a new head.
func TestWhatIsUnwanted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy("version: 1\nmerge: {mode: ask}\n")
		sha := y.commit("svc/a", "lib/__pycache__/a.pyc", "1\n")
		prID := y.propose("svc/a", sha)
		y.pass(0)
		is := func(u *record.Unwanted, want int) {
			t.Helper()
			if u == nil || len(u.Files) != want || u.More != 0 || want == 1 && u.Files[0] !=
				(record.UnwantedFile{Kind: "made_by_tool", Path: "lib/__pycache__/", Count: 1}) {
				t.Errorf("unwanted: %+v", u)
			}
		}
		is(y.pr(prID).Unwanted, 1)
		y.wantNeed(prID, record.NeedsDecision, "pr.approve_pending")
		var asked struct {
			Data []struct{ Unwanted *record.Unwanted }
		}
		y.call(200, "GET", "/v1/approvals", "", &asked)
		if len(asked.Data) != 1 {
			t.Fatalf("%+v", asked)
		}
		is(asked.Data[0].Unwanted, 1)

		y.git("checkout", "--quiet", "svc/a")
		y.git("rm", "--quiet", "lib/__pycache__/a.pyc")
		sha = y.commit("svc/a", "lib/a.py", "1\n")
		y.push("svc/a")
		y.reported("svc/a", sha)
		if got := y.pr(prID); got.Unwanted != nil {
			t.Errorf("before anybody has looked: %+v", got.Unwanted)
		}
		y.pass(0)
		is(y.pr(prID).Unwanted, 0)
	})
}
