// Package plan keeps work in several pull requests. A plan is cut into groups,
// one pull request each, which wait for each other: a group's task starts when
// all groups that it depends on have merged. The state of a group and of a plan
// is derived from their tasks. Stored is only that a person stopped a group, or
// that other groups replaced it.
//
// A plan is made in one of four ways. plan.execute reads a directory of
// documents that is committed to a repository. plan.file commits such a
// directory first. plan.start sends a scout into one repository; the plan is
// drafting until the scout's report arrives. The report ends with the same
// documents, each in a fence named "plan <file>", and is read as strictly.
// Triage makes a plan of an ask that needs several repositories (Author).
//
// A held plan has groups but no tasks. Its approval mints all of them in one
// transaction.
//
// create.go stores plans and mints tasks; execute.go, file.go and start.go are
// the ways to make one; documents.go and citation.go read documents and
// reports. decide.go approves and cancels, regroup.go changes the groups,
// graph.go derives states from the tasks, and progress.go keeps the row of
// progress. ops.go has the capabilities, store.go the statements.
package plan

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/needs"
)

// Status is where a plan stands.
type Status string

// The states of a plan.
const (
	Drafting  = "drafting" // a scout is at work, and there are no groups yet
	Held      = "held"     // the plan waits for approval
	Running   = "running"
	Done      = "done"
	Failed    = "failed" // no group goes on, and not all have merged
	Cancelled = "cancelled"
)

// Values lists all.
func (Status) Values() []string { return []string{Drafting, Held, Running, Done, Failed, Cancelled} }

// Bucket is what a list counts a plan under.
type Bucket string

// The buckets in which a list counts plans. Only a person gets a stalled plan
// going again.
const (
	BucketHeld      = "held"
	BucketActive    = "active"
	BucketStalled   = "stalled"
	BucketDone      = "done"
	BucketCancelled = "cancelled"
)

// Values lists all.
func (Bucket) Values() []string {
	return []string{BucketHeld, BucketActive, BucketStalled, BucketDone, BucketCancelled}
}

// GroupStatus is the state of a group.
type GroupStatus string

// The states of a group besides held, running, done and failed, which have the
// names of a plan's states.
const (
	Waiting    = "waiting"    // waits for groups before it
	Ready      = "ready"      // its task is in the queue
	Stopped    = "stopped"    // cancelled
	Superseded = "superseded" // replaced by other groups
)

// Values lists all states.
func (GroupStatus) Values() []string {
	return []string{Held, Waiting, Ready, Running, Done, Failed, Stopped, Superseded}
}

// EdgeKind is why a group goes before another.
type EdgeKind string

// The kinds of edges. An ordering-only edge keeps two groups in order although
// the later one does not need the code of the earlier. It can be removed.
const (
	Code         = "code"
	OrderingOnly = "ordering_only"
)

// Values lists all kinds.
func (EdgeKind) Values() []string { return []string{Code, OrderingOnly} }

// Origin is how a plan was made.
type Origin string

// The ways in which a plan is made.
const (
	SourceExecute = "execute"
	SourceFile    = "file"
	SourceStart   = "start"
	SourceTriage  = "triage"
)

// Values lists all ways.
func (Origin) Values() []string {
	return []string{SourceExecute, SourceFile, SourceStart, SourceTriage}
}

// The limits of plans and documents, and the priority of their tasks.
const (
	maxUnits     = 500
	maxDocument  = 64 << 10 // bytes
	maxProblem   = 20_000   // characters of a task's problem
	maxTitle     = 200
	maxCitations = 500
	priority     = 50
)

// Plan is a plan as lists show it.
type Plan struct {
	_              struct{}  `doc:"Work in several pull requests, which may wait for each other."`
	PlanID         string    `json:"planId" format:"uuid" doc:"id of the plan"`
	ID             string    `json:"id" format:"uuid" doc:"the same id"`
	Repo           string    `json:"repo" doc:"owner/name of its first group, or of the repository that is surveyed for it"`
	Repos          []string  `json:"repos" example:"[\"acme/web\"]" doc:"every repository that it works in"`
	Title          string    `json:"title" doc:"of its first group"`
	Status         Status    `json:"status" example:"running" doc:"drafting: a scout is at work and there are no groups yet; held: waits for plan.approve; failed: nothing of it goes on and not all of it merged"`
	Bucket         Bucket    `json:"bucket" example:"active" doc:"what lists count it under; stalled needs a person"`
	Source         Origin    `json:"source" doc:"the way it came about: plan.execute, plan.file, plan.start, or triage of an ask"`
	Dir            *string   `json:"dir" example:"plans/new-footer" doc:"where its documents are committed; null without documents"`
	Revision       int64     `json:"revision" doc:"which reading of the directory it is, from 1"`
	Merged         int64     `json:"merged" doc:"groups that are done"`
	Total          int64     `json:"total" doc:"groups, without those that others took the place of"`
	HeldCount      int64     `json:"held_count" doc:"groups that wait for a person"`
	AskID          *string   `json:"ask_id" format:"uuid" example:"null" doc:"the ask it was made of; null without one"`
	Note           *string   `json:"note" example:"null" doc:"why it is held or has failed, where its groups do not say; null otherwise"`
	CreatedBy      string    `json:"created_by" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who made this row: a person, a token, or the platform (system)"`
	RequestedBy    *string   `json:"requested_by" format:"uuid" doc:"id of the person at the beginning of the chain, or who approved it if nobody had asked; null: nobody"`
	CreatedAt      time.Time `json:"created_at" doc:"when it was begun"`
	LastActivityAt time.Time `json:"last_activity_at" doc:"when it or one of its tasks last changed"`
}

// Detail is a plan with all of its groups, their tasks and pull requests.
type Detail struct {
	_ struct{} `doc:"A plan with its groups, their tasks and pull requests."`
	Plan
	Overview    string   `json:"overview" example:"# New footer" doc:"what it is for: its overview.md, or the words it was asked for with"`
	CommitSHA   *string  `json:"commit_sha" example:"3f8a1c5e7b9d2046f8a1c5e7b9d2046f8a1c5e7b" doc:"where its directory was read; null without documents"`
	BudgetUSD   *float64 `json:"budget_usd" example:"20" doc:"what its tasks may spend together, in US dollars; null: no cap. plan.budget_set sets it"`
	ScoutTaskID *string  `json:"scout_task_id" format:"uuid" example:"null" doc:"the scout that drafts it; null unless it came of plan.start"`
	Groups      []Group  `json:"groups" doc:"in the order of the documents"`
}

// Group is one unit of a plan: one pull request.
type Group struct {
	_        struct{}    `doc:"One unit of a plan: one pull request."`
	ID       string      `json:"id" format:"uuid" doc:"id of the group"`
	PlanID   string      `json:"plan_id" format:"uuid" doc:"the plan it is of"`
	Repo     string      `json:"repo" doc:"owner/name of where it works"`
	Slug     string      `json:"slug" example:"fix-footer" doc:"its name within the plan"`
	Title    string      `json:"title" doc:"one line"`
	Status   GroupStatus `json:"status" example:"running" doc:"waiting: for groups before it; ready: its task is in the queue; stopped: cancelled; superseded: other groups took its place"`
	Files    []string    `json:"files" example:"[\"web/footer.html\"]" doc:"paths that it is expected to touch"`
	Upstream []Edge      `json:"upstream" example:"[]" doc:"the groups that must be done before it starts"`
	Tasks    []Child     `json:"tasks" doc:"the task that does it, and those that took its place before; empty while it is held"`
}

// GroupDetail is a group with the text that its task gets.
type GroupDetail struct {
	_ struct{} `doc:"A group of a plan, with the text that its task gets."`
	Group
	Problem string `json:"problem" example:"Put the year in the footer." doc:"what its task is asked to do, in markdown"`
}

// Edge names a group that another one waits for.
type Edge struct {
	_       struct{} `doc:"A group that another one waits for."`
	GroupID string   `json:"group_id" format:"uuid" doc:"the group that must be done first"`
	Kind    EdgeKind `json:"kind" doc:"code: the later one builds on its code; ordering_only: merely an order, which plan.unlink can remove"`
}

// Child is a task of a plan.
type Child struct {
	_           struct{}    `doc:"A task of a group."`
	ID          string      `json:"id" format:"uuid" doc:"id of the task"`
	Title       string      `json:"title" doc:"one line"`
	Status      task.Status `json:"status" example:"running" doc:"state of the task"`
	FailureKind *string     `json:"failure_kind" example:"null" doc:"slug of what went wrong last; null when nothing has"`
	RunID       *string     `json:"run_id" format:"uuid" doc:"its newest run; null until a box has started it"`
	PR          *PR         `json:"pr" doc:"its pull request; null until it has one"`
}

// PR is the pull request of a task.
type PR struct {
	_      struct{}          `doc:"The pull request of a task."`
	ID     string            `json:"id" format:"uuid" doc:"id of the pull request"`
	Number int64             `json:"number" example:"42" doc:"its number in the repository"`
	Title  string            `json:"title" doc:"one line"`
	URL    string            `json:"url" format:"uri" example:"https://yardmaster.example.com/ui/prs/0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"its address, for people"`
	State  measure.PullState `json:"state" example:"open" doc:"whether it is still open; opening: its host is yet to open it"`
}

// Survey is the report of a scout and the lists in it.
type Survey struct {
	Report       string
	Summary      string
	SplitHints   []string
	Handoffs     []string
	AccessNeeded []string
}

// Filing is an ask for triage.
type Filing struct {
	RepoIDs     []string // in the order of the request
	Title, Body string
}

// Scouts reads the runs that survey for plans.
type Scouts interface {
	// Survey returns the report of the newest run of a task of tx.Account. ok
	// is false without a report.
	Survey(tx *db.Tx, taskID string) (found Survey, ok bool, err error)
	// Waits says why the slices of a scout's report wait for a person, by the ids of their
	// repositories; empty if they do not.
	Waits(tx *db.Tx, scout *task.Row, repoIDs []string) (why string, err error)
}

// Repos records the commits of plans.
type Repos interface {
	// Wrote records a commit that the documents of a plan made on a default
	// branch.
	Wrote(ctx context.Context, r codehost.Repo, branch, old, sha string) error
}

// Asks gives access to triage, in tx.Account.
type Asks interface {
	// File files an ask and returns its id.
	File(tx *db.Tx, f Filing) (askID string, err error)
	// TasksOf lists the tasks that triage made of an ask, none if it has made
	// none. ok is false if there is no such ask.
	TasksOf(tx *db.Tx, askID string) (taskIDs []string, ok bool, err error)
	// LabelsOf lists the labels that an ask was filed with, none if there is no such ask.
	LabelsOf(tx *db.Tx, askID string) (map[string]string, error)
}

// Pulls reads the pull requests of plans.
type Pulls interface {
	// IsOpen tells whether a pull request of tx.Account is open.
	IsOpen(tx *db.Tx, prID string) (bool, error)
	// Shown returns the pull requests of tx.Account among prIDs, by id.
	Shown(tx *db.Tx, prIDs []string) (map[string]PR, error)
	// IdleTasks lists the tasks of a plan of tx.Account that go on only if a person
	// acts.
	IdleTasks(tx *db.Tx, planID string) ([]string, error)
}

// Boxes tells of the boxes that serve tx.Account.
type Boxes interface {
	// LiveBox tells whether an online box can hold a live session with the agent of a
	// template in a repository; false as well if there is no such template.
	LiveBox(tx *db.Tx, r task.Repo, template string) (bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Tasks   *task.Service
	Hosts   *codehost.Hosts
	Logger  *slog.Logger
	Scouts  Scouts
	Repos   Repos
	Asks    Asks
	Pulls   Pulls
	Boxes   Boxes
	Budgets Budgets
	// CommitName and CommitEmail sign the commits of documents.
	CommitName, CommitEmail string
}

// Budgets knows the caps of plans.
type Budgets interface {
	// PlanCap answers what the tasks of a plan of tx.Account may spend together, in
	// micro-dollars; nil without a cap.
	PlanCap(tx *db.Tx, planID string) (*int64, error)
}

// Service holds the plans.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}
