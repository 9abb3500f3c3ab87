package inquiry

import (
	"time"

	"yardmaster/internal/citation"
	"yardmaster/internal/db"
)

// row is an answer that is kept.
type row struct {
	ID, AccountID, RepoID, Asker, Question string
	Answer                                 db.JSON[Answer]
	Marks                                  db.JSON[[]*citation.Mark]
	AskedAt                                time.Time
}

const columns = `id, account_id, repo_id, asker, question, answer, marks, asked_at`

var (
	insert = db.SWith[row](`INSERT INTO answers (` + columns + `)
		VALUES (:id, :account_id, :repo_id, :asker, :question, :answer, :marks, :asked_at)`)
	forget = db.S(`DELETE FROM answers WHERE repo_id = $1 AND asker = $2 AND id NOT IN (
		SELECT id FROM answers WHERE repo_id = $1 AND asker = $2 ORDER BY id DESC LIMIT 50)`)
)

// kept are the answers about a repository for who asked, newest first, behind one.
func kept(tx *db.Tx, repoID, asker string, after []string, limit int) ([]row, error) {
	b := db.Build(`SELECT `+columns+` FROM answers WHERE repo_id = `, repoID)
	b.And("asker = ", asker)
	if len(after) == 1 {
		b.And("id < ", after[0])
	}
	return db.Select[row](tx, b.SQL(" ORDER BY id DESC LIMIT ", limit))
}
