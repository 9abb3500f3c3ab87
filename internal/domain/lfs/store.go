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

// begunRow is a repository to be.
type begunRow struct{ ID, AccountID string }

// begunArgs are the parameters of insertBegun.
type begunArgs struct {
	begunRow
	Owner, Name string
	BegunAt     time.Time
}

const columns = `id, account_id, repo_id, oid, size`

var (
	insertUpload = db.SWith[insertArgs](`INSERT INTO lfs_objects (id, account_id, repo_id, oid, size, begun_at, told_at)
		VALUES (:id, :account_id, :repo_id, :oid, :size, :begun_at, :begun_at)`)
	storedRow    = db.S(`UPDATE lfs_objects SET stored_at = $2 WHERE id = $1 AND stored_at IS NULL`)
	deleteUpload = db.S(`DELETE FROM lfs_objects WHERE id = $1 AND stored_at IS NULL`)
	byOID        = db.Q[row](`SELECT ` + columns + ` FROM lfs_objects WHERE repo_id = $1 AND oid = $2 AND stored_at IS NOT NULL`)
	allStored    = db.Q[row](`SELECT ` + columns + ` FROM lfs_objects WHERE stored_at IS NOT NULL ORDER BY id`)
	toldRow      = db.S(`UPDATE lfs_objects SET told_at = $2 WHERE id = $1 AND stored_at IS NOT NULL`)
	// giveUp makes an object an upload that was given up, unless somebody was told of it meanwhile.
	giveUp   = db.S(`UPDATE lfs_objects SET stored_at = NULL WHERE id = $1 AND stored_at < $2 AND told_at < $2`)
	underway = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM lfs_objects WHERE repo_id = $1 AND stored_at IS NULL AND begun_at >= $2)`)
	settled  = db.Q[row](`SELECT ` + columns + ` FROM lfs_objects WHERE repo_id = $1 AND stored_at < $2 AND told_at < $2 AND id > $3
		ORDER BY id LIMIT 5000`)
	unfinished = db.Q[row](`SELECT ` + columns + ` FROM lfs_objects WHERE stored_at IS NULL AND begun_at < $1 ORDER BY begun_at LIMIT $2`)
)

var (
	insertBegun = db.SWith[begunArgs](`INSERT INTO lfs_begun (id, account_id, owner, name, begun_at)
		VALUES (:id, :account_id, :owner, :name, :begun_at)
		ON CONFLICT (owner, name) DO NOTHING`)
	begunAt   = db.Q[begunRow](`SELECT id, account_id FROM lfs_begun WHERE owner = $1 AND name = $2`)
	takeBegun = db.Q[string](`DELETE FROM lfs_begun WHERE account_id = $1 AND owner = $2 AND name = $3 RETURNING id`)
	// homeless are objects of repositories that were never made.
	homeless = db.Q[row](`SELECT ` + columns + ` FROM lfs_objects WHERE stored_at < $1 AND told_at < $1
		AND repo_id IN (SELECT id FROM lfs_begun WHERE begun_at < $1) ORDER BY id LIMIT 100`)
	forget = db.S(`DELETE FROM lfs_begun WHERE begun_at < $1
		AND NOT EXISTS (SELECT 1 FROM lfs_objects WHERE lfs_objects.repo_id = lfs_begun.id)`)
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
