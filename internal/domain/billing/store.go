package billing

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/llm"
	"yardmaster/internal/op"
)

type row struct {
	ID             string
	Provider       string
	Label          string
	BaseURL        string `db:"base_url"`
	Masked         string
	Kind           string
	Capacity       *int64
	Priority       int64
	Status         string
	LastVerifiedAt *time.Time
	LastError      *string
	CreatedAt      time.Time
}

func (r row) key() Key {
	k := Key{r.ID, llm.Provider(r.Provider), r.Label, nil, r.Masked, r.Kind, r.Capacity, r.Priority, r.Status, r.LastVerifiedAt, r.LastError, r.CreatedAt}
	if r.BaseURL != "" {
		k.BaseURL = &r.BaseURL
	}
	return k
}

// Sealed is a key with its secret still closed.
type Sealed struct {
	ID        string
	AccountID string
	Provider  llm.Provider
	BaseURL   string `db:"base_url"`
	Sealed    string
}

const columns = `id, provider, label, base_url, masked, kind, capacity, priority, status, last_verified_at, last_error, created_at`

var (
	byID   = db.Q[row](`SELECT ` + columns + ` FROM provider_keys WHERE account_id = $1 AND id = $2`)
	insert = db.S(`INSERT INTO provider_keys (id, account_id, provider, label, base_url, masked, sealed, kind, capacity, priority, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`)
	remove = db.S(`DELETE FROM provider_keys WHERE account_id = $1 AND id = $2`)
	pool   = db.Q[Sealed](`SELECT id, account_id, provider, base_url, sealed FROM provider_keys WHERE account_id = $1 ORDER BY priority, created_at, id`)
)

// Pool is the account's keys in the order in which they are tried.
func Pool(tx *db.Tx, account string) ([]Sealed, error) { return pool.All(tx, account) }

func list(tx *db.Tx, p op.PageIn) ([]row, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+` FROM provider_keys WHERE account_id = `, tx.Account)
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[row](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}
