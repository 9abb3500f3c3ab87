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
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
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

// Service holds the runs. The function fields are wired by the program; the
// optional ones say so.
type Service struct {
	DB     *db.DB
	Hub    *event.Hub
	Tasks  *task.Service
	Bus    Bus // only Serve needs it
	Logger *slog.Logger
	// Lease is what claims and renewals grant; protocol.LeaseTTL when 0.
	Lease time.Duration

	GatewayURL  string // of the model gateway, as boxes reach it
	CommitName  string // author of the agents' commits
	CommitEmail string

	// Template finds an account's template.
	Template func(tx *db.Tx, account, name string) (Template, bool, error)
	// SendCommand owes a command to a box, within tx.
	SendCommand func(tx *db.Tx, boxID string, c protocol.Command) error
	// SealKey is what secrets for the present process of a box are sealed to;
	// empty until that has said hello.
	SealKey func(tx *db.Tx, boxID string) (string, error)
	// BoxUnfit notes, within tx, that a run on a box failed for a fault of the
	// box, so that it is given nothing more until it says that it is fit. The
	// box is locked. It answers what tx.Account may know of the fault.
	BoxUnfit func(tx *db.Tx, boxID, why string) (shown string, err error)
	// OnFinished, optional, lets another domain settle the task of a run that
	// its box has ended: checks have a result, commits become a pull request.
	// It answers false to leave the task to the common rules.
	OnFinished func(tx *db.Tx, t *task.Row, r *Row, f protocol.Finished) (settled bool, err error)
	// BriefNotes, optional, are further paragraphs of a brief: the repository's
	// prompt variables, the box's briefing.
	BriefNotes func(tx *db.Tx, t *task.Row, boxID string) ([]string, error)
	// Servers, optional, are the MCP servers that a run of the task may use.
	Servers func(tx *db.Tx, t *task.Row) ([]protocol.MCPServer, error)
	// AskFiled and BlockerDeclared, optional, are told what the agent of a live
	// run declares, in the transaction that stores the event and with the task
	// locked. Each declaration comes once. A fault that they answer, before they
	// write anything, passes the declaration over: the event stays. Any other
	// error has the events come again.
	AskFiled        func(tx *db.Tx, t *task.Row, r *Row, a protocol.AskFiled) error
	BlockerDeclared func(tx *db.Tx, t *task.Row, r *Row, b protocol.BlockerDeclared) error
	// AsksOf, optional, lists the ids of the asks that runs filed.
	AsksOf func(tx *db.Tx, runIDs []string) ([]string, error)
	// Vault, optional, is what a run of a repository of tx.Account may use of the
	// vaults. It goes to the box sealed, and nowhere else.
	Vault func(tx *db.Tx, repoID string) ([]protocol.Secret, error)

	reads   singleflight.Group // of the streams
	gate    gate               // of events on their way into the database
	waiting waiting            // claims
}

func (s *Service) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}

// Run is a try as clients see it.
type Run struct {
	ID             string     `json:"id"`
	TaskID         string     `json:"task_id"`
	Attempt        int64      `json:"attempt"`
	BoxID          string     `json:"box_id"`
	Epoch          int64      `json:"epoch" doc:"the fence: what an older epoch says is ignored"`
	State          string     `json:"state"`
	Outcome        *string    `json:"outcome" doc:"succeeded, failed, interrupted or lost once it has ended"`
	FailureKind    *string    `json:"failure_kind"`
	EndedReason    *string    `json:"ended_reason"`
	LeaseExpiresAt *time.Time `json:"lease_expires_at" doc:"null once it has ended"`
	Isolation      *string    `json:"isolation" doc:"the level it ran at"`
	Holds          []string   `json:"isolation_holds" doc:"what that level held on its box when it was last tried; null: its box did not say, or it has not started"`
	Agent          string     `json:"agent"`
	AgentVersion   *string    `json:"agent_version"`
	Template       string     `json:"template"`
	Model          *string    `json:"model"`
	ResumeSHA      *string    `json:"resume_sha" doc:"saved work that it began from"`
	LiveChannel    bool       `json:"live_channel" doc:"whether messages reach the agent now"`
	Usage          RunUsage   `json:"usage"`
	LastSeq        int64      `json:"last_seq"`
	CreatedAt      time.Time  `json:"created_at"`
	AcceptedAt     *time.Time `json:"accepted_at"`
	StartedAt      *time.Time `json:"started_at"`
	EndedAt        *time.Time `json:"ended_at"`
}

// RunUsage is the model traffic of a run as the gateway counted it.
type RunUsage struct {
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	CacheTokens  int64   `json:"cache_tokens"`
	CostUSD      *string `json:"cost_usd" doc:"decimal, null when nothing had a price"`
}

// RunEvent is one step of a run's timeline.
type RunEvent struct {
	Seq  int64           `json:"seq"`
	T    time.Time       `json:"t" doc:"the box's own clock, for display"`
	Mono int64           `json:"mono" doc:"milliseconds since the attempt began"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}
