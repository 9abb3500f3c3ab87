// Package overview counts the objects of an account that people look for first, and
// the recent cost of models; rollup.go the activity of one repository, health.go how
// well it does, utilization.go what the fleet does, timeline.go where the time of a task
// went, flow.go where that of all went, and public.go what a repository shows everybody. It owns no rows; it counts those of other domains.
package overview

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/needs"
)

// Needs are the dependencies of Service.
type Needs struct {
	DB        *db.DB
	Donations Donations
	Tasks     Tasks
	Quotas    Quotas
	Boxes     Boxes
	Knowledge Knowledge
}

// Quotas tells of what accounts may store.
type Quotas interface {
	// NearlyFull lists the things of which tx.Account has at least four fifths of what it may
	// have, as account.quota names them.
	NearlyFull(tx *db.Tx) ([]string, error)
}

// Tasks tells of tasks.
type Tasks interface {
	// Stuck counts the tasks of tx.Account that are shown as stuck.
	Stuck(tx *db.Tx) (int64, error)
}

// Service implements the capabilities of the overview.
type Service struct {
	Needs

	cached cache // of public numbers
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Counts are the numbers of objects in an account.
type Counts struct {
	_         struct{} `doc:"What there is in the account, counted."`
	Repos     int64    `json:"enabled_repos" example:"6" doc:"repositories that tasks are taken for"`
	Open      int64    `json:"open_prs" example:"4" doc:"pull requests that are open"`
	Merged    int64    `json:"merged_prs_24h" example:"3" doc:"pull requests merged within the last 24 hours"`
	Approvals int64    `json:"pending_approvals" example:"1" doc:"questions about pull requests that wait for a person"`
	Running   *int64   `json:"running_tasks" example:"2" doc:"tasks that a box holds, as filter=status:claimed,running lists them; null without read:tasks"`
	Failed    *int64   `json:"failed_tasks_24h" example:"1" doc:"tasks that failed for good within the last 24 hours and have not been redispatched; null without read:tasks"`
	Stuck     *int64   `json:"stuck_tasks" example:"0" doc:"tasks that are shown as stuck, as filter=stuck:true lists them; null without read:tasks"`
	Nearly    []string `json:"nearly_full" example:"[\"git_bytes\"]" doc:"what the account has at least 80 % of that it may store, as account.quota names it"`
	Waiting   Waiting  `json:"waiting_for_me" doc:"what the caller can decide"`
}

// Waiting is what waits for the person who asks.
type Waiting struct {
	_           struct{} `doc:"What waits for a decision that the credential may make; 0 for what it may not decide." schema:"OverviewWaiting"`
	Total       int64    `json:"total" example:"3" doc:"the sum of the others"`
	Approvals   int64    `json:"approvals" example:"1" doc:"questions about pull requests, as pr.pending_approvals lists them; takes write:prs"`
	Blockers    int64    `json:"blockers" example:"1" doc:"open blockers; forms take write:secrets, the others write:tasks and a person"`
	Escalations int64    `json:"escalations" example:"1" doc:"open escalations, without those about a pull request that is counted; takes write:tasks and a person"`
	Plans       int64    `json:"held_plans" example:"0" doc:"plans that are to be approved; takes write:tasks"`
	Pulls       int64    `json:"prs" example:"0" doc:"open pull requests that only a person gets on in another way than by the question that is open: pr.all lists them with filter=waits:person, and their needs_person.why is neither asked nor push_asked; takes write:prs"`
	Tasks       int64    `json:"held_tasks" example:"0" doc:"held tasks, without those that an open blocker holds; takes write:tasks"`
}

// Day is what happened in an account within the last 24 hours.
type Day struct {
	_     struct{}  `doc:"What happened in the account within the last 24 hours." schema:"OverviewDay"`
	Since time.Time `json:"since" doc:"where the 24 hours begin"`
	Repos []RepoDay `json:"repos" doc:"every repository in which something happened, the one with most merged first"`
}

// RepoDay is what happened in a repository.
type RepoDay struct {
	_      struct{} `doc:"What happened in a repository within 24 hours." schema:"OverviewRepoDay"`
	Repo   string   `json:"repo" doc:"owner/name; empty for what belongs to no repository"`
	Merged int64    `json:"merged_prs" example:"3" doc:"pull requests that were merged"`
	Filed  *int64   `json:"filed_tasks" example:"4" doc:"tasks that were filed: no reviews, repairs and checks, which follow from them; null without read:tasks"`
	Spent  *string  `json:"cost_usd" format:"decimal" example:"3.15" doc:"decimal US dollars that sessions cost, an estimate; null when nothing has a price, and without read:sessions"`
}

// Burn is the estimated cost of sessions in the last hour. It is no bill.
type Burn struct {
	_        struct{} `doc:"What sessions cost in the last hour, estimated."`
	CostUSD  *string  `json:"cost_usd" format:"decimal" example:"3.15" doc:"decimal US dollars; the sum of what has a price, null when nothing has"`
	Sessions int64    `json:"sessions" example:"5" doc:"sessions that called a model"`
	Unpriced int64    `json:"unpriced_sessions" example:"0" doc:"sessions that called a model without a known price"`
}
