// Package task is one scoped unit of work for an agent: how it is asked for,
// how it waits in the queue and why, and every state it may pass through. It
// knows that a box carries it out, not how: the run domain, one above, claims
// tasks, reports what became of them through the move functions (MarkClaimed,
// MarkRunning, Complete, Failed, …), and is called back through StopRun when a
// person takes a task away from its box.
package task

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// Kinds of tasks. Review, babysit and ci are minted by the platform only.
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

// Sinks. Direct work goes to the head of the queue; the other two hand the
// task to a system outside and need it connected.
const (
	SinkQueued = "queued"
	SinkDirect = "direct"
	SinkGH     = "gh"
	SinkLinear = "linear"
)

// Uncapped is a queue depth cap that does not cap.
const Uncapped = -1

// Row is a task as it is stored.
type Row struct {
	ID           string
	AccountID    string
	RepoID       string
	Kind         string
	Sink         string
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
	Template     string
	Command      db.JSON[[]string]
	Confidence   float64
	BudgetMicros *int64
	ResultSchema *string // JSON Schema text
	AskID        *string
	CreatedBy    string
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

// Task is a task as clients see it. Holds say why a pending task is not
// claimable right now; an empty list means that an online box can take it. Of a
// held task, and of a running one whose agent waits, they say who can let it go
// on.
type Task struct {
	ID            string            `json:"id"`
	Repo          string            `json:"repo" doc:"owner/name"`
	Kind          string            `json:"kind"`
	Sink          string            `json:"sink"`
	Title         string            `json:"title"`
	Problem       string            `json:"problem"`
	Status        Status            `json:"status"`
	Attempt       int64             `json:"attempt"`
	MaxAttempts   int64             `json:"max_attempts"`
	FailureKind   *string           `json:"failure_kind"`
	Failure       *string           `json:"failure" doc:"what went wrong last, for people"`
	Holds         []TaskHold        `json:"holds"`
	Stuck         bool              `json:"stuck"`
	Priority      int64             `json:"priority"`
	QueuePosition *int64            `json:"queue_position" doc:"1-based, null unless pending"`
	QueueDepth    int64             `json:"queue_depth"`
	QueueDepthCap int64             `json:"queue_depth_cap" doc:"-1 is uncapped"`
	RunID         *string           `json:"run_id" doc:"null until a box starts it"`
	BoxID         *string           `json:"box_id"`
	Branch        string            `json:"branch"`
	BaseSHA       *string           `json:"base_sha"`
	WIP           *TaskWIP          `json:"wip" doc:"saved unfinished work the next try resumes from"`
	PRID          *string           `json:"pr_id"`
	AskID         *string           `json:"ask_id"`
	PlanID        *string           `json:"plan_id"`
	GroupID       *string           `json:"group_id"`
	DependsOn     []string          `json:"depends_on"`
	Files         []string          `json:"files"`
	Guidance      *string           `json:"guidance"`
	Template      string            `json:"template"`
	Budget        TaskBudget        `json:"budget"`
	Labels        map[string]string `json:"labels"`
	CreatedBy     string            `json:"created_by"`
	CreatedAt     time.Time         `json:"created_at"`
	ClaimedAt     *time.Time        `json:"claimed_at"`
	StartedAt     *time.Time        `json:"started_at"`
	FinishedAt    *time.Time        `json:"finished_at"`
}

// TaskWIP is unfinished work on the task's branch.
type TaskWIP struct {
	SHA   string     `json:"sha"`
	Paths []string   `json:"paths"`
	At    *time.Time `json:"at"`
}

// TaskBudget is in decimal US dollars; usd is null without a limit, spent is
// null while nothing priced was spent.
type TaskBudget struct {
	USD      *string `json:"usd"`
	Reserved *string `json:"reserved"`
	Spent    *string `json:"spent"`
}

// Repo is what tasks and runs need to know of a repository.
type Repo struct {
	ID            string
	Owner, Name   string
	Enabled       bool
	DefaultBranch string
	CloneURL      string
	Template      string        // for tasks that name none; empty: Service.DefaultTemplate
	Conflicts     string        // what becomes of a task that would conflict with open work; empty is ConflictsIgnore
	Isolation     string        // the least that its policy accepts, whatever the template says
	CheckTimeout  time.Duration // of its own check
}

// FullName is owner/name.
func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// Ending is how one try ended.
type Ending struct {
	Outcome     string
	FailureKind *string
}

// Service holds the queue. All function fields are wired by the program; the
// optional ones say so.
type Service struct {
	DB  *db.DB
	Hub *event.Hub

	QueueCap        int64           // pending tasks an account may have, Uncapped for no limit
	Backoff         []time.Duration // wait before the 2nd, 3rd, … try; nil is DefaultBackoff
	DefaultTemplate string          // used when task.create names none

	// RepoByName finds a repository of tx.Account.
	RepoByName func(tx *db.Tx, owner, name string) (Repo, bool, error)
	// RepoByID finds a repository by an id that a stored row holds.
	RepoByID func(tx *db.Tx, id string) (Repo, error)
	// Template tells what the named template of an account demands of a box.
	Template func(tx *db.Tx, account, name string) (Need, bool, error)
	// Seats is how many agents an account may run at once.
	Seats func(tx *db.Tx, account string) (int64, error)
	// StopRun ends the live run of an in-flight task and owes its box a halt.
	StopRun func(tx *db.Tx, t *Row, why string) error

	// Moved is told of every move, within its transaction and after the row is
	// written; a task that was just created comes from "". An error undoes the
	// move. The row is not to be changed.
	Moved []func(tx *db.Tx, t *Row, from Status) error

	// Foresight, optional, tells what tasks would run into.
	Foresight Foresight
	// HeadOf, optional, is the head of a pull request while it is open.
	HeadOf func(tx *db.Tx, prID string) (sha string, err error)

	// Wants, optional, is what the tasks of tx.Account with the ids wait for
	// people to give, oldest first.
	Wants func(tx *db.Tx, taskIDs []string) ([]Want, error)

	// Stops, optional, is what the budget of held tasks of tx.Account lacks.
	Stops func(tx *db.Tx, taskIDs []string) ([]Stop, error)

	PROpen    func(tx *db.Tx, prID string) (bool, error)         // optional: without pull requests none is open
	AskExists func(tx *db.Tx, askID string) (bool, error)        // optional: without asks there is none
	Endings   func(tx *db.Tx, taskID string) ([]Ending, error)   // optional: ended tries, oldest first
	Pulse     func(tx *db.Tx, taskID string) (*TaskPulse, error) // optional: of the newest run, nil without one

	foreseen foreseen
}

// Why a run is stopped from outside.
const (
	StopCancelled    = "cancelled"
	StopReassigned   = "reassigned"
	StopRedispatched = "redispatched"
)
