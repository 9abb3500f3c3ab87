package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Task has the members of a task that the command line uses.
type Task struct {
	ID     string  `json:"id"`
	Repo   string  `json:"repo"`
	Kind   string  `json:"kind"`
	Title  string  `json:"title"`
	Status string  `json:"status"`
	Stuck  bool    `json:"stuck"`
	Branch string  `json:"branch"`
	RunID  *string `json:"run_id"`
	BoxID  *string `json:"box_id"`
	Run    *struct {
		LastSeq int64 `json:"last_seq"`
	} `json:"run"`
	PRID        *string `json:"pr_id"`
	Attempt     int     `json:"attempt"`
	FailureKind *string `json:"failure_kind"`
	Failure     *string `json:"failure"`
	// FinishedAt is when the task ended; nil until then.
	FinishedAt *time.Time `json:"finished_at"`
	Holds      []struct {
		Reason     string `json:"reason"`
		ClearsWhen string `json:"clears_when"`
		Clear      *Clear `json:"clear"`
	} `json:"holds"`
}

// reasons are words for reasons and failures that their own names do not say.
var reasons = map[string]string{
	"needs_person": "for a person", "waiting_person": "for a task that waits for a person", "blocked": "for an answer",
	"unpriced_model": "for a price of its model", "budget_exhausted": "for money", "no_box_online": "for a box",
	"boxes_busy": "for a free box", "boxes_draining": "for a box that takes work", "box_unfit": "for a box that can work",
	"no_credential": "for a model key", "model_unavailable": "for a model", "seats_exhausted": "for a seat",
	"waiting_dependencies": "for other tasks", "retry_backoff": "before its next try", "conflict": "for a task on the same files",
	"code_host_rate": "for its code host", "queue_full": "for room in the queue", "repo_disabled": "for its repository to be enabled",
	"plan_does_not_cover": "for a tier that covers private repositories", "template_missing": "for its template",
	"agent_not_installed": "for a box with its agent", "isolation_unavailable": "for a box that isolates it",
}

// Reason is the reason of a wait, as the API has it, in words.
func Reason(slug string) string {
	if words := reasons[slug]; words != "" {
		return words
	}
	return strings.ReplaceAll(slug, "_", " ")
}

// Clear is the call that ends a wait.
type Clear struct {
	Capability string            `json:"capability"`
	Args       map[string]string `json:"args"`
}

// Plain is a sentence of the server about what clears a wait, without the call in brackets,
// which a command line says better, and with times as people tell them.
func (c *Clear) Plain(until string) string {
	if c.Command() != "" {
		until, _, _ = strings.Cut(until, " ("+c.Capability+" ")
	}
	return Times(until, time.Now())
}

// Command is the command line that makes the call, with a word in capitals or an ellipsis
// for what a person has to fill in; empty if there is none.
func (c *Clear) Command() string {
	if c == nil {
		return ""
	}
	switch c.Capability {
	case "box.add":
		return "yardmaster box join"
	case "billing.key_add":
		return "yardmaster key add --provider NAME"
	case "billing.spend_cap_set":
		return "yardmaster budget set USD"
	case "billing.member_cap_set":
		return "yardmaster budget member " + cmp.Or(Word(c.Args["userId"]), "MEMBER") + " USD"
	case "project.budget_set":
		return "yardmaster budget repo " + Word(cmp.Or(c.Args["owner"], "OWNER")+"/"+cmp.Or(c.Args["repo"], "NAME")) + " USD"
	case "billing.price_set":
		return "yardmaster key prices set " + cmp.Or(Word(c.Args["provider"]), "PROVIDER") + " " +
			cmp.Or(Word(c.Args["model"]), "MODEL") + " --input-usd USD --output-usd USD"
	case "template.set":
		return "yardmaster template set " + cmp.Or(Word(c.Args["name"]), "NAME")
	case "project.update":
		if c.Args["enabled"] == "true" && c.Args["owner"] != "" {
			return "yardmaster repo enable " + Word(c.Args["owner"]+"/"+c.Args["repo"])
		}
	}
	id := c.Args["id"]
	for _, name := range []string{"blockerId", "planId"} {
		if id == "" {
			id = c.Args[name]
		}
	}
	if id = Word(id); id == "" {
		return ""
	}
	switch name := c.Capability; name {
	case "pr.approve_pending":
		return "yardmaster pr approve " + id
	case "pr.ask_again":
		return "yardmaster pr ask-again " + id
	case "pr.merge":
		return "yardmaster pr merge " + id
	case "pr.rearm_babysit":
		return "yardmaster pr rearm " + id + ` "…"`
	case "box.drain":
		if c.Args["resume"] == "true" {
			return "yardmaster box resume " + id
		}
	case "billing.key_budget_set":
		return "yardmaster budget key " + id + " USD"
	case "task.budget_set", "plan.budget_set":
		noun, _, _ := strings.Cut(name, ".")
		return "yardmaster budget " + noun + " " + id + " USD"
	case "escalation.resolve":
		return "yardmaster escalation resolve " + id + ` "…"`
	case "task.cancel", "task.redispatch":
		return "yardmaster task " + strings.TrimPrefix(name, "task.") + " " + id
	case "task.retry_now":
		return "yardmaster task retry " + id
	case "plan.approve":
		return "yardmaster plan approve " + id
	case "blocker.submit", "blocker.spec":
		return "yardmaster blocker fill " + id
	case "blocker.answer":
		if c.Args["blockerId"] != "" {
			return "yardmaster blocker answer " + id + ` "…"`
		}
	}
	return ""
}

// Blocker is the id of the blocker that the call is about; "" if it is about none.
func (c *Clear) Blocker() string {
	if c == nil || !strings.HasPrefix(c.Capability, "blocker.") {
		return ""
	}
	return c.Args["blockerId"]
}

// Ended tells whether the task is over.
func (t Task) Ended() bool {
	switch t.Status {
	case "completed", "merged", "cancelled", "failed":
		return true
	}
	return false
}

// state is the part of a task whose changes a Watcher is told.
func (t Task) state() string {
	s := fmt.Sprint(t.Status, t.Stuck, t.Attempt)
	for _, h := range t.Holds {
		s += "\x00" + h.Reason + "\x00" + h.ClearsWhen + "\x00" + h.Clear.Command()
	}
	return s
}

// Pull has the members of a pull request that the command line uses.
type Pull struct {
	ID       string  `json:"id"`
	Repo     string  `json:"repo"`
	Number   int     `json:"number"`
	URL      string  `json:"url"`
	State    string  `json:"state"`
	Checks   string  `json:"checks"`
	HeadSHA  string  `json:"head_sha"`
	MergeSHA *string `json:"merge_sha"`
	// MergedAt and ClosedAt are when it ended; both are nil until then.
	MergedAt *time.Time `json:"merged_at"`
	ClosedAt *time.Time `json:"closed_at"`
	Review   struct {
		Holding int `json:"holding"` // findings that hold the merge
	} `json:"review"`
	PendingAction *struct {
		ID       string `json:"id"`
		Kind     string `json:"kind"`
		State    string `json:"state"`
		Question string `json:"question"`
		// Error and RetryAt describe an approved merge that failed and is retried.
		Error   *string    `json:"error"`
		RetryAt *time.Time `json:"retry_at"`
		// BeginsAt is when an approved merge begins at the earliest; nil: it does not wait.
		BeginsAt *time.Time `json:"begins_at"`
		// Protected are the changes about which people are always asked.
		Protected *struct {
			Paths []string `json:"paths"`
		} `json:"protected"`
	} `json:"pending_action"`
}

// name is the shortest name by which a command finds it.
func (p Pull) name() string {
	if p.Repo != "" && p.Number > 0 {
		return fmt.Sprintf("%s#%d", p.Repo, p.Number)
	}
	return p.ID
}

// endedAt is when the pull request was merged or closed; zero until then.
func (p Pull) endedAt() time.Time {
	switch {
	case p.MergedAt != nil:
		return *p.MergedAt
	case p.ClosedAt != nil:
		return *p.ClosedAt
	}
	return time.Time{}
}

// Warning is the pending question about a pull request that changes protected
// files, or "".
func (p Pull) Warning() string {
	if a := p.PendingAction; a != nil && a.State == "pending" && a.Protected != nil {
		return a.Question
	}
	return ""
}

// Approve answers yes to the question about the current head of a pull request.
func (c *Client) Approve(ctx context.Context, prID string) (Pull, error) {
	return c.Decide(ctx, prID, "approve-pending", "")
}

// Decide calls approve-pending, skip-pending, merge or ask-again for the current
// head of a pull request. question is the id of the question that the caller has
// read; the server demands it for a question about protected files.
func (c *Client) Decide(ctx context.Context, prID, verb, question string) (Pull, error) {
	var pr Pull
	path := "/v1/prs/" + url.PathEscape(prID)
	if err := c.Call(ctx, http.MethodGet, path, nil, &pr); err != nil {
		return pr, err
	}
	return pr, c.DecideAt(ctx, prID, verb, pr.HeadSHA, question)
}

// DecideAt is Decide for a head that the caller has seen: it is refused if that is not
// the current one.
func (c *Client) DecideAt(ctx context.Context, prID, verb, head, question string) error {
	body := map[string]string{"head_sha": head}
	if question != "" {
		body["action_id"] = question
	}
	return c.Call(ctx, http.MethodPost, "/v1/prs/"+url.PathEscape(prID)+"/"+verb, body, nil)
}

// Event is one step of a run's timeline.
type Event struct {
	Seq  int64           `json:"seq"`
	At   time.Time       `json:"t"` // by the clock of the box; zero if unknown
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// Watcher has the functions that Watch calls. Each may be nil.
type Watcher struct {
	State func(Task)        // the task's state, or the reason for its wait, changed
	Event func(Task, Event) // an event of its run
	Pull  func(Pull)        // its pull request changed
	Lost  func(error)       // the server does not answer; Watch retries until it does
	Back  func()            // it answers again
	Rest  func()            // no event comes any more: what has no end of line yet is written; Watch does not call it
}

const (
	// firstPause is the pause before a task is read again. The pauses grow while
	// nothing changes, so that hours of waiting for a person use a small part of the
	// credential's rate limit.
	firstPause   = 100 * time.Millisecond
	longestPause = 3 * time.Second
	// eventLag is how long Watch waits for a run's events after its task has ended.
	eventLag = 5 * time.Second
)

// Watch follows a task until it ends: its states, the events of each of its runs in
// order, and its pull request. While the server restarts, Watch waits.
func (c *Client) Watch(ctx context.Context, taskID string, w Watcher) (Task, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := follower{c: c, w: w, id: taskID}
	pause := firstPause
	for {
		changed, err := f.look(ctx)
		var refusal *Problem
		known := f.task.ID != "" || errors.As(err, &refusal) // a server has answered before
		if wait, again := tryAgain(ctx, err); again && known {
			if !f.lost && w.Lost != nil {
				w.Lost(err)
			}
			f.lost, pause = true, max(wait, longestPause)
		} else if err != nil {
			return f.task, err
		} else if changed {
			pause = firstPause
		}
		if err == nil && f.task.Ended() {
			return f.task, nil
		}
		ended, err := f.hear(ctx, time.After(pause))
		if err != nil {
			return f.task, err
		}
		if pause = min(pause*3/2, longestPause); ended {
			pause = firstPause
		}
	}
}

// tryAgain tells whether a failed call may succeed later, and after how long.
func tryAgain(ctx context.Context, err error) (after time.Duration, again bool) {
	var p *Problem
	switch {
	case err == nil || ctx.Err() != nil:
		return 0, false
	case errors.As(err, &p):
		return wait(p.RetryAfter), p.Status >= 500 || p.Status == http.StatusTooManyRequests
	}
	var unreachable *Unreachable
	return 0, errors.As(err, &unreachable)
}

// follower is a running Watch.
type follower struct {
	c           *Client
	w           Watcher
	id          string
	task        Task
	state, pull string // as last reported
	run         *tail
	begun       bool // the task was read before
	lost        bool // the server did not answer the last time
	heard       int64
}

// look reads the task and its pull request, and reports changes.
func (f *follower) look(ctx context.Context) (changed bool, err error) {
	var t Task
	if err := f.read(ctx, "/v1/tasks/"+url.PathEscape(f.id), &t); err != nil {
		return false, err
	}
	f.task = t
	state, run := t.state(), t.RunID
	if state != f.state && run == nil && t.Attempt > 0 {
		// A task does not name a run that is over.
		var newest struct {
			RunID *string `json:"run_id"`
		}
		if err := f.read(ctx, "/v1/tasks/"+url.PathEscape(f.id)+"/events?per_page=1", &newest); err != nil {
			return false, err
		}
		run = newest.RunID
	}
	var pr Pull
	if t.PRID != nil {
		if err := f.read(ctx, "/v1/prs/"+url.PathEscape(*t.PRID), &pr); err != nil {
			return false, err
		}
	}
	if f.lost && f.w.Back != nil {
		f.w.Back()
	}
	f.lost = false
	if run != nil && (f.run == nil || f.run.id != *run) {
		f.rest(ctx)
		f.run = f.c.tail(ctx, *run)
	}
	if state != f.state {
		switch {
		case t.Status != "claimed" && t.Status != "running":
			f.rest(ctx) // the events of the run precede its outcome
		case !f.begun && len(t.Holds) > 0 && t.Run != nil:
			f.catchUp(ctx, t.Run.LastSeq) // and what it waits for already
		}
		f.begun = true
		f.state, changed = state, true
		if f.w.State != nil {
			f.w.State(t)
		}
	}
	if t.PRID == nil {
		return changed, nil
	}
	if pull := fmt.Sprint(pr.State, pr.Checks, pr.HeadSHA, pr.PendingAction != nil, pr.Warning()); pull != f.pull {
		f.pull, changed = pull, true
		if f.w.Pull != nil {
			f.w.Pull(pr)
		}
	}
	return changed, nil
}

// read makes a call once: what a follower cannot read now it tells of, and reads later, while
// it goes on to report events.
func (f *follower) read(ctx context.Context, path string, out any) error {
	return f.c.attempt(ctx, http.MethodGet, path, nil, f.c.decoded(http.MethodGet, path, out))
}

// hear reports the events of the run until the run ends or the time is over.
func (f *follower) hear(ctx context.Context, over <-chan time.Time) (ended bool, err error) {
	var events chan Event
	if f.run != nil {
		events = f.run.events
	}
	for {
		select {
		case e, more := <-events:
			if !more {
				f.run.events = nil
				return true, f.run.err
			}
			f.tell(e)
		case <-over:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// catchUp reports the events of a run that goes on, up to one that there is already.
func (f *follower) catchUp(ctx context.Context, last int64) {
	over := time.After(eventLag)
	for f.heard < last && f.run != nil && f.run.events != nil {
		select {
		case e, more := <-f.run.events:
			if !more {
				f.run.events = nil
				return
			}
			f.tell(e)
		case <-over:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tell reports an event.
func (f *follower) tell(e Event) {
	f.heard = e.Seq
	if f.w.Event != nil {
		f.w.Event(f.task, e)
	}
}

// rest reports the remaining events of a run that is over.
func (f *follower) rest(ctx context.Context) {
	if f.run != nil && f.run.events != nil {
		_, _ = f.hear(ctx, time.After(eventLag)) // the task's state reports the failure of the run
	}
}

// tail delivers the events of one run as they arrive.
type tail struct {
	id     string
	events chan Event // nil after its end was read
	err    error      // set before events is closed
}

func (c *Client) tail(ctx context.Context, runID string) *tail {
	t := &tail{id: runID, events: make(chan Event)}
	go func() {
		defer close(t.events)
		t.err = c.Stream(ctx, "/v1/fleet/runs/"+url.PathEscape(runID)+"/events", "", func(f Frame) error {
			var e Event
			if f.Event != "event" || json.Unmarshal(f.Data, &e) != nil {
				return nil
			}
			select {
			case t.events <- e:
				return nil
			case <-ctx.Done():
				return ErrStop
			}
		})
	}()
	return t
}
