package command

import (
	"time"

	"yardmaster/internal/db"
)

type row struct {
	ID         string
	AccountID  string
	RepoID     string
	PRID       string `db:"pr_id"`
	CommentKey string
	Place      string
	Login      string
	Verb       string
	Body       string
	State      string
	Answer     string
	CreatedAt  time.Time
}

type answersArgs struct {
	AccountID string
	PRID      string `db:"pr_id"`
	Place     string
	Since     time.Time
}

var (
	seen   = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM host_commands WHERE repo_id = $1 AND comment_key = $2)`)
	insert = db.SWith[row](`INSERT INTO host_commands (id, account_id, repo_id, pr_id, comment_key, place, login, verb, body, state, answer,
		created_at)
		VALUES (:id, :account_id, :repo_id, :pr_id, :comment_key, :place, :login, :verb, :body, :state, :answer, :created_at)
		ON CONFLICT DO NOTHING`)
	// answers counts what was said in a thread, and the commands that were not heard since.
	answers = db.QWith[answersArgs, struct{ Answers, Silenced int64 }](`SELECT COALESCE(SUM(CASE WHEN answer <> '' THEN 1 ELSE 0 END), 0)
		AS answers, COALESCE(SUM(CASE WHEN state = 'silenced' THEN 1 ELSE 0 END), 0) AS silenced
		FROM host_commands WHERE account_id = :account_id AND pr_id = :pr_id AND place = :place AND created_at > :since`)
)
