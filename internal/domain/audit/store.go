package audit

import (
	"encoding/json"
	"time"

	"yardmaster/internal/db"
)

// row is an Event as it is stored.
type row struct {
	ID        string
	AccountID *string
	Seq       int64
	At        time.Time
	Actor     string
	Kind      string
	Object    string
	RepoID    *string
	RequestID string
	Data      string
	PrevHash  string
	Hash      string
}

func (r row) wire() Event {
	return Event{
		ID:        r.ID,
		AccountID: r.AccountID,
		Seq:       r.Seq,
		At:        r.At,
		Actor:     r.Actor,
		Kind:      r.Kind,
		Object:    r.Object,
		RepoID:    r.RepoID,
		RequestID: r.RequestID,
		Data:      json.RawMessage(r.Data),
		PrevHash:  r.PrevHash,
		Hash:      r.Hash,
	}
}

const columns = `id, account_id, seq, at, actor, kind, object, repo_id, request_id, data, prev_hash, hash`

// newest sorts after every id.
const newest = "g"

// Ids follow the order of time, so the platform's records are ordered by id.
var (
	ofAccount = db.Q[row](`SELECT ` + columns + ` FROM audit WHERE account_id = $1 AND seq > 0 AND seq < $2 ORDER BY seq DESC LIMIT $3`)
	ofAll     = db.Q[row](`SELECT ` + columns + ` FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2`)
	looks     = db.Q[TrailEntry](`SELECT id, at, actor, capability, account_id, user_id, run_id, request_id FROM operator_trail
		WHERE id < $1 ORDER BY id DESC LIMIT $2`)
)
