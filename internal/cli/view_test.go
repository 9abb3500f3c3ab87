package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A task is shown with what it waits for in words, and without what is for programs. What
// another capability answers of it names no next command, for it is no task.
func TestViewOfTask(t *testing.T) {
	t.Parallel()
	const id = "3e327a16-1a1e-4636-a707-98e1e51d64e4"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/report") {
			fmt.Fprintf(w, `{"task_id": %q, "status": "merged", "report": "Done."}`, id)
			return
		}
		fmt.Fprintf(w, `{"id": %q, "title": "Fix it", "status": "awaiting_review", "sink": "queued",
			"created_by": "user:01a20a69-562f-747a-a170-52baf2489805", "holds": [{"reason": "needs_person",
			"clears_when": "a person decides about the merge (pr.approve_pending of the pull request 7)",
			"clear": {"capability": "pr.approve_pending", "args": {"id": "7"}}}]}`, id)
	}))
	defer server.Close()
	_, task, errs := yardmasterAt(t, server.URL, "task", "view", id)
	for _, want := range []string{"Fix it", "It waits for a person, until a person decides about the merge.\n", "yardmaster pr approve 7"} {
		if !strings.Contains(task, want) {
			t.Errorf("%q is not in\n%s%s", want, task, errs)
		}
	}
	for _, not := range []string{"sink", "user:", "approve_pending"} {
		if strings.Contains(task, not) {
			t.Errorf("%q is in\n%s", not, task)
		}
	}
	_, report, errs := yardmasterAt(t, server.URL, "task", "report", id)
	if !strings.Contains(report, "Done.") || strings.Contains(report, "yardmaster") {
		t.Errorf("the report is\n%s%s", report, errs)
	}
}

// A plan that is filed is named in the commands that come next, and its groups by their
// names when it is shown.
func TestFiledPlan(t *testing.T) {
	t.Parallel()
	const id, first = "01a20a88-6be6-7438-82d7-a6a67124bc4c", "01a20a88-6be6-7710-9fb9-61779d4caef8"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			fmt.Fprintf(w, `{"plan_id": %q, "kind": "created", "status": "held", "task_ids": []}`, id)
			return
		}
		fmt.Fprintf(w, `{"id": %q, "title": "Retries", "status": "held", "groups": [{"id": %q, "plan_id": %[1]q, "slug": "01-name"},
			{"id": "7", "plan_id": %[1]q, "slug": "02-try", "upstream": [{"group_id": %[2]q, "kind": "ordering_only"}]}]}`, id, first)
	}))
	defer server.Close()
	_, made, errs := yardmasterAt(t, server.URL, "plan", "execute", "plans/retries", "--repo", "acme/web")
	if !strings.Contains(made, id) || !strings.Contains(errs, "yardmaster plan view "+id) {
		t.Errorf("it says\n%s%s", made, errs)
	}
	_, shown, errs := yardmasterAt(t, server.URL, "plan", "view", id)
	if !strings.Contains(shown, "01-name (order only)") || strings.Contains(shown, "group_id") {
		t.Errorf("it shows\n%s%s", shown, errs)
	}
}

// On 80 columns nothing of an answer is cut: what a table has no room for is written object by
// object, long lines are broken within the screen, and texts keep their indentation. Nor is help cut.
func TestNothingIsCutOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	const why = "Every other character becomes a hyphen, and hyphens at both ends are dropped, so that nothing is left."
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/policy") {
			fmt.Fprint(w, `{"policy": {"rounds": [{"name": "first", "on": true}]}, "yml": "checks:\n  command: go test\n"}`)
			return
		}
		fmt.Fprintf(w, `{"data": [{"id": %q, "claim": "It is empty.", "why": %q, "file": "slug.sh"}], "next_cursor": null}`, someID, why)
	}))
	defer server.Close()
	p := newPerson(t, "YARDMASTER_URL="+server.URL, "YARDMASTER_TOKEN=t", "NO_COLOR=1")
	p.cols = 80
	for args, want := range map[string]string{
		"pr findings " + someID: why, "repo policy acme/web": "  checks:\n    command: go test\n",
		"help": "create, list, view, watch, log, cancel, reassign, redispatch, attempts, stalls, retry, timeline, report", "help webhook create": "teams, discord",
	} {
		shown, code := p.terminal(strings.Fields(args))
		shown = strings.ReplaceAll(shown, "\r\n", "\n")
		if code != 0 || !strings.Contains(shown, want) && !strings.Contains(strings.Join(strings.Fields(shown), " "), want) {
			t.Errorf("%s: exit code %d, %q is not in\n%s", args, code, want, shown)
		}
		for line := range strings.Lines(shown) {
			if n := len([]rune(line)) - 1; n > 80 && !strings.HasPrefix(line, "  yardmaster ") { // examples are to be copied
				t.Errorf("%s: %d columns: %s", args, n, line)
			}
		}
		if strings.Contains(args, "policy") && !strings.Contains(shown, "policy rounds\nNAME   ON\nfirst  yes\n") {
			t.Errorf("the rounds are no table:\n%s", shown)
		}
	}
}
