// Package run keeps the runs: a run is one try of a task on one box, under a
// lease. Boxes claim runs, renew their leases and report what happens as
// events. The end of a run, or its loss by a box, moves the task on. People
// read the attempts of a task, their timelines and their results here too.
//
// A run has one writer, the box that holds its lease. The end of the run fences
// it: an ended run takes no events, its tokens are revoked, and its box is told
// to stop. A box that was cut off can therefore change nothing afterwards.
//
// claim.go gives runs to boxes (brief.go is the prompt, waiting.go the claims
// that wait), access.go resolves the tokens of runs, secrets.go seals their
// secrets, lease.go and end.go renew and end them. ingest.go stores their
// events (gate.go limits how many at once) and declare.go handles what agents
// declare. message.go sends messages to agents, output.go puts together what a
// command wrote. ops.go, operator.go and survey.go answer people; store.go has
// the statements.
package run

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"golang.org/x/sync/singleflight"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
	"yardmaster/internal/protocol"
)

// The states of a run. A parked run is live and waits for a person.
const (
	Leased = measure.RunLeased // its box has not started the agent yet
	Live   = measure.RunLive
	Parked = measure.RunParked
	Ended  = measure.RunEnded
)

// The outcomes of an ended run.
const (
	Succeeded   = measure.RunSucceeded
	Failed      = measure.RunFailed
	Interrupted = measure.RunInterrupted // stopped from outside
	Lost        = measure.RunLost        // its box went away
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
	CommittedSeq   int64 // number of the newest stored event; events have no gaps
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
	ProgressAt     time.Time  // time of the newest event
	WokenAt        *time.Time // when a message was queued while it was parked; nil once it goes on
	EndedAt        *time.Time
	Halting        string     // failure kind of a run that was told to end; empty otherwise
	HaltingWhy     string     // the reason in words
	HaltingUntil   *time.Time // until when its task waits, without a try being counted; nil: as Halting says
	// By what right the box has it, see package fleet; nil for runs from before that was
	// kept. ConsentBy and ConsentAt are of a consent.
	BoxRight  *string
	ConsentBy *string
	ConsentAt *time.Time
	LeftOut   *db.JSON[[]protocol.LeftOut]
}

// Template says how an agent is to be run.
type Template struct {
	Agent     string // builtin, claude, codex, …, or command
	Model     string
	Options   map[string]string
	Command   []string // argv of the agent command
	Timeout   time.Duration
	Isolation string // the least level that is acceptable
}

// Bus is the part of the message bus that this package calls.
type Bus interface {
	// Handle makes fn answer the calls of boxes to a method.
	Handle(method string, fn func(ctx context.Context, boxID string, data []byte) (any, error)) error
}

// Ending is a box's report of the end of a run, with the state of its branch at
// the code host.
type Ending struct {
	protocol.Finished
	// BranchAt is the commit of the task's branch when a run succeeded with
	// commits; "" if there is none.
	BranchAt string
}

// Setup answers what a run begins with.
type Setup interface {
	// Template finds an account's template, as it is for work that a person has asked for
	// and nobody else had a part in (empty: any other), in a repository; false if there is none
	// of the name.
	Template(tx *db.Tx, account, repoID, name, person string) (Template, bool, error)
	// Prefer changes a template of an account to what the person likes best for whom alone
	// the work is done, where it can be had and the template leaves it open.
	Prefer(tx *db.Tx, account, name, person string, tpl *Template) (Preferred, error)
	// Policy returns the policy of a repository as the session of a run keeps
	// it.
	Policy(tx *db.Tx, repoID string) (string, error)
	// Notes returns the paragraphs of a brief besides the task: prompts, the
	// box's briefing, answers, the names of secrets.
	Notes(tx *db.Tx, t *task.Row, boxID string) ([]string, error)
	// Servers returns the MCP servers that a run of the task may use.
	Servers(tx *db.Tx, t *task.Row) ([]protocol.MCPServer, error)
	// Declares tells whether a run of the task declares anything at all, which depends on
	// whose text it is given.
	Declares(tx *db.Tx, t *task.Row) (bool, error)
	// OfLent tells whether a box that another account has lent has had a part in what a run of
	// the task works on.
	OfLent(tx *db.Tx, t *task.Row) (bool, error)
	// HeadRef returns the full name of the ref at which the commit of the task's checkout
	// is; empty if a branch has it.
	HeadRef(tx *db.Tx, t *task.Row) (string, error)
	// Submodules returns what a run of the task may read as submodules; nil: the policy
	// wants none.
	Submodules(tx *db.Tx, t *task.Row) (*protocol.Submodules, error)
	// Environment returns what is made ready before a run of the task, by a box that another
	// account has lent or not; nil: the policy wants nothing.
	Environment(tx *db.Tx, t *task.Row, lent bool) (*protocol.Environment, error)
	// OfFanout tells whether a task is a scout of a fan-out, which surveys a
	// repository for a plan.
	OfFanout(tx *db.Tx, taskID string) (bool, error)
}

// Boxes are the boxes of runs.
type Boxes interface {
	// SealKey returns the key to which secrets for the present process of a box
	// are sealed; empty until that process has said hello.
	SealKey(tx *db.Tx, boxID string) (string, error)
	// DropMessages deletes the messages that wait for a box and are for runs of an account.
	DropMessages(tx *db.Tx, boxID, accountID string) error
	// FaultShown returns the description of a box's fault that tx.Account may
	// see.
	FaultShown(tx *db.Tx, boxID, why string) (string, error)
}

// Vault opens the secrets of runs.
type Vault interface {
	// ForRun returns the secrets that a run of a task in a repository of
	// tx.Account may use. They go to the box, sealed, and nowhere else.
	ForRun(tx *db.Tx, repoID, taskID string) ([]protocol.Secret, error)
}

// Branches finds branches at the code host.
type Branches interface {
	// At returns the commit of a branch, empty if there is no such branch. It
	// is called outside of transactions.
	At(ctx context.Context, repoID, branch string) (sha string, err error)
	// Changed lists what a commit has changed since it forked from another one. It is
	// called outside of transactions.
	Changed(ctx context.Context, repoID, base, sha string) (codehost.Diff, error)
}

// Settler decides about the task of a run that its box has ended.
type Settler interface {
	// Settle moves the task on if the run has a result of its own kind: a check
	// is decided, commits become a pull request. settled is false if the task
	// is to follow the common rules.
	Settle(tx *db.Tx, t *task.Row, r *Row, f Ending) (settled bool, err error)
}

// Artifacts finds what runs have stored besides code.
type Artifacts interface {
	// OfTask lists the artifacts of a task of tx.Account whose bytes are there, newest first.
	OfTask(tx *db.Tx, taskID string) ([]Artifact, error)
}

// Asks finds the asks that agents filed.
type Asks interface {
	// OfRuns lists the ids of the asks that runs filed.
	OfRuns(tx *db.Tx, runIDs []string) ([]string, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Tasks  *task.Service
	Queue  *queue.Service // of the tasks
	Bus    Bus
	Logger *slog.Logger
	// Lease is the time that claims and renewals grant; protocol.LeaseTTL when
	// 0.
	Lease time.Duration
	// KeepEvents is how long the events of a run are kept after its end; 0: 90 days.
	KeepEvents time.Duration

	GatewayURL  string // address of the model gateway for boxes
	CommitName  string // author of the agents' commits
	CommitEmail string

	Setup     Setup
	Boxes     Boxes
	Vault     Vault
	Branches  Branches
	Settler   Settler
	Asks      Asks
	Artifacts Artifacts
}

// Service holds the runs.
type Service struct {
	Needs

	reads   singleflight.Group // shared reads of streams
	gate    gate               // limits how many envelopes are stored at once
	waiting waiting            // claims that wait for a task
	tidy    db.Hourly          // removal of old events
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	n.Lease = cmp.Or(n.Lease, protocol.LeaseTTL)
	n.KeepEvents = cmp.Or(n.KeepEvents, 90*24*time.Hour)
	return &Service{Needs: n}
}

// Run is a run as clients see it.
type Run struct {
	_              struct{}            `doc:"One try of a task on one box, under a lease."`
	ID             string              `json:"id" format:"uuid" doc:"id of the run"`
	TaskID         string              `json:"task_id" format:"uuid" doc:"the task that it tries"`
	Attempt        int64               `json:"attempt" doc:"which try of the task it is, from 1"`
	BoxID          string              `json:"box_id" format:"uuid" doc:"the box it runs on"`
	Right          *BoxRight           `json:"box_right" example:"{\"kind\":\"own\",\"user_id\":null,\"agreed_at\":null}" doc:"by what right that box has it; null for runs from before this was kept"`
	Epoch          int64               `json:"epoch" doc:"the fence: what an older epoch says is ignored"`
	State          measure.RunState    `json:"state" example:"ended" doc:"leased: a box has it and the agent has not started; parked: live, but waiting for a person"`
	Outcome        *measure.Outcome    `json:"outcome" doc:"how it ended; interrupted is stopped from outside, lost is that its box went away; null while it goes on"`
	FailureKind    *string             `json:"failure_kind" example:"null" doc:"slug of what went wrong, such as run_timeout or box_lost; null when nothing did"`
	EndedReason    *string             `json:"ended_reason" example:"null" doc:"why it ended, for people, or the failure kind; null while it goes on, and when it succeeded"`
	LeaseExpiresAt *time.Time          `json:"lease_expires_at" example:"null" doc:"when the box loses it unless it renews; null once it has ended"`
	Isolation      *protocol.Isolation `json:"isolation" doc:"the sandbox level that the agent ran at; null until it has started"`
	Holds          []string            `json:"isolation_holds" example:"[\"files\",\"network\"]" doc:"what that level held on its box when it was last tried; null: its box did not say, or it has not started"`
	Agent          string              `json:"agent" example:"claude" doc:"the program that worked, from the template"`
	AgentVersion   *string             `json:"agent_version" doc:"as the agent said it; null when it has not"`
	Template       string              `json:"template" example:"default" doc:"name of the agent template; empty for kind ci"`
	Model          *string             `json:"model" example:"model-1" doc:"the model that it worked with; null when none is named"`
	ResumeSHA      *string             `json:"resume_sha" example:"null" doc:"saved work that it began from; null when it began from the base branch"`
	PushedSHA      *string             `json:"pushed_sha" example:"null" doc:"the commit that it has pushed; null while it has pushed none"`
	LiveChannel    bool                `json:"live_channel" example:"false" doc:"whether messages reach the agent now"`
	Usage          Usage               `json:"usage" doc:"what it used of models"`
	LastSeq        int64               `json:"last_seq" doc:"number of the newest stored event"`
	CreatedAt      time.Time           `json:"created_at" doc:"when the box claimed it"`
	AcceptedAt     *time.Time          `json:"accepted_at" doc:"when the box confirmed that it holds it; null before"`
	StartedAt      *time.Time          `json:"started_at" doc:"when the agent started; null before"`
	EndedAt        *time.Time          `json:"ended_at" doc:"when it ended; null before"`

	Report  *string            `json:"report" example:"The footer now computes the year." doc:"what its agent reported, markdown; null unless compare is sent, or nothing was"`
	Changes *Changes           `json:"changes" doc:"against the commit that the newest try works from; null unless compare is sent, or it pushed nothing that is still there"`
	LeftOut []protocol.LeftOut `json:"left_out" doc:"what the agent made and the work does not have"`
}

// BoxRight says by what right a box has a run.
type BoxRight struct {
	_        struct{}   `doc:"By what right a box has a run."`
	Kind     string     `json:"kind" enum:"own,shared,consent,gift" example:"own" doc:"own: the box is the account's; shared: an operator of the server shares it with every account; consent: it is another account's, its owner has agreed, and this account lets such boxes in; gift: another account has lent it to the repository"`
	UserID   *string    `json:"user_id" format:"uuid" doc:"who has agreed; null: that took nobody"`
	AgreedAt *time.Time `json:"agreed_at" doc:"when; null: that took nobody"`
}

// Usage is the model traffic of a run, as the gateway counted it.
type Usage struct {
	_            struct{} `doc:"What a run used of models, as the server counted it."`
	InputTokens  int64    `json:"input_tokens" example:"48211" doc:"tokens sent to models"`
	OutputTokens int64    `json:"output_tokens" example:"5120" doc:"tokens that models wrote"`
	CacheTokens  int64    `json:"cache_tokens" example:"30000" doc:"tokens read from a provider's cache"`
	CostUSD      *string  `json:"cost_usd" format:"decimal" example:"0.42" doc:"decimal US dollars; null when nothing had a price"`
}

// EventKinds lists the kinds of events that this version's boxes send.
func EventKinds() []string { return protocol.EventKinds() }

// Event is one step of a run's timeline.
type Event struct {
	_    struct{}        `doc:"One step of a run."`
	Seq  int64           `json:"seq" doc:"its number within the run, from 1 without gaps"`
	T    time.Time       `json:"t" doc:"the box's own clock, for display"`
	Mono int64           `json:"mono" doc:"milliseconds since the attempt began"`
	Kind string          `json:"kind" known:"run_events" doc:"what happened"`
	Data json.RawMessage `json:"data" doc:"what the kind carries"`
}

// trigger says what caused the session of a task's run: one of the triggers of
// package session.
func (s *Service) trigger(tx *db.Tx, t *task.Row) (string, error) {
	switch {
	case t.Kind == task.KindCI:
		return "check", nil
	case t.Kind == task.KindBabysit, t.Kind == task.KindReview:
		return t.Kind, nil
	case t.PlanID != nil:
		return "plan", nil
	case t.AskID != nil && t.CreatedBy == "system":
		return "ask", nil
	case t.Kind == task.KindScout:
		if ok, err := s.Setup.OfFanout(tx, t.ID); err != nil || ok {
			return "plan", err
		}
	}
	return "task", nil
}
