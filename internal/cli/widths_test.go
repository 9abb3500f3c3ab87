package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/terminal"
)

// widthsAnswers are what the server answers, by method and path. {3h} is the time three hours ago.
var widthsAnswers = map[string]string{
	"GET /v1/prs/" + someID + "/findings": `{"data": [{"id": "` + otherID + `", "state": "open", "holds_merge": true, "file": "web/footer.go",
		"side": "RIGHT", "line": 12, "severity": "high", "claim": "A cart without a line has a total of nothing, and is paid.",
		"why": "The sum of no lines is 0, and what costs nothing is marked as paid without a question.", "how_to_see": "go test ./web -run Empty",
		"evidence": "x", "created_at": "{3h}"}], "next_cursor": null}`,
	"GET /v1/prs/" + someID + "/review-runs": `{"data": [{"id": "` + otherID + `", "status": "completed", "verdict": "changes_requested",
		"created_at": "{3h}", "head_sha": "1987ad87a1e42e31", "findings_kept": 1, "note": null}], "next_cursor": null}`,
	"GET /v1/tasks/" + someID + "/attempts": `{"data": [
		{"id": "` + someID + `", "attempt": 1, "state": "ended", "outcome": "failed", "failure_kind": "run_timeout", "created_at": "{2d}",
			"ended_at": "{26h}", "usage": {"cost_usd": "1.80"}, "pushed_sha": null, "model": "model-1", "agent": "claude", "box_id": "` + otherID + `"},
		{"id": "` + otherID + `", "attempt": 2, "state": "ended", "outcome": "succeeded", "failure_kind": null, "created_at": "{3h}",
			"ended_at": "{2h}", "usage": {"cost_usd": "0.42"}, "pushed_sha": "1987ad87a1e42e31", "model": "model-2", "agent": "claude",
			"box_id": "` + otherID + `"}], "next_cursor": null}`,
	"GET /v1/plans/" + someID: `{"id": "` + someID + `", "planId": "` + someID + `", "repo": "acme/web", "title": "Try again when the network fails",
		"status": "running", "bucket": "active", "source": "file", "dir": "plans/retries", "merged": 1, "total": 2, "note": null,
		"created_at": "{2d}", "groups": [
		{"id": "` + someID + `", "slug": "backoff", "title": "Wait longer after each failure", "status": "done", "files": ["net/retry.go"],
			"upstream": [], "tasks": [{"id": "` + someID + `", "status": "merged"}]},
		{"id": "` + otherID + `", "slug": "callers", "title": "Have every caller of the client try again", "status": "running",
			"files": ["net/client.go", "cmd/fetch.go"], "upstream": [{"group_id": "` + someID + `", "kind": "hard"}],
			"tasks": [{"id": "` + otherID + `", "status": "awaiting_ci"}]}]}`,
	"GET /v1/tasks/" + someID + "/report": `{"task_id": "` + someID + `", "status": "merged", "report": "The footer computes the year when the page is rendered.\nAll tests pass.",
		"report_md": "final_turn", "report_missing": false, "artifacts": [], "ask_ids": [], "blocker": null, "runs_seen": 2}`,
	"GET /v1/billing/usage": `{"period": "2026-11", "spent_usd": "12.40", "reserved_usd": "0.00", "sessions": 31, "calls": 208, "unpriced_calls": 0,
		"days": [{"day": "2026-11-28", "spent_usd": "7.10", "calls": 120, "unpriced_calls": 0}],
		"members": [{"user_id": "` + someID + `", "login": "ada", "spent_usd": "12.40", "reserved_usd": "0.00", "cap_usd": "50.00"}],
		"models": [{"name": "model-1", "spent_usd": "12.40", "sessions": 31, "calls": 208, "unpriced_calls": 0}],
		"repos": [{"name": "acme/web", "spent_usd": "12.40", "sessions": 31, "calls": 208, "unpriced_calls": 0}], "kinds": [], "given_usd": "0.00",
		"tasks": [{"id": "` + someID + `", "name": "Mend the total of a cart", "spent_usd": "12.40", "given_usd": "0.00", "sessions": 1, "calls": 4,
			"unpriced_calls": 0}]}`,
	"POST /v1/org/members": `{"kind": "invited", "member": null, "invitation": {"id": "inv_` + someID + `",
		"email": "bob@example.com", "login": null, "role": "member"}, "link": "https://yard.example.com/invite/dev_inv_1"}`,
	"GET /v1/tasks": `{"data": [
		{"id": "` + someID + `", "status": "running", "kind": "work", "created_at": "{3h}", "claimed_at": "{2h}", "repo": "acme/web",
			"title": "Compute the year of the footer when the page is rendered", "attempt": 2, "queue_position": null, "box_id": "` + otherID + `",
			"holds": [], "budget": {"spent": "0.42"}, "activity": "go test ./web -run Footer"},
		{"id": "` + otherID + `", "status": "held", "kind": "review", "created_at": "{2d}", "repo": "acme/web", "title": "Review #3", "attempt": 0,
			"queue_position": null, "box_id": null, "holds": [{"reason": "budget_exhausted"}], "budget": {"spent": null}}], "next_cursor": null}`,
	"GET /v1/prs": `{"data": [{"id": "` + someID + `", "repo": "acme/web", "number": 3, "state": "open", "checks": "passed", "created_at": "{3h}",
		"head_ref": "svc/compute-the-year--12345678", "size": {"additions": 12, "deletions": 3}, "review": {"state": "reviewed", "verdict": "success"},
		"needs_person": {"why": "approval"}, "title": "Compute the year of the footer"}], "next_cursor": null}`,
	"GET /v1/runners": `{"data": [{"id": "` + otherID + `", "name": "builder", "state": "enrolled", "slots": 2,
		"presence": {"status": "online", "last_beat": "{2m}", "active": 1, "telemetry": {"disk_free": 45260038144}}}], "next_cursor": null}`,
	"GET /v1/actors": `{"data": [{"actor": "box:` + otherID + `", "name": "builder"}, {"actor": "user:` + someID + `", "name": "ada"}]}`,
}

var (
	before = regexp.MustCompile(`\{(\d+)([mhd])\}`)
	clock  = regexp.MustCompile(`\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?`)
)

// What the commands that people read most show fits terminals of 60, 80 and 200 columns: the columns that matter
// stay, and no row of a table is wider. -update writes what they show.
func TestWidths(t *testing.T) {
	t.Parallel()
	now := time.Now()
	answers := map[string]string{}
	for at, text := range widthsAnswers {
		answers[at] = before.ReplaceAllStringFunc(text, func(ago string) string {
			m := before.FindStringSubmatch(ago)
			d, err := time.ParseDuration(m[1] + map[string]string{"m": "m", "h": "h", "d": "h"}[m[2]])
			if err != nil {
				t.Fatal(err)
			}
			if m[2] == "d" {
				d *= 24
			}
			return now.Add(-d).UTC().Format(time.RFC3339)
		})
	}
	f := newFake(t, answers)
	p := f.person(t, "NO_COLOR=1")
	for _, cols := range []uint16{60, 80, 200} {
		p.cols = cols
		var out strings.Builder
		for _, args := range []string{"task list", "pr list", "pr findings " + someID, "pr reviews " + someID, "task attempts " + someID,
			"plan view " + someID, "task report " + someID, "budget usage", "member invite bob@example.com", "box top --once"} {
			shown, code := p.terminal(strings.Fields(args))
			shown = strings.ReplaceAll(strings.ReplaceAll(shown, "\r\n", "\n"), "\x1b[K", "")
			fmt.Fprintf(&out, "$ yardmaster %s\n%s\n", args, clock.ReplaceAllString(shown, "TIME"))
			if code != 0 {
				t.Errorf("%s ends with %d:\n%s", args, code, shown)
			}
			for line := range strings.Lines(shown) {
				if line = strings.TrimRight(line, "\n"); terminal.Width(line) > int(cols) && strings.Contains(line, "  ") {
					t.Errorf("%s at %d columns: a row is wider: %q", args, cols, line)
				}
			}
		}
		file := fmt.Sprintf("testdata/widths/%d.txt", cols)
		if *update {
			if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if out.String() != string(want) {
			t.Errorf("%d columns: %s", cols, difference(string(want), out.String()))
		}
	}
}
