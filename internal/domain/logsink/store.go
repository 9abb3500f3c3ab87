package logsink

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/llm/sink"
	"yardmaster/internal/seal/keys"
)

type row struct {
	AccountID   string
	Kind        sink.Kind
	Masked      string
	HeaderNames db.JSON[[]string]
	Sealed      string
	Sent        int64
	Dropped     int64
	Failed      int64
	LastError   *string
	LastSentAt  *time.Time
	ProbedAt    time.Time
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

var (
	byAccount = db.Q[row](`SELECT account_id, kind, masked, header_names, sealed, sent, dropped, failed, last_error, last_sent_at,
		probed_at, created_at, updated_at FROM log_sinks WHERE account_id = $1`)
	accounts = db.Q[string](`SELECT account_id FROM log_sinks`)
	put      = db.SWith[putArgs](`INSERT INTO log_sinks (account_id, kind, masked, header_names, sealed, probed_at, created_at, updated_at)
		VALUES (:account_id, :kind, :masked, :header_names, :sealed, :probed_at, :now, :now)
		ON CONFLICT (account_id) DO UPDATE SET kind = excluded.kind, masked = excluded.masked,
		header_names = excluded.header_names, sealed = excluded.sealed, sent = 0, dropped = 0, failed = 0, last_error = NULL,
		last_sent_at = NULL, probed_at = excluded.probed_at, updated_at = excluded.updated_at`)
	remove = db.S(`DELETE FROM log_sinks WHERE account_id = $1`)
	count  = db.SWith[countArgs](`UPDATE log_sinks SET sent = sent + :sent, dropped = dropped + :dropped, failed = failed + :failed
		WHERE account_id = :account_id`)
	took    = db.S(`UPDATE log_sinks SET last_error = NULL, last_sent_at = $2 WHERE account_id = $1`)
	refused = db.S(`UPDATE log_sinks SET last_error = $2 WHERE account_id = $1`)
)

// putArgs are the parameters of put.
type putArgs struct {
	AccountID, Masked string
	Kind              sink.Kind
	HeaderNames       db.JSON[[]string]
	Sealed            string
	ProbedAt          time.Time
	Now               time.Time
}

// countArgs are the parameters of count.
type countArgs struct {
	AccountID             string
	Sent, Dropped, Failed int64
}

func (r row) wire() *LogSinkConfig {
	return &LogSinkConfig{
		Kind: r.Kind, URL: r.Masked, Headers: r.HeaderNames.V, Sent: r.Sent, Dropped: r.Dropped, Failed: r.Failed,
		LastError: r.LastError, LastSentAt: r.LastSentAt, ProbedAt: r.ProbedAt, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Sealed is the column of the sealed addresses and credentials.
var Sealed = keys.Column{
	Table: "log_sinks", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `log_sinks GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT account_id AS key, account_id AS account, sealed FROM log_sinks
		WHERE account_id > $1 ORDER BY account_id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE log_sinks SET sealed = $3 WHERE account_id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Account) },
}
