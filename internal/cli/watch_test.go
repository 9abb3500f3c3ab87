package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// Who watches a task on a terminal approves the head and the question that the watch
// has shown, there.
func TestWatchIsAnsweredThere(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	approved := ""
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		status, action := "mergeable", `{"id": "q1", "kind": "merge", "state": "pending", "question": "Merge it?"}`
		if approved != "" {
			status, action = "merged", "null"
		}
		switch r.Method + " " + r.URL.Path {
		case "GET /v1/tasks/" + someID:
			fmt.Fprintf(w, `{"id": %q, "status": %q, "pr_id": "p1"}`, someID, status)
		case "GET /v1/prs/p1":
			fmt.Fprintf(w,
				`{"id": "p1", "number": 3, "state": "open", "head_sha": "0123456789abcdef", "checks": "passed", "pending_action": %s}`,
				action)
		case "POST /v1/prs/p1/approve-pending":
			b, _ := io.ReadAll(r.Body)
			approved = string(b)
			io.WriteString(w, "{}")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer h.Close()
	p := newPerson(t, "YARDMASTER_URL="+h.URL, "YARDMASTER_TOKEN=t")
	shown, code := p.terminal([]string{"task", "watch", someID},
		step{"asked: Merge it?", ""}, step{h.URL + "/ui/prs/p1", ""}, step{"a approves", "x\r"}, step{"none of a, s",
			"a\r"}, step{"merged", ""})
	mu.Lock()
	defer mu.Unlock()
	var said map[string]string
	if json.Unmarshal([]byte(approved), &said) != nil || said["head_sha"] != "0123456789abcdef" || said["action_id"] != "q1" || code != 0 {
		t.Errorf("approved %s, exit code %d\n%s", approved, code, shown)
	}
}

// A blocker is filled in where the task is watched; the value is never shown.
func TestBlockerIsFilledInThere(t *testing.T) {
	t.Parallel()
	y := yard(t)
	if err := y.Push("acme/web", map[string]string{"a": "a\n"}); err != nil {
		t.Fatal(err)
	}
	var made struct {
		TaskID string `json:"task_id"`
	}
	resp, body := y.Send(http.MethodPost, "/v1/tasks", y.Owner, `{"repo": "acme/web", "title": "t", "problem": "p"}`)
	if err := json.Unmarshal(body, &made); err != nil || made.TaskID == "" {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	y.Block(made.TaskID, "missing_credential", map[string]string{"NPM_TOKEN": "env_secret"})
	p := newPerson(t, "YARDMASTER_URL="+y.URL, "YARDMASTER_TOKEN="+y.Owner)
	const secret = "a-very-s3cret-value"
	shown, code := p.terminal([]string{"task", "watch", made.TaskID},
		step{"f fills it in", "f\r"}, step{"NPM_TOKEN (for the tests), empty to leave it out: ", secret + "\r"},
		step{"pending", "q\r"}, step{"It goes on without you", ""})
	if code != 0 || strings.Contains(shown, secret) || !strings.Contains(shown, "<b>in</b>") {
		t.Errorf("exit code %d\n%s", code, shown)
	}
	out, code := p.terminal([]string{"blocker", "list", "--open=false", "--jq", ".[].state"})
	if code != 0 || strings.TrimSpace(out) == "" || strings.Contains(out, "open") {
		t.Errorf("%d %s", code, out)
	}
}

// What a person tells the agent is on its way while other keys are read; what became of it is
// shown when that is known. A question is answered in the line after f. The history of a run that
// waits is shown before the question.
func TestWatchTalksToTheAgent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	answered, reply := "", make(chan struct{})
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /v1/tasks/" + someID:
			fmt.Fprintf(w, `{"id": %q, "status": "running", "run_id": "r1", "run": {"last_seq": 2}, "holds": [{"reason": "blocked",
				"clears_when": "a person answers", "clear": {"capability": "blocker.answer", "args": {"blockerId": "b1"}}}]}`, someID)
		case "GET /v1/fleet/runs/r1/events":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 1\nevent: event\ndata: {\"seq\": 1, \"kind\": \"run.accepted\"}\n\n"+
				"id: 2\nevent: event\ndata: {\"seq\": 2, \"kind\": \"user.message\", \"data\": {\"state\": \"queued\", \"text\": \"Hurry.\"}}\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "GET /v1/blockers/b1/spec":
			io.WriteString(w, `{"question": "Which one?", "state": "open", "fields": []}`)
		case "POST /v1/blockers/b1/answer":
			b, _ := io.ReadAll(r.Body)
			mu.Lock()
			answered = string(b)
			mu.Unlock()
			close(reply) // the agent takes its time
			io.WriteString(w, "{}")
		case "POST /v1/fleet/runs/r1/message":
			<-reply
			io.WriteString(w, `{"status": "replied", "reply": "I am on it."}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer h.Close()
	p := newPerson(t, "YARDMASTER_URL="+h.URL, "YARDMASTER_TOKEN=t", "NO_COLOR=1")
	shown, code := p.terminal([]string{"task", "watch", someID},
		step{"claimed and accepted", ""}, step{"a person says (queued): Hurry.", ""}, step{"waits for an answer", ""},
		step{"f fills it in", "m Leave the parser.\r"}, step{"on its way", "f\r"}, step{"Which one?", ""}, step{"in a line",
			"The first.\r"},
		step{"The agent replies: I am on it.", "q\r"}, step{"It goes on without you", ""})
	mu.Lock()
	defer mu.Unlock()
	if code != 0 || !strings.Contains(answered, `"The first."`) {
		t.Errorf("exit code %d, %s\n%s", code, answered, shown)
	}
}

// A session is told as a task is: in words, with the text of the agent line by line. What there are no words for
// is shown as it is.
func TestSessionWatch(t *testing.T) {
	t.Parallel()
	frames := ""
	for i, e := range []string{
		`"kind": "run.accepted", "data": {}`,
		`"kind": "agent.update", "data": {"sessionUpdate": "agent_message_chunk", "content": {"text": "I look\nat the "}}`,
		`"kind": "agent.update", "data": {"sessionUpdate": "agent_message_chunk", "content": {"text": "parser.\n"}}`,
		`"kind": "agent.update", "data": {"sessionUpdate": "tool_call", "title": "go test ./..."}`,
		`"kind": "box.sang", "data": {"tune": "la"}`,
		`"kind": "answer", "data": {"text": "Yes."}`,
	} {
		frames += fmt.Sprintf("id: %d\nevent: event\ndata: {\"cursor\": \"%d\", \"at\": \"2026-01-02T03:04:05Z\", %s}\n\n", i, i, e)
	}
	end := "event: end\ndata: {\"session_id\": \"" + someID + "\", \"outcome\": \"lost\"}\n\n"
	f := newFake(t, map[string]string{"GET /v1/sessions/" + someID + "/events": frames + end})
	p := f.person(t, "TZ=UTC")
	p.holds("session watch "+someID, 0, "2026-01-02 03:04:05", "run       claimed and accepted by the box", "agent     I look\n",
		"agent     at the parser.\n", "run       tool: go test ./...", "run       box.sang tune=la", "it answers: Yes.", "ended: lost",
		"!sessionUpdate", "!cursor")
	f.answers["GET /v1/sessions/"+someID+"/events"] = strings.Replace(frames, `"kind": "answer", "data": {"text": "Yes."}`,
		`"kind": "run.finished", "data": {"state": "completed"}`, 1) + end
	p.holds("session watch "+someID, 0, "finished: completed", "!ended")
}
