// Package task is the life of one scoped unit of work for an agent: how it is asked
// for, every state that it may pass through, and how it is shown. The order in which
// tasks are claimed is package queue, above this one, which New is given as a Queue.
// How a box carries a task out is package run, above both: it moves tasks by
// MarkClaimed, MarkRunning, Complete, AttemptFailed and others, and is told by
// RunUnwanted when a person takes a task away from its box.
//
//	task.go      a task, as it is stored and as clients see it
//	states.go    the states, the moves between them, and what a failed try leads to
//	service.go   the dependencies of Service
//	ops.go       the capabilities, and the calls that move tasks
//	create.go    task.create and Create; batch.go several at once; setup.go project.setup
//	move.go      the moves
//	wait.go      what a pending task waits for, and what the queue is told of it
//	relink.go    what tasks depend on
//	hold.go      reasons why a task is not being worked on, and those that people end
//	view.go      the wire form of tasks
//	result.go    the result at the end of a report; text.go names of branches
//	events.go    the events and signals
//	store.go     the rows; store_wait.go those that wait
package task

import (
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// Kind is what sort of work a task is.
type Kind string

// Kinds of tasks. Only the platform creates tasks of the kinds review, babysit and ci.
const (
	KindWork    = "work"
	KindScout   = "scout"
	KindSetup   = "setup"
	KindReview  = "review"
	KindBabysit = "babysit"
	KindKB      = "kb"
	KindDevops  = "devops"
	KindCI      = "ci"
)

// Values lists all kinds.
func (Kind) Values() []string {
	return []string{KindWork, KindScout, KindSetup, KindReview, KindBabysit, KindKB, KindDevops, KindCI}
}

// Sink is where a new task goes.
type Sink string

// Sinks. Direct tasks go to the head of the queue. Gh and linear are systems outside, which
// have to be connected.
const (
	SinkQueued Sink = "queued"
	SinkDirect Sink = "direct"
	SinkGH     Sink = "gh"
	SinkLinear Sink = "linear"
)

// Values lists all sinks.
func (Sink) Values() []string {
	return []string{string(SinkQueued), string(SinkDirect), string(SinkGH), string(SinkLinear)}
}

// Uncapped is the limit of an account whose pending tasks have none.
const Uncapped = -1

// Row is a task as it is stored.
type Row struct {
	ID           string
	AccountID    string
	RepoID       string
	Kind         string
	Sink         Sink
	Title        string
	Problem      string
	Status       Status
	Attempt      int64 // tries begun since it was created, released or redispatched
	Charged      int64 // failed tries that count against MaxAttempts
	Uncharged    int64 // tries in a row that did not count
	MaxAttempts  int64
	FailureKind  *string
	Failure      *string
	Priority     int64
	Stuck        bool
	NotBefore    time.Time // of the next try
	WaitingDeps  int64     // dependencies that have not succeeded yet
	QueuedAt     time.Time
	RunID        *string // of the newest try, none while pending
	BoxID        *string
	Branch       string
	BaseSHA      *string           `db:"base_sha"`
	WIPSHA       *string           `db:"wip_sha"`
	WIPPaths     db.JSON[[]string] `db:"wip_paths"`
	WIPAt        *time.Time        `db:"wip_at"`
	PRID         *string           `db:"pr_id"`
	CheckoutSHA  *string           `db:"checkout_sha"`
	Files        db.JSON[[]string]
	Labels       db.JSON[map[string]string]
	Guidance     *string
	Unbound      bool // git goes without the token that the requester has bound
	Template     string
	Command      db.JSON[[]string]
	Confidence   float64
	BudgetMicros *int64
	ResultSchema *string // JSON Schema text
	AskID        *string
	CreatedBy    string
	RequestedBy  *string // the person at the beginning of the chain; none if nobody asked
	CreatedAt    time.Time
	UpdatedAt    time.Time
	ClaimedAt    *time.Time
	StartedAt    *time.Time
	FinishedAt   *time.Time
	PlanID       *string // set once the task is part of a plan
	GroupID      *string // of the plan

	ConflictWith  *string           // the open task that keeps this pending one back
	ConflictPaths db.JSON[[]string] // where both would write
	ConflictAt    *time.Time        // since when
	StackedOn     *string           // the task on whose work this one is to begin
	StartSHA      *string           `db:"start_sha"` // the commit of that
}

// Task is a task as clients see it. Holds say why no box can claim a pending task now;
// without holds an online box can. The holds of a held task, and of a running one whose
// agent waits, say who can let the task go on.
type Task struct {
	_             struct{}          `doc:"One scoped unit of work, from the queue to the merge."`
	ID            string            `json:"id" format:"uuid" doc:"random UUID; its first eight digits end the name of the branch"`
	Repo          string            `json:"repo" doc:"owner/name"`
	Kind          Kind              `json:"kind" doc:"what sort of work; review, babysit and ci are made by the platform alone"`
	Sink          Sink              `json:"sink" doc:"how it was dispatched; direct went to the head of the queue"`
	Title         string            `json:"title" doc:"one line"`
	Problem       string            `json:"problem" doc:"what the agent is asked to do, as it was filed"`
	Status        Status            `json:"status" example:"running" doc:"pending: in the queue; held: parked until a person or a budget acts; claimed: a box has it and the agent has not started; awaiting_ci, awaiting_review and mergeable: its pull request is open; completed, merged and cancelled are final; failed is left by task.redispatch alone"`
	Attempt       int64             `json:"attempt" doc:"tries begun since it was created, released or redispatched"`
	MaxAttempts   int64             `json:"max_attempts" example:"3" doc:"how many failures that count end it for good"`
	FailureKind   *string           `json:"failure_kind" example:"null" doc:"slug of what went wrong last, such as run_timeout, box_lost or merge_conflict; null when nothing has"`
	Failure       *string           `json:"failure" example:"null" doc:"what went wrong last, for people; null when nothing has"`
	Holds         []Hold            `json:"holds" example:"[]" doc:"why it is not being worked on; empty for a pending task that an online box can take"`
	Stuck         bool              `json:"stuck" example:"false" doc:"running without progress for 15 minutes, its ladder of fixes spent, or behind something only a person clears for over an hour"`
	Priority      int64             `json:"priority" example:"50" doc:"0 to 100; higher is claimed first"`
	QueuePosition *int64            `json:"queue_position" example:"null" doc:"its place among the tasks that wait, from 1; null unless pending"`
	QueueDepth    int64             `json:"queue_depth" doc:"how many tasks of the account are pending"`
	QueueDepthCap int64             `json:"queue_depth_cap" example:"1000" doc:"how many may be pending at most; -1 is uncapped"`
	RunID         *string           `json:"run_id" format:"uuid" doc:"the newest try; null until a box starts it"`
	Activity      *string           `json:"activity" example:"Run the tests of the footer" doc:"what the agent does now: the title of the newest tool that it has called, in one line of at most 200 bytes; null unless running, and until it has called one"`
	BoxID         *string           `json:"box_id" format:"uuid" doc:"the box of the newest try; null while pending"`
	Branch        string            `json:"branch" doc:"the branch that the agents push to"`
	BaseSHA       *string           `json:"base_sha" example:"3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b" doc:"the commit that the newest try works from; null until a box has checked it out"`
	WIP           *WIP              `json:"wip" example:"null" doc:"saved unfinished work that the next try resumes from; null when there is none"`
	PRID          *string           `json:"pr_id" format:"uuid" example:"null" doc:"the pull request that holds its work, or that it is about; null without one"`
	AskID         *string           `json:"ask_id" format:"uuid" doc:"the ask it answers; null when nobody named one"`
	PlanID        *string           `json:"plan_id" format:"uuid" example:"null" doc:"the plan it is part of; null outside plans"`
	GroupID       *string           `json:"group_id" format:"uuid" example:"null" doc:"the group of that plan; null outside plans"`
	DependsOn     []string          `json:"depends_on" format:"uuid" example:"[]" doc:"tasks that must succeed before it starts"`
	Files         []string          `json:"files" example:"[\"web/footer.html\"]" doc:"paths the work is expected to touch"`
	Guidance      *string           `json:"guidance" example:"null" doc:"note of whoever redispatched it last, which the agent is shown; null without one"`
	Template      string            `json:"template" example:"default" doc:"name of the agent template it runs with; empty for kind ci"`
	Budget        Budget            `json:"budget" doc:"what it may spend and has spent"`
	Labels        map[string]string `json:"labels" example:"{\"team\":\"web\"}" doc:"names and values given when it was created"`
	CreatedBy     string            `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who made this row: a person, a token, or the platform (system)"`
	RequestedBy   *string           `json:"requested_by" format:"uuid" doc:"id of the person at the beginning of the chain, whose limits, own boxes and system prompt hold; null: nobody asked"`
	CreatedAt     time.Time         `json:"created_at" doc:"when it was created"`
	ClaimedAt     *time.Time        `json:"claimed_at" doc:"when its box claimed it; null while pending"`
	StartedAt     *time.Time        `json:"started_at" doc:"when the agent of the newest try started; null before, and while pending"`
	FinishedAt    *time.Time        `json:"finished_at" example:"null" doc:"when it was completed, merged, cancelled or failed; null until then"`
}

// WIP is unfinished work on the task's branch.
type WIP struct {
	_     struct{}   `doc:"Unfinished work that was saved on the task's branch."`
	SHA   string     `json:"sha" example:"3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b" doc:"the saved commit"`
	Paths []string   `json:"paths" doc:"files it changes"`
	At    *time.Time `json:"at" doc:"when it was saved"`
}

// Budget is in decimal US dollars. USD is nil without a limit, Spent while no priced
// call was made.
type Budget struct {
	_        struct{} `doc:"Money of a task, in decimal US dollars."`
	USD      *string  `json:"usd" format:"decimal" example:"5.00" doc:"the most all its tries may spend; null without a limit of its own"`
	Reserved *string  `json:"reserved" format:"decimal" example:"0.12" doc:"set aside for model calls that are under way; null when no box holds the task"`
	Spent    *string  `json:"spent" format:"decimal" example:"0.42" doc:"what its tries have spent; null while nothing priced was spent"`
}

// Repo is what tasks and runs need to know of a repository.
type Repo struct {
	ID            string
	Owner, Name   string
	HostRepo      codehost.Repo `db:"-"` // the repository as its code host names it
	Enabled       bool
	Gone          string    `db:"-"` // why its code host does not let the server in, see repo.Ref; empty: it does
	Uncovered     bool      `db:"-"` // it is private, and the tier of its account is without private repositories
	Lacks         string    `db:"-"` // the permission that its code host demands for git and does not grant, see repo.Ref
	InTheWay      string    `db:"-"` // the branch beside which git cannot have those of tasks, see repo.Ref; empty: none is known
	Unborn        bool      `db:"-"` // its default branch has no commit yet
	HeldAt        time.Time `db:"-"` // since when tasks of it are held because it is gone, not enabled, or Lacks something
	UncoveredAt   time.Time `db:"-"` // since when because it is Uncovered; zero, as above: not known
	DefaultBranch string
	CloneURL      string
	Template      string        // for tasks that name none; empty: Needs.DefaultTemplate
	Conflicts     string        // what becomes of a task that would conflict with open work; empty is queue.ConflictsIgnore
	Isolation     string        // the least that its policy accepts, whatever the template says
	CheckTimeout  time.Duration // of its own check
	LFS           bool          `db:"-"` // files of Git LFS are in its checkouts
	Depth         int           `db:"-"` // commits of history in its checkouts; 0: all
}

// FullName is owner/name.
func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// Ending is how one try ended.
type Ending struct {
	Outcome     string
	FailureKind *string
}

// Reasons why a run is stopped from outside.
const (
	StopCancelled    = "cancelled"
	StopReassigned   = "reassigned"
	StopRedispatched = "redispatched"
	StopRepoGone     = "repo_gone" // the code host does not let the server at the repository any more
)
