package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// yard is a server with one task, which is pending, then runs, then waits for a
// person until it is merged. Times count from the start of the test.
type yard struct {
	merges   time.Duration
	down     [2]time.Duration // from and to
	busy     time.Duration    // until then every read is refused with 429
	swift    bool             // the run is over before the first read
	fails    bool             // an attempt has failed before the first read
	start    time.Time
	requests int
	tooSoon  int
}

func (y *yard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := time.Since(y.start)
	if y.requests++; now >= y.down[0] && now < y.down[1] {
		w.WriteHeader(503)
		return
	}
	if now < y.busy {
		w.WriteHeader(429)
		fmt.Fprintf(w, `{"type": "http://y/problems/rate-limited", "status": 429, "detail": "Too many.", "retry_after": %d}`,
			int((y.busy-now).Seconds())+1)
		y.tooSoon++
		return
	}
	switch r.URL.Path {
	case "/v1/tasks/t":
		switch {
		case now < 5*time.Second && y.fails:
			io.WriteString(w, `{"id": "t", "status": "pending", "attempt": 1, "run_id": null, "failure_kind": "agent_error"}`)
		case now < 10*time.Second:
			io.WriteString(w, `{"id": "t", "status": "pending", "run_id": null, "holds": [{"reason": "no_box_online", "clears_when": "a box connects"}]}`)
		case now < 20*time.Second && !y.swift:
			io.WriteString(w, `{"id": "t", "status": "running", "run_id": "r"}`)
		case now < y.merges:
			io.WriteString(w, `{"id": "t", "status": "mergeable", "run_id": "r", "pr_id": "p"}`)
		default:
			io.WriteString(w, `{"id": "t", "status": "merged", "run_id": "r", "pr_id": "p"}`)
		}
	case "/v1/tasks/t/events":
		io.WriteString(w, `{"run_id": "r", "events": []}`)
	case "/v1/prs/p":
		io.WriteString(w, `{"id": "p", "number": 1, "state": "open", "head_sha": "0123456789abcdef", "checks": "none", "pending_action": {"kind": "merge", "state": "pending"}}`)
	case "/v1/fleet/runs/r/events":
		for i := range 500 {
			fmt.Fprintf(w, "id: %d\nevent: event\ndata: {\"seq\": %d, \"kind\": \"usage\", \"data\": {\"input_tokens\": %d}}\n\n",
				i+1, i+1, i)
		}
		fmt.Fprint(w, "event: end\ndata: {}\n\n")
	default:
		w.WriteHeader(404)
	}
}

// TestWatchIsCheap checks that hours of waiting stay far below the rate limit of 600
// reads a minute, and that no event of a run is missing or repeated.
func TestWatchIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{merges: 2 * time.Hour, start: time.Now()}
		c := &Client{URL: "http://y", HTTP: &http.Client{Transport: served{y}}}
		var states []string
		var next int64
		task, err := c.Watch(t.Context(), "t", Watcher{
			State: func(task Task) { states = append(states, task.Status) },
			Event: func(_ Task, e Event) {
				states = slices.Compact(append(states, "run"))
				if next++; e.Seq != next {
					t.Errorf("event %d, want %d", e.Seq, next)
				}
			},
		})
		if err != nil || task.Status != "merged" || next != 500 || strings.Join(states, " ") != "pending running run mergeable merged" {
			t.Fatalf("%s after %q, %d events, %v", task.Status, states, next, err)
		}
		if perMinute := float64(y.requests) / time.Since(y.start).Minutes(); perMinute > 60 {
			t.Errorf("%.0f requests a minute", perMinute)
		}
		if late := time.Since(y.start) - y.merges; late > longestPause {
			t.Errorf("the merge was seen %v late", late)
		}
	})
}

// TestWatchTellsInOrder checks that a run's events are reported before their
// outcome, also if the run is over before it is seen.
func TestWatchTellsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{merges: time.Minute, swift: true, start: time.Now()}
		var told []string
		tell := func(what string) { told = slices.Compact(append(told, what)) }
		_, err := (&Client{URL: "http://y", HTTP: &http.Client{Transport: served{y}}}).Watch(t.Context(), "t", Watcher{
			State: func(task Task) { tell(task.Status) }, Event: func(Task, Event) { tell("run") }, Pull: func(Pull) { tell("pull") },
		})
		if got := strings.Join(told, " "); err != nil || got != "pending run mergeable pull merged" {
			t.Errorf("%q, %v", got, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		y := &yard{merges: time.Minute, fails: true, start: time.Now()}
		var told []string
		tell := func(what string) { told = slices.Compact(append(told, what)) }
		_, err := (&Client{URL: "http://y", HTTP: &http.Client{Transport: served{y}}}).Watch(t.Context(), "t", Watcher{
			State: func(task Task) { tell(task.Status) }, Event: func(Task, Event) { tell("run") },
		})
		if got := strings.Join(told, " "); err != nil || !strings.HasPrefix(got, "run pending ") {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestWatchOutlastsTheServer checks that neither a restart of the server nor its
// rate limit ends a watch.
func TestWatchOutlastsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &yard{merges: 5 * time.Minute, start: time.Now(), busy: 40 * time.Second, down: [2]time.Duration{time.Minute, 3 * time.Minute}}
		c := &Client{URL: "http://y", HTTP: &http.Client{Transport: served{y}}}
		var told []string
		task, err := c.Watch(t.Context(), "t", Watcher{Lost: func(error) { told = append(told, "lost") },
			Back: func() { told = append(told, "back") }, State: func(t Task) { told = append(told, t.Status) }})
		if said := strings.Join(told, " "); err != nil || said != "lost back mergeable lost back merged" {
			t.Errorf("%s, told %q, %v", task.Status, said, err)
		}
		if y.tooSoon > 1 {
			t.Errorf("asked %d times before it was told to", y.tooSoon)
		}
	})
}

func TestWatchRefused(t *testing.T) {
	c := &Client{URL: "http://y", HTTP: &http.Client{Transport: served{http.NotFoundHandler()}}}
	var p *Problem
	if _, err := c.Watch(t.Context(), "t", Watcher{}); !errors.As(err, &p) || p.Status != 404 {
		t.Errorf("%v", err)
	}
	var gone *Unreachable
	if _, err := (&Client{URL: "http://127.0.0.1:1"}).Watch(t.Context(), "t", Watcher{}); !errors.As(err, &gone) ||
		!strings.HasPrefix(err.Error(), "no answer from http://127.0.0.1:1: dial") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.HTTP.Transport = served{&yard{merges: time.Hour, start: time.Now()}}
	if _, err := c.Watch(ctx, "t", Watcher{State: func(Task) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A command and an address stay in one piece, whatever the width; a command names what it is about in few characters.
func TestCommandsStayWhole(t *testing.T) {
	t.Parallel()
	const id = "0198a2c4-5b6c-7d8e-9f01-23456789abcd"
	var pr Pull
	err := json.Unmarshal([]byte(`{"id": "`+id+`", "repo": "acme/web", "number": 10, "state": "open", "head_sha": "0123456789abcdef",
		"checks": "passed", "pending_action": {"kind": "merge", "state": "pending", "question": "Merge it into main?"}}`), &pr)
	if err != nil {
		t.Fatal(err)
	}
	var task Task
	err = json.Unmarshal([]byte(`{"id": "t", "status": "held", "holds": [{"reason": "blocked", "clears_when": "a person answers",
		"clear": {"capability": "blocker.answer", "args": {"blockerId": "`+id+`"}}}]}`), &task)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	w := Printer{Out: &out, Width: 40, Page: func(noun, id string) string { return "http://yard.example.com/ui/" + noun + "s/" + id },
		Short: func(command string) string { return strings.ReplaceAll(command, id, "6789abcd") }}.Watcher()
	w.Pull(pr)
	w.State(task)
	for _, whole := range []string{"pull      then: yardmaster pr approve acme/web#10\n", "asked: Merge it into main?\n",
		"see http://yard.example.com/ui/prs/" + id + "\n", `then: yardmaster blocker answer 6789abcd "…"` + "\n"} {
		if !strings.Contains(out.String(), whole) {
			t.Errorf("%q is not in:\n%s", whole, out.String())
		}
	}
}

func TestPrintFits(t *testing.T) {
	const text = "Upper case and punctuation are passed through. The text has to be lowered.\nnow http://127.0.0.1:8080/a/very/long/address/that/fits/in/no/terminal"
	event := Event{Kind: "agent.update",
		Data: []byte(fmt.Sprintf(`{"sessionUpdate": "agent_message_chunk", "content": {"text": %q}}`, text))}
	for width, want := range map[int]string{
		40: `  agent     Upper case and punctuation
            are passed through. The text
            has to be lowered.
  agent     now
            http://127.0.0.1:8080/a/very/long/address/that/fits/in/no/terminal
  task      pending
`,
		0: `  agent     Upper case and punctuation are passed through. The text has to be lowered.
  agent     now http://127.0.0.1:8080/a/very/long/address/that/fits/in/no/terminal
  task      pending
`} {
		var b strings.Builder
		w := Print(&b, width)
		w.Event(Task{}, event)
		w.State(Task{Status: "pending"})
		if b.String() != want {
			t.Errorf("at %d:\n%s", width, b.String())
		}
	}
}

// TestPrintIsLive checks that a line of the agent is printed as soon as it is
// complete.
func TestPrintIsLive(t *testing.T) {
	var b strings.Builder
	w := Print(&b, 0)
	for _, chunk := range []string{"one ", "two\nthr", "ee"} {
		w.Event(Task{}, Event{Kind: "agent.update",
			Data: []byte(fmt.Sprintf(`{"sessionUpdate": "agent_message_chunk", "content": {"text": %q}}`, chunk))})
	}
	if b.String() != "  agent     one two\n" {
		t.Errorf("printed %q", b.String())
	}
}

// TestToolOutputIsPrinted checks that the output of a running tool is distinguished
// from the agent's text.
func TestToolOutputIsPrinted(t *testing.T) {
	var b strings.Builder
	w := Print(&b, 0)
	tool := func(text string) {
		w.Event(Task{}, Event{Kind: "agent.update",
			Data: []byte(fmt.Sprintf(`{"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "in_progress", "_meta": {"terminal_output_delta": {"data": %q}}}`, text))})
	}
	tool("ok  \tone\nok ")
	tool(" two\nhalf")
	w.Event(Task{}, Event{Kind: "agent.update", Data: []byte(`{"sessionUpdate": "agent_message_chunk", "content": {"text": "Good.\n"}}`)})
	w.Event(Task{}, Event{Kind: "agent.update",
		Data: []byte(`{"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "content": []}`)})
	if want := "  output    ok      one\n  output    ok  two\n  output    half\n  agent     Good.\n"; b.String() != want {
		t.Errorf("printed %q", b.String())
	}
}

// A watcher reads the question before the command that answers it.
func TestQuestionIsPrinted(t *testing.T) {
	var pr Pull
	err := json.Unmarshal([]byte(`{"id": "p", "number": 1, "state": "open", "head_sha": "0123456789abcdef", "checks": "none", "pending_action":
		{"kind": "merge", "state": "pending", "question": "Merge, although .svc/policy.yml\u001b[2J changes?", "protected": {"paths": [".svc/policy.yml"]}}}`), &pr)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	Print(&out, 0).Pull(pr)
	if !strings.Contains(out.String(), "although .svc/policy.yml") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("printed: %q", out.String())
	}
	pr.PendingAction.Protected = nil
	out.Reset()
	if Print(&out, 0).Pull(pr); strings.Contains(out.String(), "although") {
		t.Errorf("an ordinary question is printed: %q", out.String())
	}
}

// A watcher of a task whose pull request is red reads why the task is stuck, and the
// command that resolves it.
func TestWaitIsPrintedWithItsCommand(t *testing.T) {
	var task Task
	err := json.Unmarshal([]byte(`{"id": "t", "status": "awaiting_ci", "stuck": true, "failure_kind": "ci_ladder_spent", "failure": "the check exited with 1", "holds": [
		{"reason": "needs_person", "clears_when": "a person mends it (pr.rearm_babysit of the pull request p)", "clear": {"capability": "pr.rearm_babysit", "args": {"id": "p"}}},
		{"reason": "no_box_online", "clears_when": "a box comes", "clear": {"capability": "box.add", "args": {}}},
		{"reason": "conflict", "clears_when": "it ends", "clear": null}]}`), &task)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	Print(&out, 0).State(task)
	want := `  task      awaiting ci, stuck, after ci ladder spent: the check exited with 1
  task      waits for a person, until a person mends it
  task      then: yardmaster pr rearm p "…"
  task      waits for a box, until a box comes
  task      then: yardmaster box join
  task      waits for a task on the same files, until it ends
`
	if out.String() != want {
		t.Errorf("printed:\n%s", out.String())
	}
	for capability, want := range map[string]string{
		"pr.approve_pending": "yardmaster pr approve p", "pr.ask_again": "yardmaster pr ask-again p", "pr.merge": "yardmaster pr merge p",
		"task.cancel": "yardmaster task cancel p", "task.redispatch": "yardmaster task redispatch p", "blocker.answer": "",
		"task.budget_set": "yardmaster budget task p USD", "task.retry_now": "yardmaster task retry p",
		"billing.spend_cap_set": "yardmaster budget set USD", "box.drain": "",
		"plan.approve": "yardmaster plan approve p", "box.add": "yardmaster box join", "billing.key_delete": "",
	} {
		c := Clear{Capability: capability, Args: map[string]string{"id": "p"}}
		if got := c.Command(); got != want {
			t.Errorf("%s is %q, want %q", capability, got, want)
		}
	}
}

// Every event of a run that people should know of is a sentence, and a pull request without
// a number has none.
func TestEventsAreSentences(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, data, want string }{
		{"ask.filed", `{"title": "The footer is old"}`, "filed an ask: The footer is old"},
		{"action.proposed", `{"kind": "close", "pull": 7, "why": "It is done."}`, "proposes to close #7: It is done."},
		{"blocker.declared", `{"kind": "decision", "question": "Which one?"}`, "needs a person: Which one?"},
		{"environment", `{"state": "making"}`, "the prepare script runs"},
		{"environment", `{"state": "ready", "took_ms": 1500}`, "the prepare script has made the environment ready in 1.5 s"},
		{"environment", `{"state": "kept", "key": "k"}`, "the environment is there from an earlier run"},
		{"environment", `{"state": "skipped", "why": "a fork"}`, "no environment: a fork"},
		{"environment", `{"state": "failed", "why": "code 3"}`, "the environment is not ready: code 3"},
		{"outbox.refused", `{"file": "ask.json", "reason": "no title"}`, "ask.json was refused: no title"},
		{"command.refused", `{"kind": "note", "reason": "too late"}`, "the box refused a command: too late"},
		{"run.parked", `{}`, "waits for a person"},
		{"user.message", `{"state": "queued", "text": "You asked: Which colour? ...", "answers": ["a person answers: mauve or so"]}`,
			"a person answers: mauve or so"},
		{"user.message", `{"state": "queued", "text": "You asked: What?\nA person answers: nothing"}`,
			"a person says (queued): You asked: What?\nA person answers: nothing"},
		{"run.resumed", `{}`, "goes on"},
		{"run.finished", `{"state": "failed", "failure_kind": "agent_error", "error": "it ended"}`, "finished: failed, agent_error: it ended"},
	} {
		if got := describe(Event{Kind: tt.kind, Data: []byte(tt.data)}); got != tt.want {
			t.Errorf("%s: %q, not %q", tt.kind, got, tt.want)
		}
	}
	var out strings.Builder
	Print(&out, 0).Pull(Pull{State: "opening", HeadSHA: "4bb43a2626ff", Checks: "none"})
	if want := "  pull      opening, head 4bb43a2626, no checks\n"; out.String() != want {
		t.Errorf("printed %q", out.String())
	}
}

// What happened before the watch began has its own time, with the date where that is long
// ago; what has none has the present.
func TestLinesHaveTheirOwnTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 18, 0, 0, 0, time.Local)
	var out strings.Builder
	w := Printer{Out: &out, Now: func() time.Time { return now }}.Watcher()
	chunk := func(at time.Time, text string) {
		w.Event(Task{}, Event{At: at, Kind: "agent.update",
			Data: json.RawMessage(`{"sessionUpdate": "agent_message_chunk", "content": {"text": "` + text + `"}}`)})
	}
	w.State(Task{Status: "running"})
	w.Event(Task{}, Event{At: now.Add(-26 * time.Hour), Kind: "run.accepted"})
	w.Event(Task{}, Event{At: now.Add(-time.Hour), Kind: "run.accepted"})
	chunk(now.Add(-50*time.Minute), "I look ")
	chunk(now.Add(-40*time.Minute), "around.")
	w.Event(Task{}, Event{At: now.Add(-30 * time.Minute), Kind: "run.accepted"})
	w.Event(Task{}, Event{Kind: "run.accepted"})
	w.Pull(Pull{Number: 1, State: "open", Checks: "none"})
	ended := now.Add(-20 * time.Minute)
	w.Pull(Pull{Number: 1, State: "merged", Checks: "none", MergedAt: new(now.Add(-25 * time.Minute))})
	w.Pull(Pull{Number: 1, State: "closed", Checks: "none", ClosedAt: new(now.Add(-24 * time.Minute))})
	w.State(Task{Status: "merged", FinishedAt: &ended})
	var times []string
	for line := range strings.Lines(out.String()) {
		at, _, _ := strings.Cut(line, "  ")
		times = append(times, at)
	}
	want := []string{"18:00:00", "2026-05-03 16:00:00", "17:00:00", "17:10:00", "17:30:00", "18:00:00", "18:00:00",
		"17:35:00", "17:36:00", "17:40:00"}
	if !slices.Equal(times, want) {
		t.Errorf("the times are %q, not %q, of\n%s", times, want, out.String())
	}
}

// Times in a sentence of the server are distances, to come and past.
func TestTimesInSentences(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 3, 37, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"the wait is over, at 2026-11-27T03:41:03Z, or somebody ends it": "the wait is over, in 4m, or somebody ends it",
		"which is tried at 2026-11-27T03:40:00.5Z":                       "which is tried in 3m",
		"it began at 2026-11-27T01:37:00Z":                               "it began 2h ago",
		"at 2026-99-27T01:37:00Z":                                        "at 2026-99-27T01:37:00Z",
		"it began at 2026-08-01T01:37:00Z":                               "it began 16w ago",
		"a box comes online":                                             "a box comes online",
	} {
		if got := Times(text, now); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}

// The diff of an edit is printed once, whether the agent reports it when the call begins or when it ends. Another
// run has calls of the same ids.
func TestDiffIsPrintedOnce(t *testing.T) {
	t.Parallel()
	const diff = `"content": [{"type": "diff", "path": "a.go", "oldText": "one\n", "newText": "two\n"}]`
	start := `{"sessionUpdate": "tool_call", "toolCallId": "call_1", "status": "in_progress", `
	ends := `{"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed", `
	for name, updates := range map[string][]string{
		"at its end":       {start + `"title": "Edit a.go"}`, ends + diff + "}"},
		"at its beginning": {start + diff + "}", ends + `"content": []}`},
		"at both":          {start + diff + "}", ends + diff + "}"},
	} {
		var out strings.Builder
		w := Print(&out, 0)
		for run := 1; run <= 2; run++ {
			w.Event(Task{}, Event{Kind: "run.accepted"})
			for _, u := range updates {
				w.Event(Task{}, Event{Kind: "agent.update", Data: json.RawMessage(u)})
			}
			if got := strings.Count(out.String(), "a.go\n            - one\n            + two\n"); got != run {
				t.Errorf("%s: %d diffs in %d runs:\n%s", name, got, run, out.String())
			}
		}
	}
}
