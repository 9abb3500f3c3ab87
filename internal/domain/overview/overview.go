// Package overview is the account at a glance: how much there is of what people
// look for first, and what models have cost lately. It owns nothing; it counts
// what others keep.
package overview

import (
	"yardmaster/internal/db"
	"yardmaster/internal/needs"
)

// Needs is what the counts stand on.
type Needs struct{ DB *db.DB }

// Service answers the counts.
type Service struct{ Needs }

// New makes the service of n, which is to be whole.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Counts are of the whole account.
type Counts struct {
	_         struct{} `doc:"What there is in the account, counted."`
	Repos     int64    `json:"enabled_repos" example:"6" doc:"repositories that tasks are taken for"`
	Open      int64    `json:"open_prs" example:"4" doc:"pull requests that are open"`
	Merged    int64    `json:"merged_prs_24h" example:"3" doc:"pull requests merged within the last 24 hours"`
	Approvals int64    `json:"pending_approvals" example:"1" doc:"questions about pull requests that wait for a person"`
}

// Burn is what sessions cost in the last hour: an estimate, not a bill.
type Burn struct {
	_        struct{} `doc:"What sessions cost in the last hour, estimated."`
	CostUSD  *string  `json:"cost_usd" example:"3.15" doc:"decimal US dollars; the sum of what has a price, null when nothing has"`
	Sessions int64    `json:"sessions" example:"5" doc:"sessions that called a model"`
	Unpriced int64    `json:"unpriced_sessions" example:"0" doc:"sessions that called a model without a known price"`
}
