package join

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/remote"
)

// State is how far a machine is.
type State string

// The states of a row.
const (
	waiting = "waiting"
	joining = "joining" // the machine was, or is being, dialled
	joined  = "joined"
	failed  = "failed"
)

// Values lists all states.
func (State) Values() []string { return []string{waiting, joining, joined, failed} }

type row struct {
	ID           string
	AccountID    string
	Host         string
	Port         int64
	UserName     string
	HostKey      string
	URL          string `db:"url"`
	Name         string
	Slots        *int64
	Labels       db.JSON[map[string]string]
	State        string
	Reason       *string
	Detail       *string
	Output       string
	Seen         *string
	EnrollmentID *string
	BoxID        *string
	CreatedBy    string
	CreatedAt    time.Time
	EndedAt      *time.Time
}

func (r row) place() remote.Place {
	return remote.Place{Host: r.Host, Port: int(r.Port), User: r.UserName}
}

const columns = `id, account_id, host, port, user_name, host_key, url, name, slots, labels, state, reason, detail, output, seen,
	enrollment_id, box_id, created_by, created_at, ended_at`

var (
	insert = db.SWith[row](`INSERT INTO ssh_joins (id, account_id, host, port, user_name, host_key, url, name, slots, labels, state,
		created_by, created_at)
		VALUES (:id, :account_id, :host, :port, :user_name, :host_key, :url, :name, :slots, :labels, 'waiting', :created_by, :created_at)`)
	byID     = db.Q[row](`SELECT ` + columns + ` FROM ssh_joins WHERE account_id = $1 AND id = $2`)
	countNew = db.Q[int64](`SELECT COUNT(*) FROM ssh_joins WHERE account_id = $1 AND created_at > $2`)
	openKeys = db.Q[due.Open](`SELECT id AS key, account_id AS account FROM ssh_joins WHERE ended_at IS NULL LIMIT $1`)
	begin    = db.S(`UPDATE ssh_joins SET state = 'joining' WHERE account_id = $1 AND id = $2 AND state = 'waiting'`)
	setToken = db.S(`UPDATE ssh_joins SET enrollment_id = $3 WHERE account_id = $1 AND id = $2 AND ended_at IS NULL`)
	end      = db.SWith[endArgs](`UPDATE ssh_joins SET state = :state, reason = :reason, detail = :detail, output = :output, seen = :seen,
		box_id = :box_id, ended_at = :now WHERE account_id = :account_id AND id = :id AND ended_at IS NULL`)
	forget = db.S(`DELETE FROM ssh_joins WHERE created_at < $1 AND ended_at IS NOT NULL`)
)

// endArgs are the parameters of end.
type endArgs struct {
	AccountID, ID, State, Output string
	Reason, Detail, Seen, BoxID  *string
	Now                          int64
}

// page answers a page of the rows of tx.Account, newest first.
func page(tx *db.Tx, p op.PageIn) ([]row, error) {
	b := db.Build(`SELECT `+columns+` FROM ssh_joins WHERE account_id = `, tx.Account)
	if state := p.Want("state"); state != "" {
		b.Is("state", state)
	}
	if one := p.Want("id"); one != "" {
		b.And("id = ", one)
	}
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	if more {
		b.OlderThan("created_at", "id", at, last)
	}
	return db.Select[row](tx, b.Newest("created_at", "id", p.Size()))
}
