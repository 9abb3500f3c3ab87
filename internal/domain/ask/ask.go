// Package ask keeps the asks: things that are wanted and not scheduled yet. A
// person files an ask, or an agent during a run, or another part of the
// platform. A judge, which is a model, reads it beside the work of the account
// and decides: tasks, a plan, a link to work that exists, nothing, or a
// question to a person (an escalation).
//
// The judge is not trusted. It reads text that strangers wrote, so its verdict
// is checked against the database and against the rights of the filer (see
// check). A verdict is carried out whole, in one transaction, or not at all.
//
// file.go files asks, run.go those of runs, decide.go those about issues; loop.go takes them and calls the judge, with brief.go as
// its prompt and hold.go for the times it has to wait. verdict.go checks an
// answer and settle.go carries it out. ops.go has the capabilities, store.go
// and store_context.go the statements.
package ask

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
	"yardmaster/internal/reach"
)

// State is the state of an ask.
type State string

// The states. An ask leaves a state other than Pending only if it was escalated
// for want of a judge, or until a person approves it.
const (
	Pending   State = "pending"
	Triaged   State = "triaged"
	Dropped   State = "dropped"
	Escalated State = "escalated"
)

// Values lists all states.
func (State) Values() []string {
	return []string{string(Pending), string(Triaged), string(Dropped), string(Escalated)}
}

// The reasons for which the platform escalates. A judge escalates with one of
// Categories.
const (
	JudgeUnavailable  = "judge_unavailable" // no key, no model, or no answer; ask.redrive takes such an ask
	JudgeInvalid      = "judge_invalid"     // no verdict that could be carried out
	NoCapacity        = "no_capacity"       // the account has no AI developers
	UnknownRepository = "unknown_repository"
	ChainTooLong      = "chain_too_long" // too many asks of agents follow one another
)

// Approvable lists the reasons for which an ask of a run waits for a person, whose approval
// gives it to triage.
func Approvable() []string {
	return []string{reach.OtherRepository, reach.MoreRights, reach.StrangersText, ChainTooLong}
}

// Categories are the reasons for which a judge may escalate.
func Categories() []string {
	return []string{"needs_decision", "unclear", "sensitive", "needs_access", "out_of_scope"}
}

// The sources of asks. Only the platform files under those other than FromAPI.
const (
	FromAPI     = "api"
	FromRun     = "run"
	FromPlan    = "plan"
	FromBlocker = "blocker"
	FromInbound = "inbound"
	FromBacklog = "backlog"
	FromIssue   = "issue"

	FromSchedule = "schedule"
)

// own are the sources that only the platform files under.
func own() []string {
	return []string{FromRun, FromPlan, FromBlocker, FromInbound, FromBacklog, FromIssue, FromSchedule}
}

// Sources lists the sources that asks have unless the filer names another.
func Sources() []string { return append([]string{FromAPI}, own()...) }

// Ask is an ask as clients see it.
type Ask struct {
	_                struct{}          `doc:"Something that is wanted, and what became of it."`
	AskID            string            `json:"askId" format:"uuid" doc:"id of the ask"`
	ID               string            `json:"id" format:"uuid" doc:"the same id"`
	Repo             *string           `json:"repo" doc:"owner/name; null: it is for no one repository"`
	IssueID          *string           `json:"issue_id" format:"uuid" example:"null" doc:"the issue of the code host that follows it; null without one"`
	Title            string            `json:"title" doc:"one line"`
	Body             string            `json:"body" doc:"what is wanted, as it was filed"`
	Source           string            `json:"source" known:"ask_sources" doc:"api unless the filer said so; the platform files under the names that follow it"`
	Labels           map[string]string `json:"labels" example:"{\"team\":\"web\"}" doc:"names and values that were filed with it"`
	DedupeKey        *string           `json:"dedupe_key" example:"null" doc:"the key it was filed under; null without one"`
	State            State             `json:"state" doc:"triaged: work came of it; dropped: none is needed; escalated: a person decides"`
	Verdict          *Verdict          `json:"verdict" doc:"what triage decided; null while it is pending"`
	Hold             *Hold             `json:"hold" doc:"why triage leaves it pending; null: it does not"`
	EscalationReason *string           `json:"escalation_reason" example:"null" doc:"slug of why a person is asked: judge_unavailable (the one that ask.redrive takes), judge_invalid, no_capacity, unknown_repository; other_repository, more_rights, strangers_text, chain_too_long (those that ask.approve takes); or a category of the judge; null unless it was escalated"`
	FiledBy          string            `json:"filed_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who filed it: user:<id>, pat:<id>, run:<id> for an agent's own, blocker:<id> for what an answer left, source:<id> for a connected system, schedule:<id>, or system"`
	RequestedBy      *string           `json:"requested_by" format:"uuid" doc:"id of the person at the beginning of the chain: who filed it, whose work the agent did that filed it, or who approved it; null: nobody asked"`
	ApprovedBy       *string           `json:"approved_by" format:"uuid" example:"null" doc:"id of the person who let it into triage after a run had asked for more than it may begin; null: nobody has"`
	Count            int64             `json:"count" example:"1" doc:"how often it was asked for: once, and once more with each repeat that another system tells of, such as an error that is seen again"`
	LastSeenAt       *time.Time        `json:"last_seen_at" example:"null" doc:"the last repeat; null without one"`
	CreatedAt        time.Time         `json:"created_at" doc:"when it was filed"`
	TriagedAt        *time.Time        `json:"triaged_at" doc:"when it left pending; null while it has not"`
}

// Verdict is the outcome of an ask.
type Verdict struct {
	_              struct{}    `doc:"What triage decided about an ask."`
	Kind           VerdictKind `json:"kind" doc:"minted: tasks were made; dropped: none are needed; cross_linked: open tasks cover it; planned: a plan was made; escalated: a person is asked"`
	Reason         string      `json:"reason" example:"One file, one change: a single task does it." doc:"why, in the words of the judge; of the platform when there was none"`
	TaskIDs        []string    `json:"task_ids" format:"uuid" doc:"the tasks minted for it, those of its plan too, or linked to it; empty of a plan that is held"`
	CoveringTaskID *string     `json:"covering_task_id" format:"uuid" example:"null" doc:"of a duplicate: the task that covers it; null otherwise"`
	PlanID         *string     `json:"plan_id" format:"uuid" example:"null" doc:"the plan that was made of it; null without one"`
}

// VerdictKind is what triage makes of an ask.
type VerdictKind string

// The kinds of verdicts.
const (
	Minted      = "minted"
	NotNeeded   = "dropped"
	CrossLinked = "cross_linked"
	Planned     = "planned"
	ToPerson    = "escalated"
)

// Values lists all kinds.
func (VerdictKind) Values() []string {
	return []string{Minted, NotNeeded, CrossLinked, Planned, ToPerson}
}

// Queue gives access to the tasks of tx.Account.
type Queue interface {
	// Mint queues a task in a repository of tx.Account. A refusal is a fault;
	// queue-full passes with time.
	Mint(tx *db.Tx, t NewTask) (taskID string, err error)
	// Full tells whether the account's queue takes no more tasks. Until it
	// does, no judge is called.
	Full(tx *db.Tx) (bool, error)
	// Task finds a task of tx.Account; ok is false if there is none.
	Task(tx *db.Tx, taskID string) (t TaskRef, ok bool, err error)
	// Newest lists the newest tasks of tx.Account in any status, 500 at most: those
	// of one repository, or of all if repoID is empty.
	Newest(tx *db.Tx, repoID string) ([]Sketch, error)
}

// Boxes describes the machines and templates of tx.Account to judges.
type Boxes interface {
	// Fleet returns the machines and templates that could carry out work of
	// tx.Account now.
	Fleet(tx *db.Tx) (Fleet, error)
}

// Plans makes plans of asks of tx.Account.
type Plans interface {
	// Author makes a plan of an ask, with a slice for each repository.
	Author(tx *db.Tx, p NewPlan) (Authored, error)
}

// Authored is a plan that was made.
type Authored struct {
	PlanID  string
	TaskIDs []string // those that were minted with it; none of a plan that is held
}

// Budgets finds the limits that keep judges from their models.
type Budgets interface {
	// Stops returns the limits that keep sessions of judges of tx.Account from
	// calls to their models. Wake is called when a session may go on.
	Stops(tx *db.Tx, sessionIDs []string) ([]Stop, error)
}

// Issues are the issues of code hosts of tx.Account.
type Issues interface {
	// ForAsk reads and locks an issue about which an ask is filed. It fails with
	// fault.NotFound, and with fault.Conflict for one that can get none.
	ForAsk(tx *db.Tx, issueID string) (Issue, error)
	// Follow has an issue follow a new ask.
	Follow(tx *db.Tx, issueID, askID string) error
}

// Issue is an issue of a code host.
type Issue struct {
	RepoID, Repo, URL string // Repo: owner/name
	Enabled           bool   // its repository is
	AskID             string // the ask that it follows; empty: it can get one
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Hub     *event.Hub
	Due     *due.Kernel
	Logger  *slog.Logger
	Judge   Judge
	Queue   Queue
	Boxes   Boxes
	Plans   Plans
	Budgets Budgets
	Issues  Issues
	Pages   Pages
}

// Pages are the knowledge bases of repositories.
type Pages interface {
	// Near are the pages of a repository of tx.Account that are near to a text, best first.
	Near(tx *db.Tx, repoID, text string) ([]Page, error)
}

// Page is a page that is near to an ask, as a judge is shown it.
type Page struct {
	Slug  string `json:"slug"`
	Text  string `json:"text"` // its beginning
	Stale bool   `json:"stale"`
}

// Service holds the asks.
type Service struct {
	Needs
	queue due.Entries

	mu      sync.Mutex
	blocked map[string][]string // asks behind a full queue, by account
	life    context.Context     // of Loop; nil while it does not run

	running atomic.Bool  // whether Loop runs in this process
	busy    atomic.Int64 // asks that are being judged
	workers sync.WaitGroup
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[row]{
		Name: "asks", Hold: hold, AtOnce: AtOnce, Load: load, Work: s.judge, GiveUp: giveUp, Open: openAsks,
		Retry: due.Ladder{First: backoff, Longest: longestWait, Factor: 4, Tries: maxTries},
	})
	return s
}

// Sketch is a task as a judge sees it.
type Sketch struct {
	ID      string   `json:"id"`
	RepoID  string   `json:"-"`
	Repo    string   `json:"repo"`
	Kind    string   `json:"kind"`
	Status  string   `json:"status"`
	Title   string   `json:"title"`
	Problem string   `json:"problem"`
	Files   []string `json:"files,omitempty"`
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
	Labels      map[string]string // those of the ask
	// Unbound says that an agent asks, and no person has approved that: git goes without
	// the token that the requester has bound.
	Unbound      bool
	BudgetMicros *int64 // limit; nil: none
}

// NewPlan is a plan to be made.
type NewPlan struct {
	AskID       string
	RequestedBy string // the person whose work it is; empty: nobody's
	Title       string
	Summary     string
	Hold        bool // whether it waits for approval: no person has filed the ask
	Slices      []NewSlice
}

// NewSlice is one part of a plan, in one repository.
type NewSlice struct {
	RepoID    string
	Title     string
	Problem   string
	Files     []string
	DependsOn []int // places of the slices that merge first, each before its own
}
