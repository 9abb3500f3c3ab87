package blocker

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/seal/keys"
)

// row is a blocker.
type row struct {
	ID        string
	RepoID    string
	TaskID    string
	RunID     string
	Kind      string
	Question  string
	State     string
	Answer    *string
	ClosedAt  *time.Time
	ClosedBy  *string
	CreatedAt time.Time
}

// fieldRow is a field of a form.
type fieldRow struct {
	BlockerID   string
	Name        string
	Kind        string
	Environment string
	Description string
	LandedAt    *time.Time
	URL         *string `db:"url"` // of an MCP server
	Transport   *string
}

const (
	columns      = `id, repo_id, task_id, run_id, kind, question, state, answer, closed_at, closed_by, created_at`
	fieldColumns = `f.blocker_id, f.name, f.kind, f.environment, f.description, f.landed_at, f.url, f.transport`
)

var (
	insertBlocker = db.SWith[insertBlockerArgs](`INSERT INTO blockers (id, account_id, repo_id, task_id, run_id, declared, kind, question,
		state, created_at)
		VALUES (:id, :account_id, :repo_id, :task_id, :run_id, :declared, :kind, :question, 'open', :created_at)
		ON CONFLICT (run_id, declared) DO NOTHING`)
	insertField = db.SWith[insertFieldArgs](`INSERT INTO blocker_fields (blocker_id, name, position, kind, environment, description)
		VALUES (:blocker_id, :name, :position, :kind, :environment, :description)`)

	byID       = db.Q[row](`SELECT ` + columns + ` FROM blockers WHERE account_id = $1 AND id = $2`)
	openOfTask = db.Q[string](`SELECT id FROM blockers WHERE account_id = $1 AND task_id = $2 AND state = 'open' ORDER BY id`)
	openOfRun  = db.Q[string](`SELECT id FROM blockers WHERE account_id = $1 AND task_id = $2 AND run_id = $3 AND state = 'open'
		ORDER BY id`)
	// openOfOthers reads the open blockers of other runs of the task, oldest first.
	openOfOthers = db.Q[row](`SELECT ` + columns + ` FROM blockers WHERE account_id = $1 AND task_id = $2 AND run_id <> $3
		AND state = 'open' ORDER BY created_at, id`)
	// assignedTo reads the closed blockers of earlier runs that assign gave to a run and
	// for which the run has not asked since, newest first.
	assignedTo = db.Q[row](`SELECT ` + columns + ` FROM blockers WHERE account_id = $1 AND task_id = $2 AND run_id = $3 AND declared = id
		AND state IN ('answered', 'submitted', 'withdrawn') ORDER BY closed_at DESC, id DESC`)
	isDeclared   = db.Q[int64](`SELECT COUNT(*) FROM blockers WHERE run_id = $1 AND declared = $2`)
	adoptBlocker = db.SWith[adoptBlockerArgs](`UPDATE blockers SET run_id = :run_id, declared = :declared
		WHERE account_id = :account_id AND id = :id`)
	answeredOf = db.Q[row](`SELECT ` + columns + ` FROM blockers WHERE account_id = $1 AND task_id = $2
		AND state IN ('answered', 'submitted') AND $3 IN ('', run_id) ORDER BY closed_at, id`)
	listOpen = db.QWith[listOpenArgs, row](`SELECT ` + columns + ` FROM blockers
		WHERE account_id = :account_id AND state = 'open' AND (created_at, id) > (:created_at, :id) ORDER BY created_at,
		id LIMIT :limit`)
	listAll = db.QWith[listAllArgs, row](`SELECT ` + columns + ` FROM blockers
		WHERE account_id = :account_id AND (created_at, id) < (:created_at, :id) ORDER BY created_at DESC, id DESC LIMIT :limit`)
	listInState = db.QWith[listInStateArgs, row](`SELECT ` + columns + ` FROM blockers
		WHERE account_id = :account_id AND state = :state AND (created_at, id) < (:created_at, :id)
		ORDER BY created_at DESC, id DESC LIMIT :limit`)

	fieldsOf = db.Q[fieldRow](`SELECT ` + fieldColumns + ` FROM blocker_fields f JOIN blockers b ON b.id = f.blocker_id
		WHERE b.account_id = $1 AND f.blocker_id = $2 ORDER BY f.position`)
	fillField = db.SWith[fillFieldArgs](`UPDATE blocker_fields SET landed_at = :landed_at, landed_by = :landed_by
		WHERE blocker_id = :blocker_id AND name = :name AND landed_at IS NULL`)
	setServer = db.SWith[setServerArgs](`UPDATE blocker_fields SET url = :url, transport = :transport
		WHERE blocker_id = :blocker_id AND name = :name`)
	closeBlocker = db.SWith[closeBlockerArgs](`UPDATE blockers SET state = :state, answer = :answer, closed_at = :closed_at,
		closed_by = :closed_by WHERE account_id = :account_id AND id = :id AND state = 'open'`)
)

// setServerArgs are the parameters of setServer.
type setServerArgs struct {
	BlockerID, Name string
	URL, Transport  *string
}

// closeBlockerArgs are the parameters of closeBlocker.
type closeBlockerArgs struct {
	AccountID, ID, State string
	Answer               *string
	ClosedAt             time.Time
	ClosedBy             string
}

// fillFieldArgs are the parameters of fillField.
type fillFieldArgs struct {
	BlockerID, Name string
	LandedAt        time.Time
	LandedBy        string
}

// listInStateArgs are the parameters of listInState.
type listInStateArgs struct {
	listAllArgs
	State string
}

// listAllArgs are the parameters of listAll.
type listAllArgs struct {
	AccountID string
	CreatedAt int64
	ID        string
	Limit     int
}

// listOpenArgs are the parameters of listOpen.
type listOpenArgs struct {
	AccountID string
	CreatedAt int64
	ID        string
	Limit     int
}

// adoptBlockerArgs are the parameters of adoptBlocker.
type adoptBlockerArgs struct {
	AccountID, ID, RunID, Declared string
}

// insertFieldArgs are the parameters of insertField.
type insertFieldArgs struct {
	BlockerID, Name                string
	Position                       int
	Kind, Environment, Description string
}

// insertBlockerArgs are the parameters of insertBlocker.
type insertBlockerArgs struct {
	ID, AccountID, RepoID, TaskID, RunID, Declared, Kind, Question string
	CreatedAt                                                      time.Time
}

// Want is an open blocker in the form that its task shows.
type Want struct {
	TaskID string
	ID     string
	Form   bool // a field can be filled in
	Parked bool // the run that asked is parked
	Since  time.Time
}

// Wants lists the open blockers of tasks of tx.Account, oldest first.
func Wants(tx *db.Tx, taskIDs []string) ([]Want, error) {
	return db.Select[Want](tx, db.Build(`SELECT b.task_id, b.id,
			EXISTS (SELECT 1 FROM blocker_fields f
				WHERE f.blocker_id = b.id AND f.landed_at IS NULL AND f.kind <> 'oauth_connection') AS form,
			EXISTS (SELECT 1 FROM runs r WHERE r.id = b.run_id AND r.state = 'parked') AS parked, b.created_at AS since
		FROM blockers b WHERE b.account_id = `, tx.Account).And("b.state = 'open'").In("b.task_id", taskIDs).
		SQL(" ORDER BY b.created_at, b.id"))
}

// parked finds few rows: an account has as many runs as it has seats.
var parked = db.Q[string](`SELECT DISTINCT b.task_id FROM blockers b JOIN runs r ON r.id = b.run_id AND r.state = 'parked'
	WHERE b.account_id = $1 AND b.state = 'open' ORDER BY b.task_id`)

// Parked lists the tasks of tx.Account whose runs are parked behind an open blocker.
func Parked(tx *db.Tx) ([]string, error) { return parked.All(tx, tx.Account) }

// named lists at most limit blockers, newest first, whose ids begin or end with a part, in
// a state if that is not empty.
func named(tx *db.Tx, part, state string, limit int) ([]row, error) {
	ids, err := db.IDs(tx, `SELECT id FROM blockers WHERE account_id`, part)
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+columns+` FROM blockers WHERE account_id = `, tx.Account).In("id", ids).Few()
	if state != "" {
		b.Is("state", state)
	}
	return db.Select[row](tx, b.Newest("created_at", "id", limit))
}

// Streamed is a Blocker as a stream tells it, which is one row for all who follow. The
// link that only some of them get is not null there but left out, so that a client keeps
// the one it was answered.
type Streamed struct {
	Blocker
	FixURL *string `json:"fix_url,omitempty"`
}

// Rows lists at most limit blockers of tx.Account, newest first: those with the ids, or
// all for nil.
func (s *Service) Rows(tx *db.Tx, ids []string, limit int) ([]Streamed, error) {
	b := db.Build(`SELECT `+columns+` FROM blockers WHERE account_id = `, tx.Account)
	if ids != nil {
		b.In("id", ids).Few()
	}
	rows, err := db.Select[row](tx, b.Newest("created_at", "id", limit))
	out := make([]Streamed, len(rows))
	for i := range rows {
		if err == nil {
			out[i].Blocker, err = s.wire(tx, &rows[i])
		}
	}
	return out, err
}

// Sealed is the column of the sealed answers.
var Sealed = keys.Column{
	Table: "blockers", Name: "answer",
	Count: db.Q[keys.Held](keys.Tally + `(SELECT answer AS sealed FROM blockers WHERE answer IS NOT NULL) AS answers GROUP BY 1`),
	List: keys.Listing(db.Q[keys.Row](`SELECT id AS key, account_id AS account, answer AS sealed FROM blockers
		WHERE id > $1 AND answer IS NOT NULL ORDER BY id LIMIT $2`)),
	Put:     keys.Replacing(db.S(`UPDATE blockers SET answer = $3 WHERE id = $1 AND answer = $2`)),
	Purpose: func(r keys.Row) string { return answerPurpose(r.Account, r.Key) },
}

// Brief is what people are told of a blocker.
type Brief struct{ TaskID, RepoID, Kind, State, Question string }

var briefOf = db.Q[Brief](`SELECT task_id, repo_id, kind, state, question FROM blockers WHERE account_id = $1 AND id = $2`)

// BriefOf reads a blocker of tx.Account.
func BriefOf(tx *db.Tx, blockerID string) (Brief, bool, error) {
	return briefOf.Maybe(tx, tx.Account, blockerID)
}

var newestIn = db.Q[string](`SELECT id FROM blockers WHERE account_id = $1 AND repo_id = $2 ORDER BY created_at DESC, id DESC LIMIT $3`)

// NewestIn lists the ids of the newest blockers of a repository of tx.Account, newest first
// and at most limit.
func NewestIn(tx *db.Tx, repoID string, limit int) ([]string, error) {
	return newestIn.All(tx, tx.Account, repoID, limit)
}
