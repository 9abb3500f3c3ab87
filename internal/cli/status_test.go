package cli

import (
	"slices"
	"strings"
	"testing"
)

// The status of an account in which nothing was ever done has its first steps.
func TestStatusOfAFreshAccount(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"GET /v1/next-steps": `{"begun": false, "rungs": [
		{"rung": "repository", "state": "done", "title": "Add a repository", "command": "yardmaster repo add PATH"},
		{"rung": "model_key", "state": "open", "title": "Add a model key", "command": "yardmaster key add --provider anthropic"}]}`}
	for _, list := range []string{"approvals", "blockers", "escalations", "plans", "tasks", "queue/status", "prs", "runners", "webhooks"} {
		answers["GET /v1/"+list] = `{"data": []}`
	}
	f := newFake(t, answers)
	p := f.person(t)
	p.holds("status", 0, "Add a model key\n", "yardmaster key add --provider anthropic", "yardmaster task create", "!repo add",
		"!Nothing waits")
	p.holds("status --jq .first_steps[0].title", 0, "Add a model key")
	f.answers["GET /v1/next-steps"] = `{"begun": true, "rungs": []}`
	p.holds("status", 0, "Nothing waits or runs, and nothing went wrong in the last 24 h.", "!task create")
	delete(f.answers, "GET /v1/webhooks")
	p.holds("status", 0, "Nothing of what your token may read waits", "!Nothing waits")
	p.holds("status --jq .unread", 0, `"dead_webhooks"`)
}

// What to do about blockers is said as each of them is: a form, or a question. Reasons are words.
func TestStatusOfBlockers(t *testing.T) {
	t.Parallel()
	const form = `{"id": "` + someID + `", "kind": "missing_credential", "state": "open", "question": "A token?", "form": {"fields": []}}`
	const question = `{"id": "01890000-0000-7000-8000-0000000000bb", "kind": "decision", "state": "open", "question": "Which?", "form": null}`
	f := newFake(t, map[string]string{"GET /v1/blockers": `{"data": [` + question + `]}`,
		"GET /v1/queue/status": `{"data": [{"reason": "boxes_busy", "count": 2, "clears_when": "it is over, at 2020-01-02T03:04:05Z, or (task.retry_now of the API)",
			"clear": {"capability": "task.retry_now", "args": {"id": "1"}}},
			{"reason": "unpriced_model", "count": 1, "clears_when": "somebody says what it costs",
			"clear": {"capability": "billing.price_set", "args": {"provider": "openai", "model": "gpt-5"}}}]}`,
		"GET /v1/escalations": `{"data": [{"id": "` + someID + `", "category": "ci_ladder_spent", "title": "It is stuck"}]}`})
	p := f.person(t)
	p.holds("status", 0, "yardmaster blocker answer ID", "!blocker fill", "boxes busy", "!boxes_busy", "ci ladder spent")
	p.holds("task stalls", 0, "boxes busy", "it is over, ", " ago, or", "!2020-01-02", "!task.retry_now",
		"\n  What moves it: yardmaster task retry 1\n",
		"\n  What moves it: yardmaster key prices set openai gpt-5 --input-usd USD --output-usd USD\n")
	p.holds("status", 0, "\n  What moves it: yardmaster task retry 1\n")
	f.answers["GET /v1/blockers"] = `{"data": [` + form + `]}`
	p.holds("status", 0, "yardmaster blocker fill ID", "!blocker answer", "missing credential")
	f.answers["GET /v1/blockers"] = `{"data": [` + form + `, ` + question + `]}`
	p.holds("status", 0, "yardmaster blocker fill ID for a form", "yardmaster blocker answer ID")
}

// The status fits the terminal.
func TestStatusFits(t *testing.T) {
	t.Parallel()
	const row = `{"id": "` + someID + `", "kind": "decision", "state": "open", "question": "Which?", "form": `
	f := newFake(t, map[string]string{"GET /v1/overview/counts": `{"pending_approvals": 12, "open_prs": 34, "merged_prs_24h": 56}`,
		"GET /v1/overview/burn": `{"cost_usd": "1234.56"}`,
		"GET /v1/blockers":      `{"data": [` + row + `null}, {"id": "` + otherID + row[len(`{"id": "`+someID):] + `{"fields": []}}]}`})
	for _, width := range []uint16{60, 80} {
		p := f.person(t)
		p.cols = width
		for line := range strings.Lines(p.holds("status", 0, "spent in the last hour $1234.56", "yardmaster blocker fill ID for a form")) {
			if line = strings.TrimRight(line, "\n"); len([]rune(line)) > int(width) || strings.TrimRight(line, " ") != line {
				t.Errorf("at %d: %q", width, line)
			}
		}
	}
}

// What the token may not read is told with the scopes that it takes, and what is not shown with the command
// that lists it.
func TestStatusTellsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	var rows []string
	for range 8 {
		rows = append(rows, `{"id": "`+someID+`", "status": "running", "title": "Mend it"}`)
	}
	f := newFake(t, map[string]string{"GET /v1/tasks": `{"data": [` + strings.Join(rows, ", ") + `]}`})
	f.refuses = map[string]string{"GET /v1/approvals": `{"type": "/problems/missing-scope", "status": 403, "missing_scopes": ["read:prs"]}`}
	p := f.person(t)
	p.holds("status", 0, "3 more: yardmaster task list --status running,claimed\n", "Not shown: approvals (needs read:prs), blockers",
		"!and more")
	p.holds("status --jq .needs.approvals[0]", 0, "read:prs")
	p.holds("status --jq .more.running", 0, "3")
	// A list that goes on may have more of them, and what stands in one part does in no other.
	f.answers["GET /v1/tasks"] = `{"data": [` + strings.Join(slices.Repeat(rows, 13)[:100], ", ") + `], "next_cursor": "on"}`
	f.answers["GET /v1/prs"] = `{"data": [{"id": "01890000-0000-7000-8000-0000000000bb", "state": "open", "needs_person": {"why": "check_missing"}}]}`
	f.answers["GET /v1/escalations"] = `{"data": [{"id": "` + someID + `", "pr_id": "01890000-0000-7000-8000-0000000000bb", "title": "Asked"}]}`
	p.holds("status", 0, "95 or more besides: yardmaster task list --status running,claimed\n", "!was handed to people", "!Asked")
	p.holds("status --jq .at_least", 0, `"running"`)
	p.cols = 60
	for line := range strings.Lines(p.holds("status", 0, "Not shown: approvals")) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 60 {
			t.Errorf("%q", line)
		}
	}
}
