// Package audit shows what is on record: the changes to an account's data, to
// the account; all of them, to the operators of the platform; and every look
// an operator took at a tenant's data. It writes nothing of its own: changes
// and looks are recorded by those who make them, with package event.
package audit

import (
	"encoding/json"
	"time"

	"yardmaster/internal/db"
)

// AuditEvent is one change. The rows of an account are a chain; its numbers
// have no gaps.
type AuditEvent struct {
	ID        string          `json:"id"`
	AccountID *string         `json:"account_id" doc:"null: a change of the platform itself"`
	Seq       int64           `json:"seq" doc:"number of the row in its account, from 1"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor" doc:"who did it: user:, pat:, operator: or box: and an id, or system"`
	Kind      string          `json:"kind" doc:"<noun>.<past participle>"`
	Object    string          `json:"object" doc:"id of what changed"`
	RepoID    *string         `json:"repo_id"`
	RequestID string          `json:"request_id" doc:"empty: no request caused it"`
	Data      json.RawMessage `json:"data" doc:"what changed"`
	PrevHash  string          `json:"prev_hash" doc:"hash of the account's row before; empty on its first"`
	Hash      string          `json:"hash" doc:"SHA-256, in hex, of this object in canonical form (RFC 8785) without hash"`
}

// TrailEntry is one look of an operator at a tenant's data.
type TrailEntry struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"`
	Actor      string    `json:"actor" doc:"who looked"`
	Capability string    `json:"capability" doc:"what was called"`
	AccountID  *string   `json:"account_id" doc:"whose data; null with no user_id: every account's"`
	UserID     *string   `json:"user_id" doc:"the person looked at"`
	RunID      *string   `json:"run_id"`
	RequestID  string    `json:"request_id"`
}

// Service answers for the records.
type Service struct {
	DB *db.DB
}
