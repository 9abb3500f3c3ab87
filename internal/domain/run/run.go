// Package run is one try of a task on one box under a lease. Boxes claim work
// here, renew their leases and report what happens as events; a run that ends,
// or that a box loses, moves its task on. What a person may see of runs (the
// attempts of a task, their timeline, what they delivered) is served here too.
//
// A run has one writer, the box that holds its lease. It is fenced by its end:
// an ended run takes no events, its tokens are dead, and its box is told to
// stop. So whatever a box that was cut off still says changes nothing.
package run

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
)

// States of a run. Parked is live, but waiting for a person.
const (
	Leased = "leased" // given to a box that has not started the agent yet
	Live   = "live"
	Parked = "parked"
	Ended  = "ended"
)

// Outcomes of an ended run.
const (
	Succeeded   = "succeeded"
	Failed      = "failed"
	Interrupted = "interrupted" // stopped from outside
	Lost        = "lost"        // its box went away
)

// Row is a run as it is stored.
type Row struct {
	ID             string
	AccountID      string
	TaskID         string
	RepoID         string
	Attempt        int64
	BoxID          string
	ClaimID        string
	State          string
	LeaseExpiresAt time.Time
	CommittedSeq   int64 // newest event stored; they have no gaps
	Isolation      *string
	IsolationHolds *db.JSON[[]string]
	Agent          string
	AgentVersion   *string
	Template       string
	Model          string
	ResumeSHA      *string `db:"resume_sha"`
	AgentSession   *string
	Outcome        *string
	FailureKind    *string
	Error          *string
	Report         *string
	ReportBy       *string
	Tip            *string
	CreatedAt      time.Time
	AcceptedAt     *time.Time
	StartedAt      *time.Time
	ProgressAt     time.Time  // of the newest event
	WokenAt        *time.Time // when it was sent a message while parked; nil once it goes on
	EndedAt        *time.Time
	Halting        string // failure kind of a run that was told to hand in and end; empty otherwise
	HaltingWhy     string // in words
}

// Template is how an agent is to be run.
type Template struct {
	Agent     string // builtin, claude, codex, …, or command
	Model     string
	Options   map[string]string
	Command   []string // argv of the agent command
	Timeout   time.Duration
	Isolation string // the least acceptable
}

// Bus is what runs need of the message bus.
type Bus interface {
	// Handle answers a method that boxes call.
	Handle(method string, fn func(ctx context.Context, boxID string, data []byte) (any, error)) error
}

// Ending is how a box says that a run has ended, and what the code host says of
// it.
type Ending struct {
	protocol.Finished
	// BranchAt is where the branch of a task was when its run had ended well with
	// commits; "" if there is none.
	BranchAt string
}

// Setup tells what a run begins with.
type Setup interface {
	// Template finds an account's template; false if there is none of the name.
	Template(tx *db.Tx, account, name string) (Template, bool, error)
	// Policy is the policy that a run in a repository begins under, as its session
	// keeps it.
	Policy(tx *db.Tx, repoID string) (string, error)
	// Notes are paragraphs of a brief besides the task: prompts, the box's briefing,
	// answers, the names of secrets.
	Notes(tx *db.Tx, t *task.Row, boxID string) ([]string, error)
	// Servers are the MCP servers that a run of the task may use.
	Servers(tx *db.Tx, t *task.Row) ([]protocol.MCPServer, error)
}

// Boxes tells of the boxes that runs are on.
type Boxes interface {
	// SealKey is what secrets for the present process of a box are sealed to; empty
	// until that has said hello.
	SealKey(tx *db.Tx, boxID string) (string, error)
	// FaultShown is what tx.Account may know of a fault of a box.
	FaultShown(tx *db.Tx, boxID, why string) (string, error)
}

// Vault is what runs may use of the vaults.
type Vault interface {
	// ForRun is what a run of a repository of tx.Account may use. It goes to the box
	// sealed, and nowhere else.
	ForRun(tx *db.Tx, repoID string) ([]protocol.Secret, error)
}

// Branches tells where branches are at the code host.
type Branches interface {
	// At is the commit of a branch, empty if there is no such branch. It is called
	// outside of transactions.
	At(ctx context.Context, repoID, branch string) (sha string, err error)
}

// Settler decides about tasks of runs that their box has ended.
type Settler interface {
	// Settle moves the task on if the run is more than tried work: a check has a
	// result, commits become a pull request. It answers false to leave the task to
	// the common rules.
	Settle(tx *db.Tx, t *task.Row, r *Row, f Ending) (settled bool, err error)
}

// Asks tells of the asks that agents filed.
type Asks interface {
	// OfRuns lists the ids of the asks that runs filed.
	OfRuns(tx *db.Tx, runIDs []string) ([]string, error)
}

// Needs are what runs are made of.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Tasks  *task.Service
	Bus    Bus
	Logger *slog.Logger
	// Lease is what claims and renewals grant; protocol.LeaseTTL when 0.
	Lease time.Duration

	GatewayURL  string // of the model gateway, as boxes reach it
	CommitName  string // author of the agents' commits
	CommitEmail string

	Setup    Setup
	Boxes    Boxes
	Vault    Vault
	Branches Branches
	Settler  Settler
	Asks     Asks
}

// Service holds the runs.
type Service struct {
	Needs

	reads   singleflight.Group // of the streams
	gate    gate               // of events on their way into the database
	waiting waiting            // claims
}

// New makes the service. It panics if something is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	n.Lease = cmp.Or(n.Lease, protocol.LeaseTTL)
	return &Service{Needs: n}
}

// Run is a try as clients see it.
type Run struct {
	_              struct{}   `doc:"One try of a task on one box, under a lease."`
	ID             string     `json:"id" format:"uuid" doc:"id of the run"`
	TaskID         string     `json:"task_id" format:"uuid" doc:"the task that it tries"`
	Attempt        int64      `json:"attempt" doc:"which try of the task it is, from 1"`
	BoxID          string     `json:"box_id" format:"uuid" doc:"the box it runs on"`
	Epoch          int64      `json:"epoch" doc:"the fence: what an older epoch says is ignored"`
	State          string     `json:"state" enum:"leased,live,parked,ended" example:"ended" doc:"leased: a box has it and the agent has not started; parked: live, but waiting for a person"`
	Outcome        *string    `json:"outcome" enum:"succeeded,failed,interrupted,lost" doc:"how it ended; interrupted is stopped from outside, lost is that its box went away; null while it goes on"`
	FailureKind    *string    `json:"failure_kind" example:"null" doc:"slug of what went wrong, such as run_timeout or box_lost; null when nothing did"`
	EndedReason    *string    `json:"ended_reason" example:"null" doc:"why it ended, for people, or the failure kind; null while it goes on, and when it succeeded"`
	LeaseExpiresAt *time.Time `json:"lease_expires_at" example:"null" doc:"when the box loses it unless it renews; null once it has ended"`
	Isolation      *string    `json:"isolation" enum:"bubblewrap,landlock,none" doc:"the sandbox level that the agent ran at; null until it has started"`
	Holds          []string   `json:"isolation_holds" example:"[\"files\",\"network\"]" doc:"what that level held on its box when it was last tried; null: its box did not say, or it has not started"`
	Agent          string     `json:"agent" example:"claude" doc:"the program that worked, from the template"`
	AgentVersion   *string    `json:"agent_version" doc:"as the agent said it; null when it has not"`
	Template       string     `json:"template" example:"default" doc:"name of the agent template; empty for kind ci"`
	Model          *string    `json:"model" example:"model-1" doc:"the model that it worked with; null when none is named"`
	ResumeSHA      *string    `json:"resume_sha" example:"null" doc:"saved work that it began from; null when it began from the base branch"`
	LiveChannel    bool       `json:"live_channel" example:"false" doc:"whether messages reach the agent now"`
	Usage          Usage      `json:"usage" doc:"what it used of models"`
	LastSeq        int64      `json:"last_seq" doc:"number of the newest stored event"`
	CreatedAt      time.Time  `json:"created_at" doc:"when the box claimed it"`
	AcceptedAt     *time.Time `json:"accepted_at" doc:"when the box confirmed that it holds it; null before"`
	StartedAt      *time.Time `json:"started_at" doc:"when the agent started; null before"`
	EndedAt        *time.Time `json:"ended_at" doc:"when it ended; null before"`
}

// Usage is the model traffic of a run as the gateway counted it.
type Usage struct {
	_            struct{} `doc:"What a run used of models, as the server counted it."`
	InputTokens  int64    `json:"input_tokens" example:"48211" doc:"tokens sent to models"`
	OutputTokens int64    `json:"output_tokens" example:"5120" doc:"tokens that models wrote"`
	CacheTokens  int64    `json:"cache_tokens" example:"30000" doc:"tokens read from a provider's cache"`
	CostUSD      *string  `json:"cost_usd" example:"0.42" doc:"decimal US dollars; null when nothing had a price"`
}

// Event is one step of a run's timeline.
type Event struct {
	_    struct{}        `doc:"One step of a run."`
	Seq  int64           `json:"seq" doc:"its number within the run, from 1 without gaps"`
	T    time.Time       `json:"t" doc:"the box's own clock, for display"`
	Mono int64           `json:"mono" doc:"milliseconds since the attempt began"`
	Kind string          `json:"kind" example:"run.started" doc:"what happened, such as run.started, run.pushed or run.finished; agents and boxes of newer versions may add kinds"`
	Data json.RawMessage `json:"data" doc:"what the kind carries"`
}
