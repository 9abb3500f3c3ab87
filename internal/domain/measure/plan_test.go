package measure

import (
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
)

// What is counted is read by an index of the account and the time, or of what is
// open: no table is read whole, however long it is.
func TestNothingIsScanned(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"SELECT p.id AS pr_id":                        "pulls USING INDEX pulls_merged (account_id=? AND merged_at>? AND merged_at<?)",
		"SELECT t.id AS task_id":                      "tasks USING INDEX tasks_finished (account_id=? AND finished_at>? AND finished_at<?)",
		"status IN ('completed', 'merged', 'failed')": "tasks USING COVERING INDEX tasks_finished (account_id=? AND finished_at>? AND finished_at<?)",
		"SELECT COALESCE(CAST(SUM(CASE":               "tasks USING COVERING INDEX tasks_ended (repo_id=? AND status=? AND finished_at>? AND finished_at<?)",
		"FROM b CROSS JOIN repos r":                   "tasks USING COVERING INDEX tasks_repo (repo_id=? AND created_at>? AND created_at<?)",
		"SELECT 0 AS merged FROM pulls":               "pulls USING INDEX pulls_closed (account_id=? AND closed_at>? AND closed_at<?)",
		"status IN ('passed', 'failed')":              "ci_runs USING INDEX ci_runs_finished (account_id=? AND finished_at>? AND finished_at<?)",
		"SELECT COUNT(*) FROM pulls WHERE account_id": "pulls USING COVERING INDEX pulls_merged (account_id=? AND merged_at>? AND merged_at<?)",
		"COUNT(DISTINCT session_id) AS sessions":      "spend_minutes USING INDEX sqlite_autoindex_spend_minutes_1 (account_id=? AND minute>? AND minute<?)",
		"CASE WHEN outcome = 'succeeded'":             "runs USING INDEX runs_ended (account_id=? AND ended_at>? AND ended_at<?)",
		"SELECT failure_kind AS kind":                 "runs USING INDEX runs_ended (account_id=? AND ended_at>? AND ended_at<?)",
		"SELECT a.decided_at - a.requested_at":        "a USING INDEX pull_actions_decided (account_id=? AND decided_at>? AND decided_at<?)",
		"SUM(CASE WHEN p.merged_at - t.created_at <=": "p USING INDEX pulls_repo_merged (repo_id=? AND merged_at>? AND merged_at<?)",
		"SUM(CASE WHEN queued_at >=":                  "tasks USING INDEX tasks_ready (account_id=? AND repo_id=?)",
		"SELECT p.id, p.title, p.head_ref":            "p USING INDEX pulls_repo_merged (repo_id=? AND merged_at>? AND merged_at<?)",
		"SELECT 'approval' AS kind":                   "pull_actions USING INDEX pull_actions_account (account_id=?)",
		"SELECT 'blocker' AS kind":                    "blockers USING INDEX blockers_state (account_id=?",
		"SELECT 'escalation' AS kind":                 "escalations USING INDEX escalations_open (account_id=?",
		"SELECT 'plan' AS kind":                       "plan_progress USING COVERING INDEX plan_progress_bucket (account_id=? AND bucket=?)",
		"SELECT 'task' AS kind":                       "tasks USING INDEX tasks_status (account_id=? AND status=?)",
		"SELECT 'pr' AS kind":                         "pulls USING INDEX pulls_account_state (account_id=? AND state=?)",
	} {
		got := dbtest.Plan(t, part)
		if !strings.Contains(got, want) {
			t.Errorf("%s: it is not read by %s:\n%s", part, want, got)
		}
		for line := range strings.Lines(got) {
			for _, table := range []string{
				"pulls", "tasks", "ci_runs", "spend_minutes", "pull_actions", "blockers", "escalations", "plans", "repos",
			} {
				if strings.HasPrefix(line, "SCAN "+table) {
					t.Errorf("%s: %s", part, line)
				}
			}
		}
	}
}
