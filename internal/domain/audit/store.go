package audit

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

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

	withheld []string // members of Data that are left out
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
		Withheld:  r.withheld,
		PrevHash:  r.PrevHash,
		Hash:      r.Hash,
	}
}

const columns = `id, account_id, seq, at, actor, kind, object, repo_id, request_id, data, prev_hash, hash`

// newest sorts after every id.
const newest = "g"

// Ids follow the order of time, so the platform's records are ordered by id.
var (
	selectHead = db.Q[int64](`SELECT seq FROM audit_heads WHERE account_id = $1`)
	ofAll      = db.Q[row](`SELECT ` + columns + ` FROM audit WHERE id < $1 ORDER BY id DESC LIMIT $2`)
	looks      = db.Q[TrailEntry](`SELECT id, at, actor, capability, account_id, user_id, run_id, request_id FROM operator_trail
		WHERE id < $1 ORDER BY id DESC LIMIT $2`)
)

// ofAccount lists the rows of tx.Account that the filters of a page leave, newest first,
// with numbers below before and from end on.
func ofAccount(tx *db.Tx, in listIn, before, end int64) ([]row, error) {
	b := db.Build(`SELECT `+columns+` FROM audit WHERE account_id = `, tx.Account).SQL(" AND seq > 0").And("seq < ", before)
	if end > 0 {
		b.And("seq >= ", end)
	}
	if one := in.Want("id"); one != "" {
		b.And("id = ", one)
	}
	if kind := in.Want("kind"); strings.HasSuffix(kind, ".") {
		b.And("substr(kind, 1, ", utf8.RuneCountInString(kind)).SQL(") = ", kind)
	} else if kind != "" {
		b.Is("kind", kind)
	}
	if actor := in.Want("actor"); actor != "" {
		b.And("actor = ", actor)
	}
	if object := in.Want("object"); object != "" {
		b.And("object = ", object)
	}
	return db.Select[row](tx, b.SQL(" ORDER BY seq DESC LIMIT ", in.Size()))
}
