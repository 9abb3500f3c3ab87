package talk

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

type threadRow struct {
	ID          string
	AccountID   string
	RepoID      string
	PRID        string `db:"pr_id"`
	RequestID   *string
	HeadSHA     string `db:"head_sha"`
	Path        string // "": it is about the whole
	Side        string
	Line        int
	Comments    int64
	Size        int64  // bytes of the comments
	HostThread  string // that it answers at its code host; ""
	HostComment string // what its code host calls the first comment; ""
	AtHost      bool   // its code host shows it
	ResolvedAt  *time.Time
	ResolvedBy  *string
	ResolvedSHA *string `db:"resolved_sha"`
	CreatedAt   time.Time
}

type commentRow struct {
	ID        string
	AccountID string
	ThreadID  string
	Author    string // label
	Body      string
	CreatedAt time.Time
}

const threadColumns = `id, account_id, repo_id, pr_id, request_id, head_sha, path, side, line, comments, size, host_thread, host_comment, at_host,
	resolved_at, resolved_by, resolved_sha, created_at FROM pull_threads WHERE account_id = `

const commentColumns = `id, account_id, thread_id, author, body, created_at FROM pull_comments WHERE account_id = `

var (
	insertThread = db.SWith[threadRow](`INSERT INTO pull_threads (id, account_id, repo_id, pr_id, request_id, head_sha, path, side, line,
		host_thread, created_at)
		VALUES (:id, :account_id, :repo_id, :pr_id, :request_id, :head_sha, :path, :side, :line, :host_thread, :created_at)`)
	insertComment = db.SWith[commentRow](`INSERT INTO pull_comments (id, account_id, thread_id, author, body, created_at)
		VALUES (:id, :account_id, :thread_id, :author, :body, :created_at)`)
	grow     = db.S(`UPDATE pull_threads SET comments = comments + 1, size = size + $2 WHERE id = $1`)
	threadOf = db.Q[threadRow](`SELECT ` + threadColumns + `$1 AND pr_id = $2 AND id = $3`)
	// ofRequest are the threads of a request, in the order in which they were given.
	ofRequest = db.Q[threadRow](`SELECT ` + threadColumns + `$1 AND request_id = $2 ORDER BY id`)
	// newest are the threads that a code host shows, or is to show.
	newest    = db.Q[threadRow](`SELECT ` + threadColumns + `$1 AND pr_id = $2 ORDER BY id DESC LIMIT 500`)
	setAtHost = db.S(`UPDATE pull_threads SET at_host = TRUE, host_comment = $3 WHERE account_id = $1 AND id = $2`)
	setEnd    = db.SWith[endArgs](`UPDATE pull_threads SET resolved_at = :at, resolved_by = :by, resolved_sha = NULL
		WHERE account_id = :account_id AND id = :id`)
	// answer resolves the threads of a request by a head.
	answer = db.SWith[answerArgs](`UPDATE pull_threads SET resolved_at = :at, resolved_sha = :sha
		WHERE account_id = :account_id AND request_id = :request_id AND resolved_at IS NULL`)
	// speakers are the people in the conversation about a pull request.
	speakers = db.Q[string](`SELECT DISTINCT c.author FROM pull_threads t JOIN pull_comments c ON c.thread_id = t.id
		WHERE t.account_id = $1 AND t.pr_id = $2`)
	bodyOf = db.Q[commentRow](`SELECT ` + commentColumns + `$1 AND id = $2`)
)

// endArgs are the parameters of setEnd.
type endArgs struct {
	AccountID, ID string
	At            *time.Time
	By            *string
}

// answerArgs are the parameters of answer.
type answerArgs struct {
	AccountID, RequestID string
	SHA                  string `db:"sha"`
	At                   time.Time
}

// threads lists the threads of a pull request, newest first.
func threads(tx *db.Tx, prID string, p op.PageIn) ([]threadRow, error) {
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	b := db.Build(`SELECT `+threadColumns, tx.Account).And("pr_id = ", prID).Few()
	switch p.Want("state") {
	case Open:
		b.And("resolved_at IS NULL")
	case Resolved:
		b.And("resolved_at IS NOT NULL")
	}
	if more {
		b.OlderThan("created_at", "id", at, last)
	}
	return db.Select[threadRow](tx, b.Newest("created_at", "id", p.Size()))
}

// commentsOf reads the comments of threads, by thread and oldest first.
func commentsOf(tx *db.Tx, rows []threadRow) (map[string][]commentRow, error) {
	out := map[string][]commentRow{}
	if len(rows) == 0 {
		return out, nil
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	b := db.Build(`SELECT `+commentColumns, tx.Account).In("thread_id", ids).SQL(" ORDER BY created_at, id")
	all, err := db.Select[commentRow](tx, b)
	for _, c := range all {
		out[c.ThreadID] = append(out[c.ThreadID], c)
	}
	return out, err
}
