package lfs

import (
	"time"

	"yardmaster/internal/db"
)

// row is an object, or an upload under way.
type row struct {
	ID, AccountID, RepoID, OID string
	Size                       int64
}

// key is where the bytes are in the store of objects. No two uploads share one.
func (r row) key() string { return r.AccountID + "/lfs/" + r.RepoID + "/" + r.ID }

// insertArgs are the parameters of insertUpload.
type insertArgs struct {
	row
	BegunAt time.Time
}

const columns = `id, account_id, repo_id, oid, size`

var (
	insertUpload = db.SWith[insertArgs](`INSERT INTO lfs_objects (id, account_id, repo_id, oid, size, begun_at)
		VALUES (:id, :account_id, :repo_id, :oid, :size, :begun_at)`)
	storedRow    = db.S(`UPDATE lfs_objects SET stored_at = $2 WHERE id = $1 AND stored_at IS NULL`)
	deleteUpload = db.S(`DELETE FROM lfs_objects WHERE id = $1 AND stored_at IS NULL`)
	byOID        = db.Q[row](`SELECT ` + columns + ` FROM lfs_objects WHERE repo_id = $1 AND oid = $2 AND stored_at IS NOT NULL`)
	allStored    = db.Q[row](`SELECT ` + columns + ` FROM lfs_objects WHERE stored_at IS NOT NULL ORDER BY id`)
	unfinished   = db.Q[row](`SELECT ` + columns + ` FROM lfs_objects WHERE stored_at IS NULL AND begun_at < $1 ORDER BY begun_at LIMIT $2`)
)

// storedOf are the objects of a repository among some, by their names.
func storedOf(tx *db.Tx, repoID string, oids []string) (map[string]row, error) {
	rows, err := db.Select[row](tx, db.Build(`SELECT `+columns+` FROM lfs_objects WHERE stored_at IS NOT NULL AND repo_id = `, repoID).
		In("oid", oids))
	out := make(map[string]row, len(rows))
	for _, r := range rows {
		out[r.OID] = r
	}
	return out, err
}
