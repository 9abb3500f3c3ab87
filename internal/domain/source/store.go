package source

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/inbound"
	"yardmaster/internal/seal/keys"
)

type row struct {
	ID             string
	AccountID      string
	Name           string
	Kind           string
	Sealed         string
	PreviousUntil  *time.Time
	RepoID         *string
	Projects       db.JSON[map[string]string]
	Label          string
	Bot            string
	Trusted        bool
	Mapping        db.JSON[inbound.Mapping]
	CreatedBy      string
	CreatedAt      time.Time
	LastDeliveryAt *time.Time
	LastRefusedAt  *time.Time
	DeletedAt      *time.Time
}

// deliveryRow is a row of the ledger.
type deliveryRow struct {
	ID         string
	Event      string
	Outcome    string
	Reason     *string
	Title      string
	Project    string
	RepoID     *string
	AskID      *string
	Bytes      int64
	ReceivedAt time.Time
}

const (
	columns = `id, account_id, name, kind, sealed, previous_until, repo_id, projects, label, bot, trusted, mapping, created_by, created_at,
		last_delivery_at, last_refused_at, deleted_at`
	deliveryColumns = `id, event, outcome, reason, title, project, repo_id, ask_id, bytes, received_at`
)

var (
	countLiving = db.Q[int64](`SELECT COUNT(*) FROM sources WHERE account_id = $1 AND deleted_at IS NULL`)
	living      = db.Q[row](`SELECT ` + columns + ` FROM sources WHERE account_id = $1 AND deleted_at IS NULL
		ORDER BY created_at DESC, id DESC`)
	byID         = db.Q[row](`SELECT ` + columns + ` FROM sources WHERE account_id = $1 AND id = $2`)
	lock         = db.Q[row](`SELECT ` + columns + ` FROM sources WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`).ForUpdate()
	byIDAnywhere = db.Q[row](`SELECT ` + columns + ` FROM sources WHERE id = $1 AND deleted_at IS NULL`)
	insert       = db.SWith[insertArgs](`INSERT INTO sources (id, account_id, name, kind, sealed, repo_id, projects, label, bot, trusted,
		created_by, created_at) VALUES (:id, :account_id, :name, :kind, :sealed, :repo_id, :projects, :label, :bot, :trusted,
		:created_by, :created_at)`)
	change = db.SWith[changeArgs](`UPDATE sources SET name = :name, repo_id = :repo_id, projects = :projects, label = :label, bot = :bot,
		trusted = :trusted WHERE account_id = :account_id AND id = :id`)
	setMapping = db.S(`UPDATE sources SET mapping = $3 WHERE account_id = $1 AND id = $2`)
	setSecrets = db.SWith[setSecretsArgs](`UPDATE sources SET sealed = :sealed, previous_until = :previous_until WHERE id = :id`)
	// erase takes the secrets out of the row, which stays so that a disconnection can be
	// repeated.
	erase = db.S(`UPDATE sources SET deleted_at = $3, sealed = '', previous_until = NULL
		WHERE account_id = $1 AND id = $2 AND deleted_at IS NULL`)
	delivered   = db.S(`UPDATE sources SET last_delivery_at = $2 WHERE id = $1`)
	noteRefused = db.S(`UPDATE sources SET last_refused_at = $2 WHERE id = $1 AND deleted_at IS NULL`)
	rotated     = db.Q[row](`SELECT ` + columns + ` FROM sources WHERE previous_until <= $1`).ForUpdate()
	pullIn      = db.S(`UPDATE sources SET previous_until = $1 WHERE previous_until > $1`)

	insertDelivery = db.SWith[insertDeliveryArgs](`INSERT INTO source_deliveries (id, account_id, source_id, event, outcome, reason, title,
		project, repo_id, ask_id, bytes, body, received_at) VALUES (:id, :account_id, :source_id, :event, :outcome, :reason, :title,
		:project, :repo_id, :ask_id, :bytes, :body, :received_at)`)
	// trimLedger keeps the newest $2 deliveries of a source.
	trimLedger = db.S(`DELETE FROM source_deliveries WHERE source_id = $1 AND id < (SELECT id FROM source_deliveries
		WHERE source_id = $1 ORDER BY id DESC LIMIT 1 OFFSET ($2 - 1))`)
	// trimBodies keeps the bodies of the newest $2 deliveries of a source that have one.
	trimBodies = db.S(`UPDATE source_deliveries SET body = NULL WHERE source_id = $1 AND body IS NOT NULL AND id < (
		SELECT id FROM source_deliveries WHERE source_id = $1 AND body IS NOT NULL ORDER BY id DESC LIMIT 1 OFFSET ($2 - 1))`)
	tried = db.Q[triedRow](`SELECT id, body, received_at FROM source_deliveries
		WHERE account_id = $1 AND source_id = $2 AND body IS NOT NULL ORDER BY id DESC LIMIT $3`)
	dropLedger       = db.S(`DELETE FROM source_deliveries WHERE source_id = $1`)
	forgetDeliveries = db.S(`DELETE FROM source_deliveries WHERE received_at < $1`)

	seenBefore = db.Q[string](`SELECT ask_id FROM source_seen WHERE source_id = $1 AND key = $2 AND at > $3`)
	addSeen    = db.SWith[addSeenArgs](`INSERT INTO source_seen (source_id, key, ask_id, at) VALUES (:source_id, :key, :ask_id, :at)
		ON CONFLICT (source_id, key) DO UPDATE SET ask_id = excluded.ask_id, at = excluded.at`)
	dropSeen   = db.S(`DELETE FROM source_seen WHERE source_id = $1`)
	forgetSeen = db.S(`DELETE FROM source_seen WHERE at < $1`)
)

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, Name, Kind, Sealed string
	RepoID                            *string
	Projects                          db.JSON[map[string]string]
	Label, Bot                        string
	Trusted                           bool
	CreatedBy                         string
	CreatedAt                         int64
}

// changeArgs are the parameters of change.
type changeArgs struct {
	AccountID, ID, Name string
	RepoID              *string
	Projects            db.JSON[map[string]string]
	Label, Bot          string
	Trusted             bool
}

// setSecretsArgs are the parameters of setSecrets.
type setSecretsArgs struct {
	ID, Sealed    string
	PreviousUntil *int64
}

// insertDeliveryArgs are the parameters of insertDelivery.
type insertDeliveryArgs struct {
	ID, AccountID, SourceID, Event, Outcome string
	Reason                                  *string
	Title, Project                          string
	RepoID, AskID                           *string
	Bytes                                   int64
	Body                                    *string
	ReceivedAt                              int64
}

// addSeenArgs are the parameters of addSeen.
type addSeenArgs struct {
	SourceID, Key, AskID string
	At                   int64
}

type triedRow struct {
	ID         string
	Body       string
	ReceivedAt time.Time
}

// listDeliveries answers a page of the ledger of a source of tx.Account, newest first.
func listDeliveries(tx *db.Tx, p op.PageIn, sourceID string) ([]deliveryRow, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+deliveryColumns+` FROM source_deliveries WHERE account_id = `, tx.Account)
	b.And("source_id = ", sourceID)
	if outcome := p.Want("outcome"); outcome != "" {
		b.Is("outcome", outcome)
	}
	if more {
		b.And("(received_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[deliveryRow](tx, b.SQL(" ORDER BY received_at DESC, id DESC LIMIT ", p.Size()))
}

// Sealed is the column of secrets.
var Sealed = keys.Column{
	Table: "sources", Name: "sealed",
	Count: db.Q[keys.Held](keys.Tally + `sources WHERE sealed <> '' GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT id AS key, account_id AS account, sealed FROM sources
		WHERE id > $1 AND sealed <> '' ORDER BY id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE sources SET sealed = $3 WHERE id = $1 AND sealed = $2`)),
	Purpose: func(r keys.Row) string { return purpose(r.Key) },
}

// ClockSetBack ends an overlap of secrets that would last longer than it ever does.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, db.Micros(tx.Now.Add(overlap)))
	return err
}
