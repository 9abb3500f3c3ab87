package intent

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
)

// row is an intent. Error is that of its last try.
type row struct {
	ID        string
	AccountID string
	RepoID    string
	Object    string
	Kind      string
	Args      string
	Error     string
	Rank      int64
	CreatedAt time.Time
}

// insertArgs are the parameters of insert.
type insertArgs struct {
	ID, AccountID, RepoID, Object, Kind, Args string
	Rank, Now                                 int64
}

var (
	insert = db.SWith[insertArgs](`INSERT INTO host_intents (id, account_id, repo_id, object, kind, args, rank, state, created_at)
		VALUES (:id, :account_id, :repo_id, :object, :kind, :args, :rank, 'due', :now)`)
	// replace drops the intents that a newer one makes useless. One that has failed before
	// goes on: the host may have done it.
	replace = db.SWith[replaceArgs](`UPDATE host_intents SET state = 'dropped', ended_at = :now
		WHERE repo_id = :repo_id AND object = :object AND kind = :kind AND ended_at IS NULL AND tries = 0`)
	drop = db.S(`UPDATE host_intents SET state = 'dropped', ended_at = $3
		WHERE repo_id = $1 AND object = $2 AND ended_at IS NULL`)
	forget = db.S(`DELETE FROM host_intents WHERE ended_at < $1`)

	head = db.Q[row](`SELECT id, account_id, repo_id, object, kind, args, COALESCE(error, '') AS error, rank, created_at
		FROM host_intents WHERE repo_id = $1 AND object = $2 AND ended_at IS NULL ORDER BY id LIMIT 1`)
	openLines = db.Q[due.Open](`SELECT DISTINCT repo_id || '/' || object AS key, account_id AS account FROM host_intents
		WHERE ended_at IS NULL LIMIT $1`)
	// What comes of an intent is written over a drop that came while a node carried it out.
	again = db.SWith[againArgs](`UPDATE host_intents SET state = 'due', ended_at = NULL, tries = :tries,
		limited_until = :limited_until, error = :error WHERE id = :id AND (ended_at IS NULL OR state = 'dropped')`)
	end = db.SWith[endArgs](`UPDATE host_intents SET state = :state, error = :error, ended_at = :now
		WHERE id = :id AND (ended_at IS NULL OR state = 'dropped')`)

	// unended is when the oldest intent of a kind on an object was put that has not ended.
	unended = db.QWith[unendedArgs, time.Time](`SELECT created_at FROM host_intents WHERE repo_id = :repo_id AND object = :object
		AND kind = :kind AND ended_at IS NULL ORDER BY id LIMIT 1`)
	// unlimited are the objects of a repository of which nothing waits for a limit of the host.
	unlimited = db.Q[string](`SELECT object FROM host_intents WHERE repo_id = $1 AND ended_at IS NULL
		GROUP BY object HAVING COUNT(limited_until) = 0 ORDER BY object`)
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
	Tries        int64
	LimitedUntil *int64
	Error        string
}

// endArgs are the parameters of end.
type endArgs struct {
	ID    string
	Now   int64
	State string
	Error *string
}

// Limited answers what waits on objects of tx.Account for a limit of their host to end, by
// object: of several intents the one that was put first.
func Limited(tx *db.Tx, objects []string) (map[string]Wait, error) {
	out := map[string]Wait{}
	if len(objects) == 0 {
		return out, nil
	}
	b := db.Build(`SELECT object, created_at AS since, limited_until AS until FROM host_intents
		WHERE limited_until IS NOT NULL AND ended_at IS NULL AND account_id = `, tx.Account)
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
