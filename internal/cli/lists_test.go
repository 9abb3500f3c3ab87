package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
	"yardmaster/internal/terminal"
)

// What belongs to an object is listed like all else: in a person's order, with all, limit and
// forms; where there is none, that is said.
func TestListsUnder(t *testing.T) {
	t.Parallel()
	row := func(of string) string { return `{"data": [` + of + `], "next_cursor": null}` }
	f := newFake(t, map[string]string{
		"GET /v1/prs/" + someID + "/review-runs":                row(`{"id": "r1", "status": "done", "verdict": "good", "title": "Mend it"}`),
		"GET /v1/prs/" + otherID + "/findings":                  row(""),
		"GET /v1/repos/acme/web/reviews":                        row(`{"id": "r1", "status": "done", "repo": "acme/web", "number": 3, "title": "Mend it"}`),
		"GET /v1/repos/acme/web/flakes":                         row(`{"id": "f", "job": "test", "test": "TestX", "error": "timeout", "seen": 2, "runs": 9}`),
		"GET /v1/repos/acme/web/review-rules":                   row(`{"id": "u", "kind": "bug", "claim": "It leaks", "reason": "It does not."}`),
		"GET /v1/repos/acme/web/merge-queue":                    `{"batches": [], "waiting": [{"number": 3, "base_ref": "main", "place": {"state": "waiting", "position": 1}}]}`,
		"GET /v1/tasks/" + someID + "/attempts":                 row(`{"id": "a", "attempt": 1, "state": "ended", "outcome": "failed", "failure_kind": "agent_error"}`),
		"GET /v1/webhooks/deliveries":                           row(`{"id": "` + someID + `", "status": "failed", "hook_name": "ci", "type": "pr.merged", "attempt": 1}`),
		"POST /v1/webhooks/deliveries/" + someID + "/redeliver": `{"state": "queued"}`,
		"GET /v1/integrations/" + someID + "/deliveries":        row(`{"id": "d", "outcome": "filed", "event": "alert", "title": "It burns"}`),
		"GET /v1/billing/prices":                                row(`{"provider": "compatible", "model": "qwen3", "input_usd": 0.2}`),
		"GET /v1/billing/usage": `{"period": "2026-11", "spent_usd": "0.00", "calls": 4, "unpriced_calls": 4,
			"members": [{"user_id": "` + otherID + `", "login": "ada", "spent_usd": "0.00", "cap_usd": 5}],
			"models": [{"calls": 4, "name": "qwen3", "sessions": 1, "spent_usd": "0.00", "unpriced_calls": 4}],
			"series": [{"id": "k", "name": "team", "spent_usd": "0.42", "days": [
				{"day": "2026-11-02", "spent_usd": "0.42", "calls": 3, "unpriced_calls": 0}]}],
			"plans": [{"id": null, "calls": 4, "name": null, "sessions": 1, "spent_usd": "0.00", "unpriced_calls": 4}]}`,
		"GET /v1/billing/spend-cap": `{"usd": null, "spent_usd": "0.00", "period": "2026-11"}`,
		"GET /v1/plans/" + someID: `{"id": "` + someID + `", "title": "Retries", "groups": [
			{"files": ["a"], "slug": "01-one", "status": "running", "title": "One",
			"tasks": [{"id": "` + otherID + `", "status": "running"}]}]}`,
	})
	p := f.person(t)
	for line, wants := range map[string][]string{
		"pr reviews " + someID:              {"ID  STATUS  VERDICT", "good"},
		"pr reviews --repo acme/web":        {"PULL REQUEST  TITLE", "acme/web#3"},
		"pr findings " + otherID:            {"There are none: reviews have found nothing."},
		"check flakes --repo acme/web":      {"JOB   TEST   SEEN  OF", "TestX"},
		"finding rules --repo acme/web":     {"CLAIM", "It leaks"},
		"pr queue --repo acme/web":          {"waiting\nNUMBER  STATE", "waiting"},
		"task attempts " + someID:           {"TRY  STATE  OUTCOME", "agent error"},
		"task attempts " + someID + " -L 1": {"TRY"},
		"webhook deliveries":                {"STATUS", "pr.merged"},
		"webhook redeliver " + someID[:8]:   {"It is sent again."},
		"source deliveries " + someID:       {"OUTCOME", "It burns"},
		"key prices":                        {"PROVIDER    MODEL  INPUT", "$0.2"},
		"plan view " + someID:               {"SLUG    STATUS   TITLE  TASKS", "22345678 running"},
		"budget usage": {"spent           –", "LOGIN", "ada    –", "NAME   SPENT  SESSIONS  CALLS", "\nnone  –",
			"NAME  DAY         SPENT  CALLS", "team  2026-11-02  $0.42",
			"!" + otherID},
		"budget usage --days-by key": {"team  2026-11-02  $0.42"},
		"budget view":                {"no cap", "–"},
	} {
		p.holds(line, 0, wants...)
	}
	for _, line := range []string{"task attempts " + someID, "webhook deliveries", "pr reviews " + someID} {
		p.holds(line+" --jq .[0].id", 0)
	}
	// Names of fields are told where none is given.
	for line, want := range map[string]string{"task attempts x": "failure_kind", "webhook deliveries": "hook_name", "pr list": "head_ref",
		"task create": "queue_position", "budget usage": "unpriced_calls", "schedule create": "next_at"} {
		p.holds(line+" --json", exit.CodeMisused, want)
	}
}

// That the account has no secrets does not say that its repositories have none.
func TestNoSecretsOfTheAccount(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"GET /v1/secrets": `{"data": []}`, "GET /v1/repos/acme/web/secrets": `{"data": []}`})
	p := f.person(t)
	p.holds("secret list", 0, "The account has none", "yardmaster secret list --repo OWNER/NAME", "!There are none")
	p.holds("secret list --repo acme/web", 0, "There are none yet: yardmaster secret set NAME --repo", "!The account")
}

// Lists are narrowed by names.
func TestFiltersTakeNames(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/org/members":        `{"data": [{"user_id": "` + otherID + `", "login": "ada"}]}`,
		"GET /v1/audit/events":       `{"data": []}`,
		"GET /v1/tasks":              `{"data": []}`,
		"GET /v1/ci/runs":            `{"data": []}`,
		"GET /v1/runners":            `{"data": [{"id": "` + someID + `", "name": "builder"}]}`,
		"GET /v1/repos/acme/web/prs": `{"data": [{"id": "` + otherID + `", "number": 1}]}`,
	})
	p := f.person(t)
	for line, want := range map[string]string{
		"audit list --actor ada":         "actor%3Auser%3A" + otherID,
		"audit list --actor user:x":      "actor%3Auser%3Ax",
		"audit list --object acme/web#1": "object%3A" + otherID,
		"task list --box builder":        "box%3A" + someID,
		"task list --stuck":              "stuck%3Atrue",
		"check list --pr acme/web#1":     "pr%3A" + otherID,
	} {
		if p.holds(line, 0); !f.was("filter=" + want) {
			t.Errorf("%s: %q", line, f.calls)
		}
	}
	p.holds("audit list --actor bob", exit.CodeNotFound)
}

// What is offered to choose from is what the command can do something with; what else is missing
// is told before.
func TestPickersOfferWhatFits(t *testing.T) {
	t.Parallel()
	task := func(id, status, title string) string {
		return `{"id": "` + id + `", "status": "` + status + `", "title": "` + title + `", "repo": "acme/web"}`
	}
	session := `{"data": [{"id": "` + someID + `", "task_id": "` + otherID + `", "title": "Goes on", "kind": "work", "outcome": "failed"}]}`
	both := task(someID, "merged", "Done long ago") + "," + task(otherID, "running", "Goes on")
	f := newFake(t, map[string]string{
		"GET /v1/tasks":                         `{"data": [` + both + `]}`,
		"GET /v1/escalations":                   `{"data": [{"id": "` + someID + `", "title": "Settled", "resolved_at": "2026-05-04T12:00:00Z"}]}`,
		"GET /v1/secrets":                       `{"data": [{"name": "NPM_TOKEN"}]}`,
		"DELETE /v1/secrets/NPM_TOKEN":          `{"name": "NPM_TOKEN", "deleted": true}`,
		"GET /v1/sessions":                      session,
		"GET /v1/sessions/" + someID:            `{"id": "` + someID + `"}`,
		"POST /v1/tasks/" + otherID + "/cancel": `{"kind": "cancelled", "status": "cancelled"}`,
		"GET /v1/repos":                         `{"data": [{"full_name": "acme/web"}]}`,
		"GET /v1/repos/acme/web/issues":         `{"data": [{"id": "` + someID + `", "number": 12, "title": "It fails", "state": "open"}]}`,
		"GET /v1/issues/" + someID:              `{"id": "` + someID + `", "title": "It fails"}`,
	})
	p := f.person(t)
	picks := func(args string, code int, steps ...step) string {
		t.Helper()
		shown, got := p.terminal(strings.Fields(args), steps...)
		if got != code {
			t.Errorf("%s: exit code %d\n%s", args, got, shown)
		}
		return shown
	}
	if shown := picks("task cancel", 0, step{"Goes on", "\r"}); strings.Contains(shown, "Done long ago") {
		t.Errorf("what is over is offered:\n%s", shown)
	}
	p.holds("escalation resolve", exit.CodeMisused, "no escalation with which that can be done")
	picks("secret delete", 0, step{"NPM_TOKEN", "\r"}, step{"NPM_TOKEN is deleted.", ""})
	picks("session view", 0, step{"failed  work  Goes on", "\r"})
	picks("issue view", 0, step{"acme/web", "\r"}, step{"It fails", "\r"})
	p.holds("token rename", exit.CodeMisused, "NAME is missing")
	p.holds("budget task", exit.CodeMisused, "USD is missing")
}

// A program reads the id of what was made from standard output, and has each answer as JSON.
func TestChangesAnswerPrograms(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"POST /v1/tasks":                           `{"task_id": "` + someID + `", "queue_position": 1, "queue_depth": 1}`,
		"POST /v1/asks":                            `{"askId": "` + someID + `", "kind": "filed", "state": "pending"}`,
		"POST /v1/tasks/" + someID + "/cancel":     `{"kind": "cancelled", "status": "cancelled"}`,
		"POST /v1/tasks/" + someID + "/redispatch": `{"status": "pending", "saved_wip": {}}`,
		"POST /v1/tasks/" + someID + "/reassign":   `{"status": "pending", "reassigned": true}`,
		"GET /v1/prs/" + someID:                    somePull,
		"POST /v1/prs/" + someID + "/merge":        `{}`,
		"POST /v1/billing/keys":                    `{"id": "` + someID + `", "masked": "sk-…"}`,
	})
	for _, args := range []string{"task create --repo acme/web Do_it.", "ask file Do_it."} {
		code, out, errs := yardmasterAt(t, f.URL, strings.Fields(args)...)
		if code != 0 || out != someID+"\n" || !strings.Contains(errs, "yardmaster ") {
			t.Errorf("%s: %d %q %q", args, code, out, errs)
		}
	}
	for args, want := range map[string]string{
		"task create --repo acme/web Do_it. --jq .queue_position": "1", "ask file Do_it. --jq .state": "pending",
		"task cancel " + someID + " --jq .kind": "cancelled", "task redispatch " + someID + " --jq .status": "pending",
		"task reassign " + someID + " --jq .reassigned": "true", "pr merge " + someID + " --jq .number": "3",
		"key add --provider scripted --jq .masked": "sk-…", "version --jq .version": "dev", "auth list --json *": "[]",
	} {
		code, out, errs := yardmasterAt(t, f.URL, strings.Fields(args)...)
		if code != 0 || strings.TrimSpace(out) != want {
			t.Errorf("%s: %d %q %q", args, code, out, errs)
		}
	}
	_, out, _ := yardmasterAt(t, "http://127.0.0.1:1", "doctor", "--jq", ".[] | select(.ok | not) | .what")
	if !strings.Contains(out, "server: nothing answers at http://127.0.0.1:1") {
		t.Errorf("doctor: %q", out)
	}
	if code, _, errs := yardmasterAt(t, "notaurl", "task", "list"); code != exit.CodeMisused {
		t.Errorf("%d %s", code, errs)
	}
}

// On 80 columns a list of tasks keeps what they wait for, and what they cost.
func TestTasksOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"GET /v1/tasks": `{"data": [{"id": "` + someID + `", "status": "awaiting_review", "kind": "babysit",
		"created_at": "2026-05-04T12:00:00Z", "repo": "acme/a-repository-of-a-long-name", "title": "Have the parser keep the last line",
		"holds": [{"reason": "needs_person"}], "budget": {"spent": "1.25"}}]}`})
	p := f.person(t)
	p.cols = 80
	p.holds("task list", 0, "WAITS FOR", "a person", "COST", "$1.25", "Have the", "!KIND", "!REPOSITORY")
	p.cols = 58 // the age goes before what it costs
	p.holds("task list", 0, "WAITS FOR", "a person", "COST", "$1.25", "Have the", "!AGE")
}

// What belongs to something else is picked by way of that.
func TestPickersOfWhatBelongsToSomething(t *testing.T) {
	t.Parallel()
	pulls := `{"data": [{"id": "` + otherID + `", "repo": "acme/web", "number": 3, "title": "Mend it", "state": "open"}]}`
	running := `{"data": [{"id": "` + someID + `", "status": "running", "run_id": "` + otherID + `", "title": "Goes on"}]}`
	f := newFake(t, map[string]string{
		"GET /v1/prs":                                 pulls,
		"GET /v1/prs/" + otherID + "/findings":        `{"data": [{"id": "` + someID + `", "state": "posted", "claim": "It leaks"}]}`,
		"POST /v1/findings/" + someID + "/dismiss":    `{"id": "` + someID + `"}`,
		"GET /v1/tasks":                               running,
		"POST /v1/fleet/runs/" + otherID + "/message": `{"status": "queued"}`,
		"GET /v1/repos":                               `{"data": [{"full_name": "acme/web", "enabled": true}]}`,
		"POST /v1/tasks":                              `{"task_id": "` + someID + `"}`,
		"GET /v1/ci/runs":                             `{"data": [{"id": "` + someID + `", "status": "queued", "command": "go test"}]}`,
	})
	p := f.person(t, "EDITOR=echo Hurry >")
	for line, steps := range map[string][]step{
		"finding dismiss": {{"Mend it", "\r"}, {"It leaks", "\r"}, {"Dismissed", ""}},
		"session message": {{"Goes on", "\r"}, {"queued", ""}},
		"task create":     {{"acme/web", "\r"}, {"follow it with", ""}},
	} {
		if shown, code := p.terminal(strings.Fields(line), steps...); code != 0 {
			t.Errorf("%s: exit code %d\n%s", line, code, shown)
		}
	}
	if !f.was("POST /v1/fleet/runs/"+otherID, "Hurry") || !f.was("POST /v1/tasks", "acme/web") {
		t.Errorf("%q", f.calls)
	}
	p.holds("check log", exit.CodeMisused, "no check with which that can be done")
}

// Ctrl-C in a picker is one everywhere: the exit code says so. Escape chooses nothing.
func TestPickerIsInterrupted(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"GET /v1/tasks": `{"data": [{"id": "` + someID + `", "title": "Mend it", "status": "running"}]}`})
	p := f.person(t)
	for typed, code := range map[string]int{"\x03": exit.CodeInterrupted, "\x1b": exit.CodeMisused} {
		if shown, got := p.terminal([]string{"task", "view"}, step{"Mend it", typed}); got != code {
			t.Errorf("%q: exit code %d, not %d:\n%s", typed, got, code, shown)
		}
	}
}

// What was written in an editor is kept until the server has it.
func TestWrittenTextIsKept(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"POST /v1/asks": `{"kind": "filed", "askId": "` + someID + `", "state": "open"}`})
	temp := t.TempDir()
	p := f.person(t, "EDITOR=echo Hurry >", "TMPDIR="+temp)
	shown := p.holds("task create --repo acme/web --editor", exit.CodeNotFound, "There is no such thing", "Your text is in "+temp)
	at := regexp.MustCompile(`--file (\S+) takes it`).FindStringSubmatch(shown)
	if at == nil {
		t.Fatal(shown)
	}
	if b, err := os.ReadFile(at[1]); string(b) != "Hurry\n" {
		t.Errorf("%q, %v", b, err)
	}
	f.answers["POST /v1/tasks"] = `{"task_id": "` + someID + `"}`
	p.holds("task create --repo acme/web --file "+at[1], 0, "queued")
	terminal.Forget(at[1])
	p.holds("ask file --editor", 0, "filed, open", "!Your text")
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// A field that the answer does not have is refused before anything is made.
func TestWrongFieldsMakeNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"POST /v1/asks": `{"kind": "filed", "askId": "` + someID + `", "state": "pending"}`})
	p := f.person(t)
	for _, line := range []string{"ask file --repo acme/web --json id Mend-it", "ask file --json --repo acme/web Mend-it",
		"task create --repo acme/web --json id Mend-it", "repo create acme/x --json full_name"} {
		shown, code := p.terminal(strings.Fields(line))
		if code != exit.CodeMisused || !strings.Contains(shown, "there is no field") {
			t.Errorf("%s: exit code %d\n%s", line, code, shown)
		}
	}
	if len(f.calls) > 0 {
		t.Errorf("it was called all the same: %q", f.calls)
	}
	if shown, code := p.terminal(strings.Fields("ask file --repo acme/web --json askId,state Mend-it")); code != 0 ||
		!strings.Contains(shown, someID) {
		t.Errorf("exit code %d\n%s", code, shown)
	}
}
