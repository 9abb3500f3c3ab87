package task

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
	"yardmaster/internal/secretscan"
)

const group = "Tasks"

// Ops returns the capabilities of tasks.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadTasks), policy.Require(policy.WriteTasks)
	return []op.Op{
		op.New(op.Row{ID: "task.create", Method: "POST", Path: "/v1/tasks", Group: group, Rule: write, Status: 202,
			Summary: "Dispatch one scoped task",
			Doc:     "Puts the task into the queue of an enabled repository and answers its place there; a box claims it when nothing holds it back. With confidence below 0.5 no task is made: an escalation asks a person instead, kind is escalated and task_id null. Refused when the account has no seat, when the queue is full, and when the problem is nothing but links to issues or pull requests, which an agent cannot follow.",
			Refuses: []op.Refusal{{Status: 403, Slug: "no-capacity"}, {Status: 404, Slug: "not-found"},
				{Status: 409, Slug: "repo_disabled"}, {Status: 422, Slug: "problem-is-only-link"},
				{Status: 422, Slug: "sink-not-configured"}, {Status: 429, Slug: "queue-full"}}},
			s.create),
		op.New(op.Row{ID: "project.setup", Method: "POST", Path: "/v1/repos/{owner}/{repo}/setup", Group: "Repositories", Rule: write,
			Status:  202,
			Summary: "Send an agent to look a repository over and give it its base: scripts, tools and notes for agents",
			Doc:     "Queues one task of kind setup, which surveys the stack and leaves scripts, an MCP configuration and notes for agents in a pull request. A repository that is not enabled is answered 404.",
			Refuses: []op.Refusal{{Status: 403, Slug: "no-capacity"}, {Status: 404, Slug: "not-found"}, {Status: 429, Slug: "queue-full"}}},
			s.setup),
		op.New(op.Row{ID: "task.list", Method: "GET", Path: "/v1/tasks", Group: group, Rule: read,
			Summary: "List the account's tasks, newest first; q searches the title, 20,000 tasks a page, which may be short or empty and still have a next",
			Doc:     "Without a filter all tasks of the account are listed, finished ones too. stuck:true leaves those that are shown as stuck. finished:24h leaves those that ended within the last 24 hours. waits:person leaves those that go on only if a person acts: held ones, those whose run is parked, whose pull request needs somebody, and pending ones with a hold that no passing of time ends. person:ID leaves those at whose beginning that person is, person:me those of the caller; since:TIME and before:TIME those created then or later, and before, each a time or a day (UTC). id:PART leaves those whose id begins or ends with it, branch:NAME those that work on the branch, box:ID those whose newest try is on the box.", Paging: paging()}, s.list),
		op.New(op.Row{ID: "task.run_status", Method: "GET", Path: "/v1/tasks/{id}", Group: group, Rule: read,
			Summary: "One task: its place in the queue, its holds, its run",
			Doc:     "Of a pending task, holds say why no box has claimed it; an empty list means that an online box can take it. run is the newest try."}, s.get),
		op.New(op.Row{ID: "task.reassign", Method: "POST", Path: "/v1/tasks/{id}/reassign", Group: group, Rule: write,
			Summary: "Take a task from its box and queue it again",
			Doc:     "Stops the run on the box that holds the task and puts the task back into the queue; the stopped try is not charged. A task that no box holds is left alone and answers reassigned false; one that is over is refused.",
			Refuses: []op.Refusal{{Status: 409, Slug: "task_terminal"}}}, s.reassign),
		op.New(op.Row{ID: "task.cancel", Method: "POST", Path: "/v1/tasks/{id}/cancel", Group: group, Rule: write,
			Summary: "Cancel a task; its box is interrupted",
			Doc:     "Interrupts the box, if one works on the task, and fails the tasks that depend on it. A task that is over stays as it is and answers kind already_terminal. The review of a pull request that is still open is refused.",
			Refuses: []op.Refusal{{Status: 409, Slug: "not_cancellable_review"}}}, s.cancel),
		op.New(op.Row{ID: "task.redispatch", Method: "POST", Path: "/v1/tasks/{id}/redispatch", Group: group, Rule: write,
			Summary: "Give a failed, held or stuck task fresh attempts; one that waits for its next try is hurried with task.retry_now",
			Doc:     "Puts the task back into the queue with attempt 0, together with the dependents that failed because of it. It resumes from the work saved on its branch; saved_wip says what there is. Refused for tasks that wait, were cancelled, have shipped, or run without being stuck, and for those that depend on a task that did not succeed.",
			Refuses: []op.Refusal{{Status: 409, Slug: "already_pending"}, {Status: 409, Slug: "operator_cancelled"},
				{Status: 409, Slug: "already_shipped"},
				{Status: 409, Slug: "in_flight"}, {Status: 409, Slug: "dependency_failed"}}}, s.redispatch),
		op.New(op.Row{ID: "task.retry_now", Method: "POST", Path: "/v1/tasks/{id}/retry-now", Group: group, Rule: write,
			Summary: "End the wait of a task before its next try",
			Doc:     "For a task that waits out the pause after a failed try; its tries stay counted. Refused when it does not wait for that.",
			Refuses: []op.Refusal{{Status: 409, Slug: "not_waiting"}}}, s.retryNow),
	}
}

func paging() *op.Paging {
	return &op.Paging{Default: 50, Max: 200, Q: true, Several: []string{"status", "kind"}, Filters: map[string][]string{
		"status":   Pending.Values(),
		"stuck":    {"true"},
		"waits":    {"person"},
		"finished": {"24h"},
		"kind":     {KindWork, KindScout, KindSetup, KindReview, KindBabysit, KindKB, KindDevops, KindCI},
		"repo":     nil,
		"label":    nil, // name=value
		"id":       nil, // a part of it
		"branch":   nil,
		"box":      nil, // id
		"person":   nil, // id, or me
		"since":    nil, // a time or a day
		"before":   nil, // the same
	}}
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (page op.Page[Task], err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if l := in.Want("label"); l != "" && !strings.Contains(l, "=") {
			return fault.Field("filter", "is label:name=value")
		}
		var repoID string
		if name := in.Want("repo"); name != "" {
			owner, repo, _ := strings.Cut(name, "/")
			r, ok, err := s.RepoByName(tx, owner, repo)
			if err != nil {
				return err
			}
			if !ok {
				page = op.NewPage(in.PageIn, []Task{}, nil)
				return nil
			}
			repoID = r.ID
		}
		rows, end, err := s.page(tx, in.PageIn, repoID)
		if err != nil {
			return err
		}
		shown := op.NewPage(in.PageIn, rows, pageKey)
		if page.NextCursor = shown.NextCursor; end != nil {
			page.NextCursor = in.At(end)
		}
		page.Data, err = s.view(tx, shown.Data, newest(in.PageIn))
		return err
	})
	return page, err
}

// newest tells whether a page begins with the newest task and leaves out no pending
// one.
func newest(p op.PageIn) bool {
	if p.Cursor != "" || p.Q != "" {
		return false
	}
	for _, key := range []string{"repo", "kind", "label", "stuck", "waits", "finished", "id", "branch", "box", "person", "since",
		"before"} {
		if p.Want(key) != "" {
			return false
		}
	}
	states := p.Wants("status")
	return states == nil || slices.Contains(states, string(Pending))
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the task"`
}

// Detail is one task with the pulse of its newest run.
type Detail struct {
	_ struct{} `doc:"One task, with how its newest run is doing."`
	Task
	Run  *Pulse `json:"run" doc:"how the newest try is doing; null until a box has claimed the task"`
	Plan *Plan  `json:"plan" doc:"the unit of the plan that the task is; null outside of a plan"`
}

// Plan is what a task is in its plan.
type Plan struct {
	_          struct{} `doc:"What a task is in its plan."`
	ID         string   `json:"id" format:"uuid" doc:"id of the plan"`
	Title      string   `json:"title" doc:"title of the plan"`
	Dir        *string  `json:"dir" example:"plans/footer" doc:"where the plan's documents are committed"`
	GroupID    *string  `json:"group_id" doc:"null for the scout that drafts the plan"`
	Slug       *string  `json:"slug" example:"compute-the-year" doc:"of its unit"`
	Files      []string `json:"files" example:"[\"web/footer.html\"]" doc:"that its unit is to touch"`
	Upstream   []string `json:"upstream" example:"[]" doc:"groups that must be done before it"`
	Downstream []string `json:"downstream" example:"[]" doc:"groups that wait for it"`
}

// Pulse tells how a run is doing.
type Pulse struct {
	_              struct{}            `doc:"How the newest run of a task is doing."`
	ID             string              `json:"id" format:"uuid" doc:"id of the run"`
	State          measure.RunState    `json:"state" example:"live" doc:"leased: a box has it and the agent has not started; parked: the agent waits for a person"`
	Outcome        *measure.Outcome    `json:"outcome" example:"null" doc:"how it ended; null while it goes on"`
	Agent          string              `json:"agent" example:"claude" doc:"the program that works, from the template"`
	Model          *string             `json:"model" example:"model-1" doc:"the model it works with; null when the template names none"`
	Isolation      *protocol.Isolation `json:"isolation" doc:"the sandbox level the agent runs at; null until it has started"`
	LastSeq        int64               `json:"last_seq" doc:"number of the newest stored event of the run"`
	ProgressAt     time.Time           `json:"progress_at" doc:"time of the newest event; a run without one for 15 minutes counts as stuck"`
	LeaseExpiresAt *time.Time          `json:"lease_expires_at" doc:"when the box loses the run unless it renews; null once it has ended"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Detail, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		t, err := find(tx, in.ID, false)
		if err != nil {
			return err
		}
		shown, err := s.view(tx, []Row{t}, false)
		if err != nil {
			return err
		}
		out.Task = shown[0]
		if out.Run, err = s.Related.Pulse(tx, t.ID); err != nil {
			return err
		}
		if t.PlanID != nil {
			out.Plan, err = s.Related.InPlan(tx, &t)
		}
		return err
	})
	return out, err
}

// Reassigned is the answer of task.reassign.
type Reassigned struct {
	_          struct{} `doc:"What task.reassign did."`
	TaskID     string   `json:"task_id" format:"uuid" doc:"id of the task"`
	Status     Status   `json:"status" doc:"state of the task after the call; pending when it was taken away"`
	Reassigned bool     `json:"reassigned" doc:"false when no box held it"`
}

func (s *Service) reassign(ctx context.Context, in idIn) (out Reassigned, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, err := find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if t.Status.Terminal() {
			return fault.Reason("task_terminal", "The task is "+string(t.Status)+"; there is nothing to reassign.")
		}
		moved := t.Status.InFlight()
		if moved {
			if err := RunUnwanted.Send(tx, Unwanted{&t, StopReassigned}); err != nil {
				return err
			}
			if err := s.Requeue(tx, &t, StopReassigned); err != nil {
				return err
			}
		}
		out = Reassigned{TaskID: t.ID, Status: t.Status, Reassigned: moved}
		return nil
	})
	return out, err
}

// TaskCancelled is the answer of task.cancel.
type TaskCancelled struct {
	_      struct{} `doc:"What task.cancel did."`
	Kind   string   `json:"kind" enum:"cancelled,already_terminal" doc:"already_terminal: the task was over before, and nothing was changed"`
	TaskID string   `json:"task_id" format:"uuid" doc:"id of the task"`
	Status Status   `json:"status" example:"cancelled" doc:"state of the task after the call"`
}

func (s *Service) cancel(ctx context.Context, in idIn) (out TaskCancelled, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, err := find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if t.Status.Terminal() {
			out = TaskCancelled{Kind: "already_terminal", TaskID: t.ID, Status: t.Status}
			return nil
		}
		if t.Kind == KindReview && t.PRID != nil {
			open, err := s.Related.PullOpen(tx, *t.PRID)
			if err != nil {
				return err
			}
			if open {
				return fault.Reason("not_cancellable_review", "This is the review of a pull request that is still open.")
			}
		}
		if err := s.Cancel(tx, &t); err != nil {
			return err
		}
		out = TaskCancelled{Kind: "cancelled", TaskID: t.ID, Status: t.Status}
		return nil
	})
	return out, err
}

// Cancel ends a locked task that is not terminal, its run, and what waits for it.
func (s *Service) Cancel(tx *db.Tx, t *Row) error {
	if err := lockFollowers(tx, t); err != nil {
		return err
	}
	if t.Status.InFlight() {
		if err := RunUnwanted.Send(tx, Unwanted{t, StopCancelled}); err != nil {
			return err
		}
	}
	if err := move(s, tx, t, Cancelled, cancelledEvent, Change{}); err != nil {
		return err
	}
	return s.failDependents(tx, t)
}

type redispatchIn struct {
	ID       string  `json:"id" format:"uuid" doc:"id of the task"`
	Guidance *string `json:"guidance,omitempty" maxLength:"2000" example:"The test needs the database of docker-compose.yml; start that first." doc:"rides the next brief as an operator note, and those after it until other guidance takes its place; what looks like a secret is removed"`
}

// Redispatched is the answer of task.redispatch.
type Redispatched struct {
	_                  struct{} `doc:"What task.redispatch did, and what the next run begins from."`
	TaskID             string   `json:"task_id" format:"uuid" doc:"id of the task"`
	Status             Status   `json:"status" doc:"state of the task after the call: pending"`
	PriorAttempt       int64    `json:"prior_attempt" example:"3" doc:"how many tries it had had before this call set them back to 0"`
	SavedWIP           SavedWIP `json:"saved_wip" doc:"the unfinished work that the next run resumes from"`
	ReleasedDependents []string `json:"released_dependents" format:"uuid" doc:"tasks that had failed because of this one and wait again"`
	GuidanceChars      *int     `json:"guidance_chars,omitempty" example:"68" doc:"characters of the guidance that was kept, after what looked like secrets was removed; absent without guidance"`
}

// SavedWIP tells what the next run resumes from.
type SavedWIP struct {
	_        struct{}         `doc:"Unfinished work on a task's own branch."`
	Found    bool             `json:"found" doc:"whether there is saved work; false: the next run begins from the base branch"`
	SHA      *string          `json:"sha" example:"3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b" doc:"tip of the task's own branch; null without saved work"`
	Paths    []string         `json:"paths" doc:"files that the saved work changed"`
	Failures []string         `json:"failures" example:"[\"agent_crashed\",\"run_timeout\"]" doc:"failure kinds of the tries so far, oldest first"`
	Ending   *measure.Outcome `json:"ending" example:"failed" doc:"how the last try ended; null before any has"`
}

func (s *Service) redispatch(ctx context.Context, in redispatchIn) (out Redispatched, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, err := find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if err := redispatchable(&t); err != nil {
			return err
		}
		if t.Status.Shipped() {
			return s.shipped(tx, &t)
		}
		if err := lockFollowers(tx, &t); err != nil {
			return err
		}
		if lost, status, err := lostUpstream(tx, t.ID); err != nil {
			return err
		} else if lost != "" {
			advice := "redispatch that one."
			if status == Cancelled {
				advice = "that is for good: create a task that does not depend on it."
			}
			return fault.Reason("dependency_failed",
				"It depends on the task "+lost+", which is "+string(status)+"; "+advice).With("depends_on", lost)
		}
		if t.Status.InFlight() {
			if err := RunUnwanted.Send(tx, Unwanted{&t, StopRedispatched}); err != nil {
				return err
			}
		}
		out = Redispatched{TaskID: t.ID, PriorAttempt: t.Attempt}
		unbind := false
		if in.Guidance != nil {
			text := secretscan.Scrub(*in.Guidance)
			n := utf8.RuneCountInString(text)
			t.Guidance, out.GuidanceChars = &text, &n
			// Whoever steers the work does not get the requester's token for it.
			if unbind = t.RequestedBy != nil && *t.RequestedBy != policy.From(ctx).UserID && !t.Unbound; unbind {
				t.Unbound = true
			}
		}
		if out.SavedWIP, err = s.savedWIP(tx, &t); err != nil {
			return err
		}
		data := redispatchedData{FailureKind: t.FailureKind, PriorAttempt: t.Attempt, Unbound: unbind}
		released, err := revive(s, tx, &t, redispatchedEvent, data)
		if err != nil {
			return err
		}
		out.ReleasedDependents = append([]string{}, released...)
		out.Status = t.Status
		return nil
	})
	return out, err
}

// redispatchable returns a fault if the state of t forbids a redispatch.
func redispatchable(t *Row) error {
	switch {
	case t.Status == Failed, t.Status == Held, t.Status == Running && t.Stuck, t.Status.Shipped(): // see shipped
		return nil
	case t.Status == Pending:
		return fault.Reason("already_pending",
			"The task is already in the queue. task.retry_now ends the wait before its next try, if it is that.")
	case t.Status == Cancelled:
		return fault.Reason("operator_cancelled", "The task was cancelled; create a new one instead.")
	}
	return fault.Reason("in_flight", "A box is working on the task and it is not stuck; reassign or cancel it instead.")
}

// shipped returns the fault for the redispatch of a task whose work is done or in a pull
// request; the fault says how the pull request goes on.
func (s *Service) shipped(tx *db.Tx, t *Row) error {
	text := "The task's work has shipped: it is " + string(t.Status) + "."
	if t.PRID == nil || t.Status.Terminal() {
		return fault.Reason("already_shipped", text)
	}
	needs, err := s.pullNeeds(tx, shippedPulls([]Row{*t}))
	if err != nil {
		return err
	}
	if n, ok := needs[*t.PRID]; ok {
		return fault.Reason("already_shipped", text+" It goes on when "+n.Words()+".").With("pr_id", *t.PRID).With("clear", n.Clear)
	}
	return fault.Reason("already_shipped",
		text+" What becomes of it is up to its pull request "+*t.PRID+": pr.get tells how that is.").With("pr_id", *t.PRID)
}

// Hurried is the answer of task.retry_now.
type Hurried struct {
	_      struct{} `doc:"What task.retry_now did."`
	TaskID string   `json:"task_id" format:"uuid" doc:"id of the task"`
	Status Status   `json:"status" doc:"state of the task after the call"`
}

// retryNow ends the wait before the next try of a task. Its tries stay counted; a
// redispatch would give new ones.
func (s *Service) retryNow(ctx context.Context, in idIn) (out Hurried, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		t, err := find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if t.Status != Pending || !t.NotBefore.After(tx.Now) {
			return fault.Reason("not_waiting", "The task is "+string(t.Status)+" and does not wait before its next try.")
		}
		t.NotBefore = time.UnixMicro(0)
		if err := store(tx, &t, Pending); err != nil {
			return err
		}
		out = Hurried{TaskID: t.ID, Status: t.Status}
		return tell(s.Hub, tx, &t, hurriedEvent, Change{})
	})
	return out, err
}

func (s *Service) savedWIP(tx *db.Tx, t *Row) (SavedWIP, error) {
	w := SavedWIP{Found: t.WIPSHA != nil, SHA: t.WIPSHA, Paths: append([]string{}, t.WIPPaths.V...), Failures: []string{}}
	ends, err := s.Related.Endings(tx, t.ID)
	for _, e := range ends {
		if e.FailureKind != nil {
			w.Failures = append(w.Failures, *e.FailureKind)
		}
		w.Ending = (*measure.Outcome)(&e.Outcome)
	}
	return w, err
}
