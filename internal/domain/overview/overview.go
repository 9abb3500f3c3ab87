// Package overview counts the objects of an account that people look for first, and
// the recent cost of models; rollup.go the activity of one repository, and public.go
// what a repository shows everybody. It owns no rows; it counts those of other domains.
package overview

import (
	"yardmaster/internal/db"
	"yardmaster/internal/needs"
)

// Needs are the dependencies of Service.
type Needs struct {
	DB        *db.DB
	Donations Donations
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
}

// Burn is the estimated cost of sessions in the last hour. It is no bill.
type Burn struct {
	_        struct{} `doc:"What sessions cost in the last hour, estimated."`
	CostUSD  *string  `json:"cost_usd" example:"3.15" doc:"decimal US dollars; the sum of what has a price, null when nothing has"`
	Sessions int64    `json:"sessions" example:"5" doc:"sessions that called a model"`
	Unpriced int64    `json:"unpriced_sessions" example:"0" doc:"sessions that called a model without a known price"`
}
