package intent

import (
	"time"

	"yardmaster/internal/db"
)

type row struct {
	ID        string
	AccountID string
	RepoID    string
	Object    string
	Kind      string
	Args      string
	Rank      int64
	Tries     int64
	DueAt     int64
	CreatedAt time.Time
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, RepoID, Object, Kind, Args string
	Rank, Now                                 int64
}

var (
	insert = db.SWith[insertArgs](`INSERT INTO host_intents (id, account_id, repo_id, object, kind, args, rank, state, due_at, created_at)
		VALUES (:id, :account_id, :repo_id, :object, :kind, :args, :rank, 'due', :now, :now)`)
	// replace drops the intents that a newer one makes useless. One that has begun
	// goes on.
	replace = db.SWith[replaceArgs](`UPDATE host_intents SET state = 'dropped', ended_at = :now
		WHERE repo_id = :repo_id AND object = :object AND kind = :kind AND state = 'due' AND tries = 0`)
	anyDue = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM host_intents WHERE ended_at IS NULL AND due_at <= $1)`)
	// take answers the oldest intent of each line, if it is due, and keeps it from other
	// nodes until $2.
	take = db.Q[row](`UPDATE host_intents SET state = 'doing', due_at = $2, tries = tries + 1
		WHERE id IN (SELECT i.id FROM host_intents i WHERE i.ended_at IS NULL AND i.due_at <= $1
			AND NOT EXISTS (SELECT 1 FROM host_intents e WHERE e.repo_id = i.repo_id AND e.object = i.object
				AND e.ended_at IS NULL AND e.id < i.id)
			ORDER BY i.rank, i.id LIMIT $3)
			AND due_at <= $1 AND ended_at IS NULL
		RETURNING id, account_id, repo_id, object, kind, args, rank, tries, due_at, created_at`)
	// The statements below change nothing if another node has taken the intent meanwhile.
	again = db.SWith[againArgs](`UPDATE host_intents SET state = 'due', due_at = :due_at, limited = :limited, error = :error
		WHERE id = :id AND tries = :tries AND ended_at IS NULL`)
	end = db.SWith[endArgs](`UPDATE host_intents SET state = :state, error = :error, ended_at = :now
		WHERE id = :id AND tries = :tries AND ended_at IS NULL`)
	drop = db.S(`UPDATE host_intents SET state = 'dropped', ended_at = $3
		WHERE repo_id = $1 AND object = $2 AND ended_at IS NULL AND state = 'due'`)
	forget = db.S(`DELETE FROM host_intents WHERE ended_at < $1`)
	// unended is when the oldest intent of a kind on an object was put that has not ended.
	unended = db.QWith[unendedArgs, time.Time](`SELECT created_at FROM host_intents WHERE repo_id = :repo_id AND object = :object
		AND kind = :kind AND ended_at IS NULL ORDER BY id LIMIT 1`)
	waiting = db.Q[Wait](`SELECT kind, limited, due_at, created_at, COALESCE(error, '') AS error FROM host_intents
		WHERE repo_id = $1 AND object = $2 AND ended_at IS NULL ORDER BY id LIMIT 1`)
	release = db.S(`UPDATE host_intents SET state = 'due', due_at = $1 WHERE state = 'doing'`)
	pullIn  = db.S(`UPDATE host_intents SET due_at = $1 WHERE ended_at IS NULL AND due_at > $2`)
)

// unendedArgs are the parameters of unended.
type unendedArgs struct{ RepoID, Object, Kind string }

// replaceArgs are the parameters of replace.
type replaceArgs struct {
	RepoID, Object, Kind string
	Now                  int64
}

// againArgs are the parameters of again.
type againArgs struct {
	ID           string
	Tries, DueAt int64
	Limited      bool
	Error        string
}

// endArgs are the parameters of end.
type endArgs struct {
	ID         string
	Tries, Now int64
	State      string
	Error      *string
}

// Wait is the intent at the head of a line.
type Wait struct {
	Kind      string
	Limited   bool // it waits for a limit of the host to end
	DueAt     time.Time
	CreatedAt time.Time
	Error     string // of the last try; empty: there was none
}

// Waiting answers the intent that is carried out next on an object of a repository;
// false if there is none.
func Waiting(tx *db.Tx, repoID, object string) (Wait, bool, error) {
	return waiting.Maybe(tx, repoID, object)
}

// Limited answers what waits on objects of tx.Account for a limit of their host to end, by
// object: of several intents the one that was put first.
func Limited(tx *db.Tx, objects []string) (map[string]Wait, error) {
	out := map[string]Wait{}
	if len(objects) == 0 {
		return out, nil
	}
	b := db.Build(`SELECT object, kind, limited, due_at, created_at, COALESCE(error, '') AS error FROM host_intents
		WHERE limited AND ended_at IS NULL AND account_id = `, tx.Account)
	rows, err := db.Select[limitedRow](tx, b.In("object", objects).SQL(" ORDER BY id"))
	for _, w := range rows {
		if _, known := out[w.Object]; !known {
			out[w.Object] = w.Wait
		}
	}
	return out, err
}

// limitedRow is a Wait with its object.
type limitedRow struct {
	Object string
	Wait
}

// Drop ends the intents on an object that have not begun.
func Drop(tx *db.Tx, repoID, object string) error {
	_, err := drop.Exec(tx, repoID, object, tx.Micros())
	return err
}

// Restarted takes the intents from a node that has died, while no other node runs.
func Restarted(tx *db.Tx) error {
	_, err := release.Exec(tx, tx.Micros())
	return err
}

// ClockSetBack makes those intents due that would wait for longer than is ever asked.
func ClockSetBack(tx *db.Tx) error {
	_, err := pullIn.Exec(tx, tx.Micros(), db.Micros(tx.Now.Add(max(longest, hold))))
	return err
}
