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
	AskID            string            `json:"askId"`
	ID               string            `json:"id"`
	Repo             *string           `json:"repo" doc:"owner/name; null: it is for no one repository"`
	Title            string            `json:"title"`
	Body             string            `json:"body"`
	Source           string            `json:"source" doc:"api unless the filer said so; run, plan, blocker, inbound and backlog are the platform's own"`
	Labels           map[string]string `json:"labels"`
	DedupeKey        *string           `json:"dedupe_key"`
	State            State             `json:"state" enum:"pending,triaged,dropped,escalated"`
	Verdict          *AskVerdict       `json:"verdict" doc:"null while it is pending"`
	EscalationReason *string           `json:"escalation_reason" doc:"judge_unavailable is the one that ask.redrive takes"`
	FiledBy          string            `json:"filed_by"`
	CreatedAt        time.Time         `json:"created_at"`
	TriagedAt        *time.Time        `json:"triaged_at" doc:"when it left pending"`
}

// AskVerdict is what became of an ask.
type AskVerdict struct {
	Kind           string   `json:"kind" enum:"minted,dropped,cross_linked,planned,escalated"`
	Reason         string   `json:"reason" doc:"why, in the words of the judge; of the platform when there was none"`
	TaskIDs        []string `json:"task_ids" doc:"the tasks minted for it, or linked to it"`
	CoveringTaskID *string  `json:"covering_task_id" doc:"of a duplicate: the task that covers it"`
	PlanID         *string  `json:"plan_id"`
}

// The kinds of verdicts.
const (
	Minted      = "minted"
	NotNeeded   = "dropped"
	CrossLinked = "cross_linked"
	Planned     = "planned"
	ToPerson    = "escalated"
)

// Service holds the asks. The function fields are wired by the program; the
// optional ones say so.
type Service struct {
	DB     *db.DB
	Hub    *event.Hub
	Logger *slog.Logger
	Judge  Judge

	// Mint queues a task in a repository of tx.Account. What it refuses is a
	// fault; queue-full is taken as a matter of time.
	Mint func(tx *db.Tx, t NewTask) (taskID string, err error)
	// Full, optional, tells whether the account's queue takes no more tasks: no
	// judge is asked before it does.
	Full func(tx *db.Tx) (bool, error)
	// AuthorPlan, optional, makes a plan of an ask, with a slice for each
	// repository. Without it a judge may not plan.
	AuthorPlan func(tx *db.Tx, p NewPlan) (planID string, err error)

	running atomic.Bool  // Loop is at work in this process
	busy    atomic.Int64 // asks in the hands of judges
	workers sync.WaitGroup
}

// NewTask is a task to be minted.
type NewTask struct {
	AskID     string
	RepoID    string
	Kind      string
	Title     string
	Problem   string
	Priority  int64
	DependsOn []string // ids of tasks minted before it
	Files     []string
}

// NewPlan is a plan to be authored.
type NewPlan struct {
	AskID   string
	Title   string
	Summary string
	Hold    bool // until a person approves it: no person has asked for it
	Slices  []NewSlice
}

// NewSlice is one part of a plan, in one repository.
type NewSlice struct {
	RepoID    string
	Title     string
	Problem   string
	Files     []string
	DependsOn []int // places in the list, before its own, of what merges first
}
