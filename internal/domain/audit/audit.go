// Package audit shows records: members see the changes of their account, operators
// see the changes of all accounts and every look of an operator at a tenant's data.
// It writes nothing. Package event records changes and looks, called by the code that
// makes them.
package audit

import (
	"encoding/json"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/needs"
)

// Event is one change. The events of an account form a chain; their numbers have no
// gaps.
type Event struct {
	_         struct{}        `doc:"One change, who made it, and its place in the chain of its account."`
	ID        string          `json:"id" format:"uuid" doc:"id of the row"`
	AccountID *string         `json:"account_id" format:"uuid" doc:"null: a change of the platform itself"`
	Seq       int64           `json:"seq" doc:"number of the row in its account, from 1"`
	At        time.Time       `json:"at" doc:"when it was made"`
	Actor     string          `json:"actor" example:"user:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who did it: user:, pat: or box: and an id, system, or operator: somebody who runs the platform"`
	Kind      string          `json:"kind" example:"task.created" doc:"what happened, <noun>.<past participle>; newer versions add kinds"`
	Object    string          `json:"object" example:"0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of what changed"`
	RepoID    *string         `json:"repo_id" format:"uuid" doc:"the repository it is about; null: about none"`
	RequestID string          `json:"request_id" doc:"X-Request-Id of the request that caused it; empty: no request did"`
	Data      json.RawMessage `json:"data" example:"{\"status\":\"pending\"}" doc:"what changed, as the kind has it"`
	Withheld  []string        `json:"withheld,omitempty" example:"[\"ip\"]" doc:"members of data that the caller may not see: without them the hash cannot be checked; absent: none"`
	PrevHash  string          `json:"prev_hash" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"hash of the account's row before; empty on its first"`
	Hash      string          `json:"hash" example:"60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752" doc:"SHA-256, in hex, of this object in canonical form (RFC 8785) without hash"`
}

// TrailEntry is one look of an operator at a tenant's data.
type TrailEntry struct {
	_          struct{}  `doc:"One look of an operator at a tenant's data." schema:"TrailEntry"`
	ID         string    `json:"id" format:"uuid" doc:"id of the row"`
	At         time.Time `json:"at" doc:"when it was"`
	Actor      string    `json:"actor" example:"operator:0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"who looked"`
	Capability string    `json:"capability" example:"account.org_get" doc:"what was called"`
	AccountID  *string   `json:"account_id" format:"uuid" doc:"whose data; null with no user_id: every account's"`
	UserID     *string   `json:"user_id" format:"uuid" doc:"the person looked at"`
	RunID      *string   `json:"run_id" format:"uuid" doc:"the run looked at; null: it was about none"`
	RequestID  string    `json:"request_id" doc:"X-Request-Id of the look"`
}

// Needs are the dependencies of Service.
type Needs struct{ DB *db.DB }

// Service implements the capabilities that show the records.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}
