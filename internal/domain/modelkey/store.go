package modelkey

import (
	"strconv"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/money"
	"yardmaster/internal/seal/keys"
)

type row struct {
	ID             string
	AccountID      string
	UserID         string // whose pool it is in; empty: the account's
	Provider       string
	Label          string
	BaseURL        string `db:"base_url"`
	Masked         string
	Sealed         string
	Kind           Kind
	Capacity       *int64
	Priority       int64
	Status         string
	LastVerifiedAt *time.Time
	LastError      *string
	CreatedAt      time.Time
	DeletedAt      *time.Time
	Price          *db.JSON[llm.Price]
	Version        int64
	Cap            *int64 // micro-dollars a month; nil: none
	Health
}

const columns = `id, account_id, user_id, provider, label, base_url, masked, sealed, kind, capacity, priority, status, last_verified_at,
	last_error, created_at, deleted_at, price, version,
	(SELECT l.micros FROM budget_limits l WHERE l.account_id = provider_keys.account_id AND l.scope = 'key'
	AND l.ref = provider_keys.id) AS cap, ` + healthColumns

var (
	byID   = db.Q[row](`SELECT ` + columns + ` FROM provider_keys WHERE account_id = $1 AND id = $2`)
	inPool = db.Q[row](`SELECT ` + columns + ` FROM provider_keys WHERE account_id = $1 AND user_id = $2 AND id = $3`)
	insert = db.SWith[insertArgs](`INSERT INTO provider_keys (id, account_id, user_id, provider, label, base_url, masked, sealed, kind,
		capacity, priority, created_at, price)
		VALUES (:id, :account_id, :user_id, :provider, :label, :base_url, :masked, :sealed, :kind, :capacity, :priority, :created_at, :price)`)
	// erase takes the secret out of the row. The row stays, so that a deletion can be
	// repeated and calls over the key can be explained.
	erase = db.S(`UPDATE provider_keys SET deleted_at = $3, sealed = '', masked = ''
		WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`)
	// pool leaves out the keys that are lent to others. It is read for every page of tasks. Its parameter is cast, because SQLite with
	// statistics plans a statement anew for each value of a parameter without a cast.
	pool = db.Q[row](`SELECT ` + columns + ` FROM provider_keys
		WHERE account_id = CAST($1 AS TEXT) AND user_id IN ('', CAST($2 AS TEXT)) AND deleted_at IS NULL AND NOT EXISTS (
			SELECT 1 FROM donations d WHERE d.key_id = provider_keys.id AND d.parked_at IS NULL AND d.kind = 'llm')
		ORDER BY CASE status WHEN 'failing' THEN 1 ELSE 0 END, CASE user_id WHEN '' THEN 1 ELSE 0 END, priority,
			CASE kind WHEN 'subscription' THEN 0 ELSE 1 END, created_at, id`)

	deleted = db.Q[row](`SELECT ` + columns + ` FROM provider_keys
		WHERE account_id = CAST($1 AS TEXT) AND user_id IN ('', CAST($2 AS TEXT)) AND deleted_at IS NOT NULL
		ORDER BY deleted_at DESC LIMIT 100`)

	markFailing = db.SWith[failingArgs](`UPDATE provider_keys SET status = 'failing', last_error = :error
		WHERE account_id = :account_id AND id = :id AND version = :version AND (status <> 'failing' OR last_error <> :error)`)
	markOK = db.SWith[worksArgs](`UPDATE provider_keys SET status = 'ok', last_error = NULL, last_verified_at = :now
		WHERE account_id = :account_id AND id = :id AND version = :version AND status <> 'ok'`)
	recover = db.SWith[worksArgs](`UPDATE provider_keys SET status = 'ok', last_error = NULL, last_verified_at = :now
		WHERE account_id = :account_id AND id = :id AND version = :version AND status = 'failing'`)
	// confirm is markOK of one that is ok already.
	confirm = db.S(`UPDATE provider_keys SET status = 'ok', last_error = NULL, last_verified_at = $3, rest_until = NULL, rest_since = NULL, rest_why = '',
		rests = 0, slips = 0, probe_until = NULL, health_seq = health_seq + 1
		WHERE account_id = $1 AND id = $2`)

	replace = db.SWith[replaceArgs](`UPDATE provider_keys SET sealed = :sealed, masked = :masked, version = version + 1,
		status = 'unverified', last_error = NULL, last_verified_at = NULL, rest_until = NULL, rest_since = NULL, rest_why = '',
		rests = 0, slips = 0, probe_until = NULL, health_seq = health_seq + 1
		WHERE account_id = :account_id AND id = :id AND deleted_at IS NULL`)
	setUse = db.SWith[row](`UPDATE provider_keys SET kind = :kind, capacity = :capacity, priority = :priority
		WHERE account_id = :account_id AND id = :id`)

	// kept reads every key of an account that can be opened, those of persons too.
	kept = db.Q[row](`SELECT ` + columns + ` FROM provider_keys WHERE account_id = $1 AND sealed <> '' ORDER BY id`)

	countOwn = db.Q[int64](`SELECT COUNT(*) FROM provider_keys WHERE account_id = $1 AND user_id = $2 AND deleted_at IS NULL`)
	// ofUser reads what a person has in every account.
	ofUser = db.Q[row](`SELECT ` + columns + ` FROM provider_keys WHERE user_id = $1 AND user_id <> '' AND deleted_at IS NULL
		ORDER BY account_id, id`)
)

// failingArgs are the parameters of markFailing.
type failingArgs struct {
	AccountID, ID, Error string
	Version              int64
}

// worksArgs are the parameters of markOK.
type worksArgs struct {
	AccountID, ID string
	Version       int64
	Now           time.Time
}

// replaceArgs are the parameters of replace.
type replaceArgs struct{ AccountID, ID, Sealed, Masked string }

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, UserID, Provider, Label, BaseURL, Masked, Sealed string
	Kind                                                            Kind
	Capacity                                                        *int64
	Priority                                                        int64
	CreatedAt                                                       time.Time
	Price                                                           *db.JSON[llm.Price]
}

func (r row) wire() BillingKey {
	out := BillingKey{
		ID: r.ID, Provider: llm.Provider(r.Provider), Label: r.Label, Masked: r.Masked, Kind: r.Kind, Capacity: r.Capacity,
		Priority: r.Priority, Status: Status(r.Status), LastError: r.LastError, CreatedAt: r.CreatedAt, CapUSD: money.USD(r.Cap),
	}
	if r.BaseURL != "" {
		out.BaseURL = &r.BaseURL
	}
	if r.Price != nil {
		p := shown(r.Price.V)
		out.Price = &p
	}
	out.LastVerifiedAt, out.Rest = r.LastVerifiedAt, r.Health.wire()
	return out
}

// find reads a key of a pool of tx.Account, also a deleted one; unknown, foreign and
// malformed ids are the same fault.NotFound. The user is the owner of the pool; empty: it
// is the account's.
func find(tx *db.Tx, user, keyID string) (row, error) {
	if !id.Valid(keyID) {
		return row{}, fault.Missing("key")
	}
	r, ok, err := inPool.Maybe(tx, tx.Account, user, keyID)
	if err == nil && !ok {
		err = fault.Missing("key")
	}
	return r, err
}

// live is find without those that were deleted.
func live(tx *db.Tx, user, keyID string) (row, error) {
	r, err := find(tx, user, keyID)
	if err == nil && r.DeletedAt != nil {
		err = fault.Missing("key")
	}
	return r, err
}

func list(tx *db.Tx, user string, p op.PageIn) ([]row, error) {
	b := db.Build(`SELECT `+columns+` FROM provider_keys WHERE deleted_at IS NULL AND account_id = `, tx.Account)
	b.And("user_id = ", user)
	if after := p.After(); len(after) > 0 {
		place, err := placeOf(after)
		if err != nil {
			return nil, err
		}
		b.And("(priority, created_at, id) > ", place)
	}
	return db.Select[row](tx, b.SQL(" ORDER BY priority, created_at, id LIMIT ", p.Size()))
}

// key is the row's place in the order of the list; placeOf reads it.
func (r row) key() []string {
	return append([]string{strconv.FormatInt(r.Priority, 10)}, op.TimeKey(r.CreatedAt, r.ID)...)
}

// placeOf fails with a fault of the field cursor.
func placeOf(key []string) (any, error) {
	if len(key) == 3 {
		priority, err := strconv.ParseInt(key[0], 10, 64)
		at, err2 := strconv.ParseInt(key[1], 10, 64)
		if err == nil && err2 == nil {
			return db.Tuple(priority, at, key[2]), nil
		}
	}
	return nil, fault.Field("cursor", "is not a cursor of this collection")
}

func (r row) pooled() Key {
	k := Key{ID: r.ID, Provider: llm.Provider(r.Provider), BaseURL: r.BaseURL, owner: owner(r.AccountID, r.UserID), sealed: r.Sealed,
		personal: r.UserID != "", version: r.Version, Capacity: r.Capacity, Health: r.Health, capped: r.Cap != nil}
	if r.Price != nil {
		k.price = &r.Price.V
	}
	return k
}

// Note sets the status of a key after a call over it. The slug is that of the call's
// fault, or empty for a call that worked; a fault that has other causes than the key
// changes nothing, nor does what a call says of a secret that was replaced meanwhile.
//
// Who owns the key is told when its provider begins to refuse it, and when it works again.
func Note(tx *db.Tx, account string, over llm.Route, slug string) error {
	var n int64
	var err error
	kind := refusedEvents
	switch slug {
	case llm.SlugAuth, llm.SlugQuota:
		before, ok, err2 := byID.Maybe(tx, account, over.ID)
		if err2 != nil || !ok {
			return err2
		}
		n, err = markFailing.Exec(tx, failingArgs{AccountID: account, ID: over.ID, Error: slug, Version: over.Version})
		if before.Status == Failing {
			n = 0 // they know
		}
	case "":
		kind = recoveredEvents
		if n, err = recover.Exec(tx, worksArgs{AccountID: account, ID: over.ID, Version: over.Version, Now: tx.Now}); err == nil && n == 0 {
			_, err = markOK.Exec(tx, worksArgs{AccountID: account, ID: over.ID, Version: over.Version, Now: tx.Now})
		}
	}
	if err != nil || n == 0 {
		return err
	}
	return tx.As(account, func() error { return kind.record(tx, over.ID, slug) })
}

// Sealed is the column of the sealed keys.
var Sealed = keys.Column{
	Table: "provider_keys", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `provider_keys WHERE sealed <> '' GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT id AS key, account_id || CASE user_id WHEN '' THEN '' ELSE '/' || user_id END AS account,
		sealed FROM provider_keys WHERE id > $1 AND sealed <> '' ORDER BY id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE provider_keys SET sealed = $3 WHERE id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Account) },
}

// pooledOf reads live keys of the pools of accounts, by their ids, which come from gifts and
// never from a request.
func pooledOf(tx *db.Tx, ids []string) ([]row, error) {
	return db.Select[row](tx, db.Build(`SELECT `+columns+` FROM provider_keys WHERE user_id = '' AND deleted_at IS NULL`).In("id", ids))
}
