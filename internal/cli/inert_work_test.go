package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"yardmaster/internal/cli/noun"
	"yardmaster/internal/cli/object"
	"yardmaster/internal/client"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/actor"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/rig"
)

// hostile is text about something that does what text can do to a terminal: it links elsewhere
// than it says and writes to the clipboard (OSC), colours, clears the screen (C1), turns the
// direction of text, hides parts of it, and writes over what stands before it.
func hostile(about string) string {
	return about + "-\x1b]8;;http://x.example\x1b\\go\x1b]8;;\x07\x1b]52;c;cm0=\x07\x1b[31m\u202er\u2066\u200b\u009b2J\u009d0;t\u009c\rover"
}

// letters are the visible characters of a text, without spaces.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
			return -1
		}
		return r
	}, s)
}

// scripted is a scenario in which an agent works and says, runs and writes hostile text, and
// another one finds something in its work.
func scripted(t *testing.T) (file string) {
	t.Helper()
	asJSON := func(v any) string {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return "```json\n" + string(b) + "\n```\n"
	}
	quote := strconv.QuoteToASCII // which YAML reads, too
	found := asJSON(map[string]any{"findings": []any{map[string]any{
		"file": "hello.txt", "line": 1, "severity": "high", "kind": "bug", "claim": hostile("claim"),
		"why": hostile("why"), "how_to_see": hostile("how"), "confidence": 0.9}}})
	agreed := asJSON(map[string]any{"verdicts": []any{map[string]any{
		"claim": 1, "verdict": "confirmed", "evidence": "hello.txt:1 has it."}}})
	text := "scenarios:\n" +
		"- {name: finds, match: 'Review pull request #', steps: [{text: " + quote(found) + "}]}\n" +
		"- {name: agrees, match: 'claims the following about', steps: [{text: " + quote(agreed) + "}]}\n" +
		"- {name: works, match: 'Say hello', steps: [{text: " + quote(hostile("saying")) + ", shell: " +
		quote("printf '%s\\n' '"+hostile("output")+"' | tee hello.txt") + "}, {text: Done.}]}\n" +
		"- {name: none, match: '', steps: [{text: There is nothing to do.}]}\n"
	file = filepath.Join(t.TempDir(), "scenario.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// called calls the API as the owner, and fails the test unless it succeeds.
func called(t *testing.T, y *rig.Yard, method, path string, in any) (out map[string]any) {
	t.Helper()
	body, err := object.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	if in == nil {
		body = nil
	}
	resp, answer := y.Send(method, path, y.Owner, string(body))
	if resp.StatusCode >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	if err := json.Unmarshal(answer, &out); err != nil && len(answer) > 0 {
		t.Fatalf("%s %s: %v in %s", method, path, err, answer)
	}
	return out
}

// reviewed has a box work on a task and a review find something, and answers the ids of the task
// and its pull request.
func reviewed(t *testing.T, y *rig.Yard) (taskID, prID string) {
	t.Helper()
	called(t, y, "POST", "/v1/billing/keys", map[string]any{"provider": "scripted", "label": "tests"})
	enrollment, _ := called(t, y, "POST", "/v1/runners/enrollments", map[string]any{})["token"].(string)
	y.Box(enrollment)
	made := called(t, y, "POST", "/v1/tasks",
		map[string]any{"repo": "acme/web", "title": "Greet", "problem": "Say hello. " + hostile("problem")})
	taskID, _ = made["task_id"].(string)
	y.Eventually("a question about a reviewed head", func() bool {
		all, _ := called(t, y, "GET", "/v1/prs/pending-approvals", nil)["data"].([]any)
		if len(all) == 0 {
			return false
		}
		prID = object.Text(object.Map(all[0])["pr_id"])
		return object.Map(object.Map(all[0])["review"])["state"] == "reviewed"
	})
	return taskID, prID
}

// digestsOf makes the digests that are due a day from now.
func digestsOf(t *testing.T, y *rig.Yard) {
	t.Helper()
	ahead := time.Duration(0)
	d := dbtest.Open(t, y.DSN, db.Options{Clock: func() time.Time { return time.Now().Add(ahead) }})
	s := digest.New(digest.Needs{DB: d, Due: duetest.New(d, event.NewHub()), Logger: y.Log, Mails: noMails{}, BaseURL: y.URL,
		Actors: actor.New(actor.Needs{DB: d})})
	ahead = 25 * time.Hour
	if err := s.Due.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// noMails mails nobody.
type noMails struct{}

func (noMails) Mail(*db.Tx, digest.Letter) error { return nil }

// Text of agents, code hosts and people in what work is made of stays inert on a real terminal, and
// each of its visible letters is shown: issues, escalations, findings, guidance, digests, and what
// an agent says, runs and writes.
func TestTextOfWorkIsInertOnATerminal(t *testing.T) {
	t.Parallel()
	y := yard(t, "--scenario", scripted(t))
	if err := y.Push("acme/web", map[string]string{"a": "a\n",
		".svc/policy.yml": "{version: 1, merge: {mode: ask}, review: {mode: auto, block: never}}\n"}); err != nil {
		t.Fatal(err)
	}
	held := object.Text(called(t, y, "POST", "/v1/tasks", map[string]any{"repo": "acme/web", "title": "Wait",
		"problem": "Wait."})["task_id"])
	y.OnTask(held, func(tx *db.Tx, row *task.Row) error { return y.Tasks.Hold(tx, row, task.Blocked, hostile("hold")) })
	var issueID string
	y.OnTask(held, func(tx *db.Tx, row *task.Row) error { // as the host tells of it
		r, _, err := repo.ByID(tx, row.RepoID)
		if err == nil {
			issueID, err = issue.Request(tx, r, hostile("issue"), hostile("body"), []string{hostile("label")})
		}
		return err
	})
	escalated := object.Text(called(t, y, "POST", "/v1/issues/"+issueID+"/escalate",
		map[string]any{"category": "unclear", "reason": hostile("reason")})["escalation_id"])
	digestsOf(t, y)
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner)
	shows := func(args string, abouts ...string) {
		t.Helper()
		var steps []step
		if strings.HasPrefix(args, "task watch") {
			steps = []step{{"Answer here", "q\r"}}
		}
		shown := letters(inertly(t, p, strings.Fields(args), steps...))
		for _, about := range abouts {
			if !strings.Contains(shown, letters(hostile(about))) {
				t.Errorf("%s: letters of %s are not there:\n%s", args, about, shown)
			}
		}
	}
	shows("task view "+held, "hold")
	shows("issue list --repo acme/web", "issue")
	shows("issue view "+issueID, "issue", "body", "label")
	shows("escalation list", "issue")
	shows("escalation view "+escalated, "issue", "body", "reason")
	called(t, y, "POST", "/v1/escalations/"+escalated+"/resolve", map[string]any{"note": hostile("note")})
	shows("escalation view "+escalated, "note")
	shows("digest list")
	shows("digest view "+object.Text(rowsAt(t, y, noun.Called("digest"))[0]["id"]), "issue")
	inertly(t, p, []string{"task", "redispatch", held, "--guidance", hostile("guidance")})
	shows("task view "+held, "guidance")

	worked, pr := reviewed(t, y)
	shows("task watch "+worked, "saying", "output")
	shows("pr findings "+pr, "claim", "why", "how")
	shows("pr reviews " + pr)
	diff := letters(inertly(t, p, []string{"pr", "diff", pr}))
	if want := letters(client.Escape(hostile("output"))); !strings.Contains(diff, want) { // of a file, nothing is left out
		t.Errorf("%s is not in %s", want, diff)
	}
	for _, args := range []string{"pr view " + pr, "pr list", "task list", "task report " + worked, "task attempts " + worked, "status",
		"notification list", "session list", "audit list", "blocker list"} {
		shows(args)
	}
	for _, of := range rowsAt(t, y, noun.Called("session")) {
		shows(fmt.Sprint("session view ", of["id"]))
		shows(fmt.Sprint("session watch ", of["id"]))
	}
}
