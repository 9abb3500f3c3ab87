package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
)

// Task is what the command line reads of a task.
type Task struct {
	ID          string  `json:"id"`
	Repo        string  `json:"repo"`
	Kind        string  `json:"kind"`
	Title       string  `json:"title"`
	Status      string  `json:"status"`
	Stuck       bool    `json:"stuck"`
	Branch      string  `json:"branch"`
	RunID       *string `json:"run_id"`
	BoxID       *string `json:"box_id"`
	PRID        *string `json:"pr_id"`
	Attempt     int     `json:"attempt"`
	FailureKind *string `json:"failure_kind"`
	Failure     *string `json:"failure"`
	Holds       []struct {
		Reason     string `json:"reason"`
		ClearsWhen string `json:"clears_when"`
	} `json:"holds"`
}

// Ended tells whether the task will not change by itself any more.
func (t Task) Ended() bool {
	switch t.Status {
	case "completed", "merged", "cancelled", "failed":
		return true
	}
	return false
}

// Pull is what the command line reads of a pull request.
type Pull struct {
	ID            string  `json:"id"`
	Repo          string  `json:"repo"`
	Number        int     `json:"number"`
	URL           string  `json:"url"`
	State         string  `json:"state"`
	Checks        string  `json:"checks"`
	HeadSHA       string  `json:"head_sha"`
	MergeSHA      *string `json:"merge_sha"`
	PendingAction *struct {
		Kind  string `json:"kind"`
		State string `json:"state"`
	} `json:"pending_action"`
}

// Approve approves what is asked about the current head of a pull request.
func (c *Client) Approve(ctx context.Context, prID string) (Pull, error) {
	var pr Pull
	if err := c.Call(ctx, http.MethodGet, "/v1/prs/"+prID, nil, &pr); err != nil {
		return pr, err
	}
	return pr, c.Call(ctx, http.MethodPost, "/v1/prs/"+prID+"/approve-pending", map[string]string{"head_sha": pr.HeadSHA}, nil)
}

// Event is one step of a run's timeline.
type Event struct {
	Seq  int64           `json:"seq"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// Watcher is told what a watched task does. Any of its functions may be nil.
type Watcher struct {
	State func(Task)        // the task's state, or the reason why it waits, changed
	Event func(Task, Event) // its run did something
	Pull  func(Pull)        // its pull request changed
}

// Watch follows a task until it ends: its states, the events of each of its
// runs in order, and its pull request.
func (c *Client) Watch(ctx context.Context, taskID string, w Watcher) (Task, error) {
	var last, run, pull string
	var since int64
	for {
		var t Task
		if err := c.Call(ctx, http.MethodGet, "/v1/tasks/"+taskID, nil, &t); err != nil {
			return t, err
		}
		if state := fmt.Sprint(t.Status, t.Stuck, t.Attempt, t.Holds); state != last {
			last = state
			if w.State != nil {
				w.State(t)
			}
		}
		if t.PRID != nil {
			var pr Pull
			if err := c.Call(ctx, http.MethodGet, "/v1/prs/"+*t.PRID, nil, &pr); err != nil {
				return t, err
			}
			if state := fmt.Sprint(pr.State, pr.Checks, pr.HeadSHA, pr.PendingAction != nil); state != pull {
				pull = state
				if w.Pull != nil {
					w.Pull(pr)
				}
			}
		}
		if t.Ended() {
			return t, nil
		}
		// The wait ends at once for a run that has ended: then a short pause
		// keeps us from asking without end while the task waits for others.
		var page struct {
			RunID  *string `json:"run_id"`
			Events []Event `json:"events"`
			Next   int64   `json:"next_since_seq"`
		}
		asked := time.Now()
		if err := c.Call(ctx, http.MethodGet, fmt.Sprintf("/v1/tasks/%s/events?since_seq=%d&wait_ms=1000", taskID, since), nil, &page); err != nil {
			return t, err
		}
		if page.RunID != nil && *page.RunID != run {
			run, since = *page.RunID, 0
			continue // read the new run from its beginning
		}
		for _, e := range page.Events {
			if w.Event != nil {
				w.Event(t, e)
			}
		}
		since = page.Next
		if len(page.Events) == 0 && time.Since(asked) < 100*time.Millisecond {
			select {
			case <-ctx.Done():
				return t, ctx.Err()
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
}

// Print is a watcher that writes one line for each step, for people.
func Print(out io.Writer) Watcher {
	var text strings.Builder
	flush := func() {
		for line := range strings.Lines(text.String()) {
			if s := Inert(line); s != "" {
				fmt.Fprintf(out, "  agent     %s\n", s)
			}
		}
		text.Reset()
	}
	say := func(what, format string, a ...any) {
		flush()
		fmt.Fprintf(out, "  %-9s %s\n", what, Inert(fmt.Sprintf(format, a...)))
	}
	return Watcher{
		State: func(t Task) {
			s := t.Status
			if t.Stuck {
				s += ", stuck"
			}
			if t.Failure != nil && *t.Failure != "" && !t.Ended() || t.Status == "failed" {
				s += fmt.Sprintf(" (last failure: %s %s)", deref(t.FailureKind), deref(t.Failure))
			}
			for _, h := range t.Holds {
				s += fmt.Sprintf("; waits: %s, until %s", h.Reason, h.ClearsWhen)
			}
			say("task", "%s", s)
		},
		Event: func(_ Task, e Event) {
			if chunk, ok := agentText(e); ok {
				text.WriteString(chunk)
				return
			}
			if line := describe(e); line != "" {
				say("run", "%s", line)
			}
		},
		Pull: func(p Pull) {
			line := fmt.Sprintf("#%d %s, head %.10s, checks %s", p.Number, p.State, p.HeadSHA, p.Checks)
			if p.PendingAction != nil && p.PendingAction.State == "pending" {
				line += fmt.Sprintf("; %s waits for approval: yardmaster pr approve %s", p.PendingAction.Kind, p.ID)
			}
			say("pull", "%s", line)
		},
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Inert makes text of agents and repositories inert on a terminal.
func Inert(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if r < 0x20 || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s))
}

// Escape makes text inert on a terminal and keeps all of it: JSON stays the
// same JSON. Line ends and tabs are left.
func Escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func agentText(e Event) (string, bool) {
	var u struct {
		Update  string `json:"sessionUpdate"`
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if e.Kind != "agent.update" || json.Unmarshal(e.Data, &u) != nil || u.Update != "agent_message_chunk" {
		return "", false
	}
	return u.Content.Text, true
}

// describe puts an event into one line; empty for those not worth one.
func describe(e Event) string {
	var d struct {
		Base, Resume, Agent, Version, Model, Isolation, SHA, Ref, State, Error string
		Update                                                                 string `json:"sessionUpdate"`
		Title                                                                  string
		Kind                                                                   string
		FailureKind                                                            string `json:"failure_kind"`
		WIP                                                                    bool
		InputTokens                                                            int64 `json:"input_tokens"`
		OutputTokens                                                           int64 `json:"output_tokens"`
	}
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &d) != nil {
		return e.Kind
	}
	switch e.Kind {
	case "run.accepted":
		return "claimed and accepted by the box"
	case "prepared":
		s := fmt.Sprintf("checked out %.10s", d.Base)
		if d.Resume != "" {
			s += ", saved work of an earlier attempt"
		}
		return s
	case "started":
		return strings.TrimSpace(fmt.Sprintf("agent %s %s started, model %s, isolation %s", d.Agent, d.Version, or(d.Model, "none"), or(d.Isolation, "none")))
	case "agent.update":
		if d.Update == "tool_call" {
			return fmt.Sprintf("tool: %s", or(d.Title, d.Kind))
		}
		return ""
	case "usage":
		return fmt.Sprintf("tokens: %d in, %d out", d.InputTokens, d.OutputTokens)
	case "git.pushed":
		s := fmt.Sprintf("pushed %.10s to %s", d.SHA, strings.TrimPrefix(d.Ref, "refs/heads/"))
		if d.WIP {
			s += " (unfinished work)"
		}
		return s
	case "run.finished":
		return strings.TrimSpace(fmt.Sprintf("finished: %s %s %s", d.State, d.FailureKind, d.Error))
	case "preparing", "agent.permission":
		return ""
	}
	return e.Kind
}

func or(s, alternative string) string {
	if s == "" {
		return alternative
	}
	return s
}
