package pull

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// A yes to a question about protected changes names that question: the person may have
// read another question about the same head.
func TestYesNamesWhatIsProtected(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.rules("version: 1\n")
		sha := y.branch("svc/a", func() { y.file(".svc/policy.yml", "version: 1\nmerge: {mode: auto}\n") })
		pr := y.propose("svc/a", sha)
		before := y.pr(pr).PendingAction
		if before == nil || before.Protected != nil {
			t.Fatalf("asked before it was looked at: %+v", before)
		}
		y.pass(0)
		asked := y.pr(pr).PendingAction
		if asked == nil || asked.Protected == nil || asked.ID == before.ID {
			t.Fatalf("asked: %+v", asked)
		}
		for verb, body := range map[string]string{
			"approve-pending": `{"head_sha": "` + sha + `"}`,
			"merge":           `{"head_sha": "` + sha + `"}`,
			"skip-pending":    `{"head_sha": "` + sha + `", "action_id": "` + before.ID + `"}`,
		} {
			var problem map[string]any
			y.call(409, "POST", "/v1/prs/"+pr+"/"+verb, body, &problem)
			if problem["reason"] != "question_changed" || problem["question"] != asked.Question || problem["action_id"] != asked.ID {
				t.Errorf("%s: %v", verb, problem)
			}
		}
		y.wantActions(pr, "stale pending")
		if need := y.pr(pr).NeedsPerson; need == nil || need.Args["action_id"] != asked.ID {
			t.Errorf("it needs %+v", need)
		}
		y.call(200, "POST", "/v1/prs/"+pr+"/merge", `{"head_sha": "`+sha+`", "action_id": "`+asked.ID+`"}`, nil)
		y.pass(0)
		y.wantState(pr, record.Merged)
	})
}

// The answer names the time of a next round only if a round will begin.
func TestNoRoundsOfADisabledRepository(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.policy(checked)
		pr := y.propose("svc/a", y.commit("svc/a", "a", "1\n"))
		y.checked(y.check[0], &one)
		y.ended(pr, false)
		if at := y.pr(pr).Babysit.NextRoundAt; at == nil {
			t.Error("no next round")
		}
		y.enable(false)
		y.pass(0)
		if at := y.pr(pr).Babysit.NextRoundAt; at != nil {
			t.Errorf("the next round is at %v", at)
		}
		y.wantNeed(pr, record.NeedsEnable, "project.update")
		y.enable(true)
		y.full = true
		var out Rearmed
		y.call(202, "POST", "/v1/prs/"+pr+"/rearm-babysit", `{"reason": "now"}`, &out)
		if at := out.Babysit.QueueFullSince; at == nil || at.UnixMicro() != y.clock.Load() || out.Babysit.NextRoundAt != nil {
			t.Errorf("armed again, the queue is full since %v", at)
		}
	})
}

// Spent says that every task has cost the same.
func (y tasks) Spent(_ *db.Tx, ids []string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, id := range ids {
		out[id] = 1_200_000
	}
	return out, nil
}
