// Package ask is what somebody wants done and nobody has scheduled yet. An ask
// is filed by a person, by an agent in the middle of a run, or by another part
// of the platform; a judge, which is a model, reads it beside what the account
// has in work and says what becomes of it: tasks, nothing, a link to work that
// is there already, a plan, or a question to a person (an escalation).
//
// The judge is trusted with nothing. It sees text that strangers wrote, so its
// verdict is held against the database and against what the filer was allowed
// (see check), and is carried out whole, in one transaction, or not at all.
package ask

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// State is where an ask stands.
type State string

// The states. Only an escalation for want of a judge is ever left again.
const (
	Pending   State = "pending"
	Triaged   State = "triaged"
	Dropped   State = "dropped"
	Escalated State = "escalated"
)

// States lists all states.
func States() []State { return []State{Pending, Triaged, Dropped, Escalated} }

// Allowed tells whether an ask may go from one state to another, given why it
// was escalated.
func Allowed(from, to State, reason string) bool {
	switch from {
	case Pending:
		return to == Triaged || to == Dropped || to == Escalated
	case Escalated:
		return to == Pending && reason == JudgeUnavailable
	}
	return false
}

// What the platform escalates for; a judge escalates with one of Categories.
const (
	JudgeUnavailable  = "judge_unavailable" // no key, no model, or no answer; an ask can be redriven
	JudgeInvalid      = "judge_invalid"     // no answer that could be carried out
	NoCapacity        = "no_capacity"       // the account has no AI developers
	UnknownRepository = "unknown_repository"
	ChainTooLong      = "chain_too_long" // agents asked agents too often
)

// Categories are what a judge may escalate for.
func Categories() []string {
	return []string{"needs_decision", "unclear", "sensitive", "needs_access", "out_of_scope"}
}

// Sources that nobody may claim through the API: what is filed under them is
// filed by the platform.
const (
	FromAPI     = "api"
	FromRun     = "run"
	FromPlan    = "plan"
	FromBlocker = "blocker"
	FromInbound = "inbound"
	FromBacklog = "backlog"
)

// Ask is an ask as clients see it.
type Ask struct {
	_                struct{}          `doc:"Something that is wanted, and what became of it."`
	AskID            string            `json:"askId" format:"uuid" doc:"id of the ask"`
	ID               string            `json:"id" format:"uuid" doc:"the same id"`
	Repo             *string           `json:"repo" doc:"owner/name; null: it is for no one repository"`
	Title            string            `json:"title" doc:"one line"`
	Body             string            `json:"body" doc:"what is wanted, as it was filed"`
	Source           string            `json:"source" example:"api" doc:"api unless the filer said so; run, plan, blocker, inbound and backlog are the platform's own"`
	Labels           map[string]string `json:"labels" example:"{\"team\":\"web\"}" doc:"names and values that were filed with it"`
	DedupeKey        *string           `json:"dedupe_key" example:"null" doc:"the key it was filed under; null without one"`
	State            State             `json:"state" enum:"pending,triaged,dropped,escalated" doc:"triaged: work came of it; dropped: none is needed; escalated: a person decides"`
	Verdict          *Verdict          `json:"verdict" doc:"what triage decided; null while it is pending"`
	Hold             *Hold             `json:"hold" doc:"why triage leaves it pending; null: it does not"`
	EscalationReason *string           `json:"escalation_reason" example:"null" doc:"slug of why a person is asked: judge_unavailable (the one that ask.redrive takes), judge_invalid, no_capacity, unknown_repository, chain_too_long, or a category of the judge; null unless it was escalated"`
	FiledBy          string            `json:"filed_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who filed it: user:<id>, pat:<id>, box:<id> for an agent's own, or system"`
	RequestedBy      *string           `json:"requested_by" format:"uuid" doc:"id of the person at the beginning of the chain: who filed it, or whose work the agent did that filed it; null: nobody asked"`
	CreatedAt        time.Time         `json:"created_at" doc:"when it was filed"`
	TriagedAt        *time.Time        `json:"triaged_at" doc:"when it left pending; null while it has not"`
}

// Verdict is what became of an ask.
type Verdict struct {
	_              struct{} `doc:"What triage decided about an ask."`
	Kind           string   `json:"kind" enum:"minted,dropped,cross_linked,planned,escalated" doc:"minted: tasks were made; dropped: none are needed; cross_linked: open tasks cover it; planned: a plan was made; escalated: a person is asked"`
	Reason         string   `json:"reason" example:"One file, one change: a single task does it." doc:"why, in the words of the judge; of the platform when there was none"`
	TaskIDs        []string `json:"task_ids" format:"uuid" doc:"the tasks minted for it, or linked to it"`
	CoveringTaskID *string  `json:"covering_task_id" format:"uuid" example:"null" doc:"of a duplicate: the task that covers it; null otherwise"`
	PlanID         *string  `json:"plan_id" format:"uuid" example:"null" doc:"the plan that was made of it; null without one"`
}

// The kinds of verdicts.
const (
	Minted      = "minted"
	NotNeeded   = "dropped"
	CrossLinked = "cross_linked"
	Planned     = "planned"
	ToPerson    = "escalated"
)

// Queue is what asks want of the tasks of tx.Account.
type Queue interface {
	// Mint queues a task in a repository of tx.Account. What it refuses is a
	// fault; queue-full is taken as a matter of time.
	Mint(tx *db.Tx, t NewTask) (taskID string, err error)
	// Full tells whether the account's queue takes no more tasks: no judge is
	// asked before it does.
	Full(tx *db.Tx) (bool, error)
}

// Boxes tells judges of the machines and templates of tx.Account.
type Boxes interface {
	// Fleet answers what could carry out work of tx.Account now.
	Fleet(tx *db.Tx) (Fleet, error)
}

// Plans makes plans of asks of tx.Account.
type Plans interface {
	// Author makes a plan of an ask, with a slice for each repository.
	Author(tx *db.Tx, p NewPlan) (planID string, err error)
}

// Budgets tells what limits stop.
type Budgets interface {
	// Stops answers what keeps sessions of judges of tx.Account from calls to
	// their models. Wake is called when one may go on.
	Stops(tx *db.Tx, sessionIDs []string) ([]Stop, error)
}

// Needs is what New asks for.
type Needs struct {
	DB      *db.DB
	Hub     *event.Hub
	Logger  *slog.Logger
	Judge   Judge
	Queue   Queue
	Boxes   Boxes
	Plans   Plans
	Budgets Budgets
}

// Service holds the asks.
type Service struct {
	Needs

	mu      sync.Mutex
	outside map[string][]string // asks that wait for room in a full queue, by account

	running atomic.Bool  // Loop is at work in this process
	busy    atomic.Int64 // asks in the hands of judges
	workers sync.WaitGroup
}

// New makes the service. It panics if something that it needs is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// NewTask is a task to be minted.
type NewTask struct {
	AskID       string
	RequestedBy string // the person whose work it is; empty: nobody's
	RepoID      string
	Kind        string
	Title       string
	Problem     string
	Priority    int64
	DependsOn   []string // ids of tasks minted before it
	Files       []string
}

// NewPlan is a plan to be authored.
type NewPlan struct {
	AskID       string
	RequestedBy string // the person whose work it is; empty: nobody's
	Title       string
	Summary     string
	Hold        bool // until a person approves it: no person has filed the ask
	Slices      []NewSlice
}

// NewSlice is one part of a plan, in one repository.
type NewSlice struct {
	RepoID    string
	Title     string
	Problem   string
	Files     []string
	DependsOn []int // places in the list, before its own, of what merges first
}
