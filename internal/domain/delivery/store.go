package delivery

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

type row struct {
	Host string
	GUID string `db:"guid"`
	Kind string
	Body []byte
}

type sweepRow struct{ RepoID, Marks string }

// insertArgs are the parameters of insert.
type insertArgs struct {
	Host       string
	GUID       string `db:"guid"`
	Kind       string
	Body       []byte
	Bytes, Now int64
}

var (
	insert = db.SWith[insertArgs](`INSERT INTO host_deliveries (host, guid, kind, body, bytes, state, received_at)
		VALUES (:host, :guid, :kind, :body, :bytes, 'stored', :now) ON CONFLICT DO NOTHING`)
	stored   = db.Q[row](`SELECT host, guid, kind, body FROM host_deliveries WHERE host = $1 AND guid = $2 AND ended_at IS NULL`)
	openKeys = db.Q[due.Open](`SELECT host || '/' || guid AS key, '' AS account FROM host_deliveries WHERE ended_at IS NULL LIMIT $1`)
	note     = db.SWith[noteArgs](`UPDATE host_deliveries SET tries = :tries, error = :error WHERE host = :host AND guid = :guid`)
	end      = db.SWith[endArgs](`UPDATE host_deliveries SET state = :state, error = :error, tries = :tries, ended_at = :now
		WHERE host = :host AND guid = :guid AND ended_at IS NULL`)
	replay = db.S(`UPDATE host_deliveries SET state = 'stored', tries = 0, ended_at = NULL, error = NULL
		WHERE host = $1 AND guid = $2 AND ended_at IS NOT NULL AND body IS NOT NULL`)
	forget = db.S(`DELETE FROM host_deliveries WHERE received_at < $1`)
	told   = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM host_deliveries WHERE host = $1 AND received_at >= $2
		AND (kind LIKE 'installation%' OR kind = 'repository'))`)

	watch = db.S(`INSERT INTO repo_sweeps (repo_id, marks, due_at) VALUES ($1, '{}', $2)
		ON CONFLICT (repo_id) DO UPDATE SET due_at = excluded.due_at`)
	anySweep   = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM repo_sweeps WHERE due_at <= $1)`)
	takeSweeps = db.Q[sweepRow](`UPDATE repo_sweeps SET due_at = $2
		WHERE repo_id IN (SELECT repo_id FROM repo_sweeps WHERE due_at <= $1 ORDER BY due_at LIMIT $3) AND due_at <= $1
		RETURNING repo_id, marks`)
	setMarks = db.S(`UPDATE repo_sweeps SET marks = $2 WHERE repo_id = $1`)
	pullOut  = db.S(`UPDATE repo_sweeps SET due_at = $1 WHERE due_at > $2`)

	redeliverFree = db.Q[bool](`SELECT NOT EXISTS (SELECT 1 FROM host_redeliveries WHERE host = $1 AND due_at > $2)`)
	takeRedeliver = db.S(`INSERT INTO host_redeliveries (host, due_at) VALUES ($1, $3)
		ON CONFLICT (host) DO UPDATE SET due_at = excluded.due_at WHERE host_redeliveries.due_at <= $2`)
	pullRedeliver = db.S(`UPDATE host_redeliveries SET due_at = $1 WHERE due_at > $2`)
)

// noteArgs are the parameters of note.
type noteArgs struct {
	Host  string
	GUID  string `db:"guid"`
	Tries int64
	Error string
}

// endArgs are the parameters of end.
type endArgs struct {
	Host       string
	GUID       string `db:"guid"`
	Tries, Now int64
	State      string
	Error      *string
}

// Told is what hosts have told.
type Told struct{}

// Since tells whether a host has told, at a time or later, of installations, of what
// repositories they have, or of how a repository is, applied or not yet.
func (Told) Since(tx *db.Tx, host string, at time.Time) (bool, error) {
	return told.One(tx, host, at)
}

// ClockSetBack makes due what would wait for longer than is ever asked. The queue looks after
// its own.
func ClockSetBack(tx *db.Tx) error {
	for _, w := range []struct {
		most time.Duration
		db.Stmt
	}{{swept, pullOut}, {redeliverEvery, pullRedeliver}} {
		if _, err := w.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(w.most))); err != nil {
			return err
		}
	}
	return nil
}

var byGUID = db.Q[struct {
	Host string
	GUID string `db:"guid"`
	Kind string
}](`SELECT host, guid, kind FROM host_deliveries WHERE guid = $1 ORDER BY host LIMIT 1`)

// list reads a page, newest first.
func list(tx *db.Tx, p op.PageIn) ([]Shown, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT guid, host, kind, bytes, state, tries, error, received_at, ended_at FROM host_deliveries WHERE received_at > `, 0)
	if state := p.Want("state"); state != "" {
		b.Is("state", state)
	}
	if more {
		b.And("(received_at, guid) < ", db.Tuple(at, last))
	}
	return db.Select[Shown](tx, b.SQL(" ORDER BY received_at DESC, guid DESC LIMIT ", p.Size()))
}
