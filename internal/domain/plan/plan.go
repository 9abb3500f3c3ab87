// Package plan is work in several pull requests. A plan is cut into groups, one
// pull request each, which wait for each other: a group's task starts when all
// it depends on have merged. What a group and a plan are at is derived from
// their tasks; only that a person stopped a group, or that others took its
// place, is stored.
//
// A plan comes about in four ways. plan.execute reads a directory of documents
// that is committed to a repository; plan.file commits such a directory first.
// plan.start sends a scout into one repository, and the plan is drafting until
// the scout's report has come: it ends with the same documents, each in a
// fence named "plan <file>", and is read as strictly. And triage authors a plan
// for an ask that needs several repositories (Author).
//
// A plan that is held has groups but no tasks. Approving it mints them all in
// one transaction.
package plan

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// The states of a plan.
const (
	Drafting  = "drafting" // a scout is at work, there are no groups yet
	Held      = "held"     // waits for approval
	Running   = "running"
	Done      = "done"
	Failed    = "failed" // nothing of it goes on, and not all of it merged
	Cancelled = "cancelled"
)

// The buckets a list of plans is counted in. Stalled is a plan that only a
// person gets going again.
const (
	BucketHeld      = "held"
	BucketActive    = "active"
	BucketStalled   = "stalled"
	BucketDone      = "done"
	BucketCancelled = "cancelled"
)

// The states of a group besides held, running, done and failed, which are
// named as those of a plan.
const (
	Waiting    = "waiting"    // for groups before it
	Ready      = "ready"      // in the queue
	Stopped    = "stopped"    // cancelled
	Superseded = "superseded" // other groups have its place
)

// The kinds of edges. An ordering-only edge keeps two groups in order without
// the later one needing the code of the earlier; it can be removed.
const (
	Code         = "code"
	OrderingOnly = "ordering_only"
)

// Where a plan comes from.
const (
	SourceExecute = "execute"
	SourceFile    = "file"
	SourceStart   = "start"
	SourceTriage  = "triage"
)

// Limits.
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
	PlanID         string    `json:"planId"`
	ID             string    `json:"id"`
	Repo           string    `json:"repo" doc:"owner/name of its first group, or of the repository that is surveyed for it"`
	Repos          []string  `json:"repos" doc:"every repository that it works in"`
	Title          string    `json:"title" doc:"of its first group"`
	Status         string    `json:"status" enum:"drafting,held,running,done,failed,cancelled"`
	Bucket         string    `json:"bucket" enum:"held,active,stalled,done,cancelled"`
	Source         string    `json:"source" enum:"execute,file,start,triage"`
	Dir            *string   `json:"dir" doc:"where its documents are committed"`
	Revision       int64     `json:"revision" doc:"which reading of the directory it is, from 1"`
	Merged         int64     `json:"merged" doc:"groups that are done"`
	Total          int64     `json:"total" doc:"groups, without those that others took the place of"`
	HeldCount      int64     `json:"held_count" doc:"groups that wait for a person"`
	AskID          *string   `json:"ask_id"`
	Note           *string   `json:"note" doc:"why it is held or has failed, where its groups do not say"`
	CreatedBy      string    `json:"created_by"`
	CreatedAt      time.Time `json:"created_at"`
	LastActivityAt time.Time `json:"last_activity_at"`
}

// PlanDetail is a plan with all of its groups, their tasks and pull requests.
type PlanDetail struct {
	Plan
	Overview    string      `json:"overview"`
	CommitSHA   *string     `json:"commit_sha" doc:"where its directory was read"`
	ScoutTaskID *string     `json:"scout_task_id"`
	Groups      []PlanGroup `json:"groups"`
}

// PlanGroup is one unit of a plan: one pull request.
type PlanGroup struct {
	ID       string      `json:"id"`
	PlanID   string      `json:"plan_id"`
	Repo     string      `json:"repo"`
	Slug     string      `json:"slug"`
	Title    string      `json:"title"`
	Status   string      `json:"status" enum:"held,waiting,ready,running,done,failed,stopped,superseded"`
	Files    []string    `json:"files"`
	Upstream []PlanEdge  `json:"upstream" doc:"the groups that must be done before it starts"`
	Tasks    []PlanChild `json:"tasks"`
}

// PlanEdge names a group that another one waits for.
type PlanEdge struct {
	GroupID string `json:"group_id"`
	Kind    string `json:"kind" enum:"code,ordering_only"`
}

// PlanChild is a task of a plan.
type PlanChild struct {
	ID          string  `json:"id"`
	Title       string  `json:"title"`
	Status      string  `json:"status"`
	FailureKind *string `json:"failure_kind"`
	RunID       *string `json:"run_id"`
	PR          *PlanPR `json:"pr"`
}

// PlanPR is the pull request of a task.
type PlanPR struct {
	ID     string `json:"id"`
	Number int64  `json:"number"`
	Title  string `json:"title"`
	URL    string `json:"url"`
	State  string `json:"state"`
}

// Survey is what a scout brought back.
type Survey struct {
	Report       string
	Summary      string
	SplitHints   []string
	Handoffs     []string
	AccessNeeded []string
}

// Filing is an ask for triage.
type Filing struct {
	RepoIDs     []string // in the order they were named in
	Title, Body string
}

// Service holds the plans. All fields are wired by the program; the optional
// ones say so.
type Service struct {
	DB     *db.DB
	Tasks  *task.Service
	Host   codehost.Host
	Logger *slog.Logger

	// Surveyed is what the newest run of a task of tx.Account reported; false
	// without a report.
	Surveyed func(tx *db.Tx, taskID string) (Survey, bool, error)
	// Wrote is told of a commit that a plan's documents made on a default
	// branch.
	Wrote func(ctx context.Context, r codehost.Repo, branch, old, sha string) error
	// CommitName and CommitEmail sign such a commit.
	CommitName, CommitEmail string

	// FileAsk files an ask and answers its id. Optional: without triage, a plan
	// over several repositories cannot be asked for.
	FileAsk func(tx *db.Tx, f Filing) (askID string, err error)
	// AskTasks lists the tasks that an ask was scheduled as; false if there is
	// no such ask, none if it is not scheduled. Optional: without asks there is
	// none.
	AskTasks func(tx *db.Tx, askID string) (taskIDs []string, ok bool, err error)
}

func (s *Service) log() *slog.Logger {
	if s.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Logger
}
