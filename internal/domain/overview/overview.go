// Package overview is the account at a glance: how much there is of what people
// look for first, and what models have cost lately. It owns nothing; it counts
// what others keep.
package overview

import "yardmaster/internal/db"

// Service answers the counts.
type Service struct {
	DB *db.DB
}

// OverviewCounts are of the whole account.
type OverviewCounts struct {
	Repos     int64 `json:"enabled_repos"`
	Open      int64 `json:"open_prs"`
	Merged    int64 `json:"merged_prs_24h"`
	Approvals int64 `json:"pending_approvals" doc:"actions that wait for a person"`
}

// OverviewBurn is what sessions cost in the last hour: an estimate, not a bill.
type OverviewBurn struct {
	CostUSD  *string `json:"cost_usd" doc:"decimal; the sum of what has a price, null when nothing has"`
	Sessions int64   `json:"sessions" doc:"that called a model"`
	Unpriced int64   `json:"unpriced_sessions" doc:"that called a model without a known price"`
}
