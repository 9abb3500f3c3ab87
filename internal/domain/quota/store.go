package quota

import (
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
)

// quotaRow is what operators have set; nil: nothing.
type quotaRow struct {
	GitBytes, ObjectBytes, RecordBytes, Records, Repos, Tokens, PersonTokens, Boxes, WritesPerMinute *int64
}

// stateRow is what an account may have and has.
type stateRow struct {
	Tier        people.Tier
	GitMost     *int64
	ObjectMost  *int64
	RecordMost  *int64
	RecordsMost *int64
	ReposMost   *int64
	TokensMost  *int64
	PersonMost  *int64
	BoxesMost   *int64
	WritesMost  *int64
	GitBytes    int64
	ObjectBytes int64
	RecordBytes int64
	Records     int64
	Repos       int64
	Tokens      int64
	Boxes       int64
	Told        db.JSON[[]string]
	MeasuredAt  *time.Time
}

// saveArgs are the parameters of saveQuota.
type saveArgs struct {
	AccountID string
	quotaRow
}

// sizeArgs are the parameters of saveSize.
type sizeArgs struct {
	RepoID, AccountID string
	Bytes             int64
	MeasuredAt        time.Time
}

type repoRow struct{ ID, AccountID, Owner, Name string }

var (
	stateOf = db.Q[stateRow](`SELECT a.tier, q.git_bytes AS git_most, q.object_bytes AS object_most, q.record_bytes AS record_most,
		q.records AS records_most, q.repos AS repos_most, q.tokens AS tokens_most, q.person_tokens AS person_most,
		q.boxes AS boxes_most, q.writes_per_minute AS writes_most,
		(SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM repo_sizes WHERE account_id = a.id) AS git_bytes,
		COALESCE(m.object_bytes, 0) AS object_bytes, COALESCE(m.record_bytes + m.received, 0) AS record_bytes,
		COALESCE(m.records, 0) AS records,
		(SELECT COUNT(*) FROM repos WHERE account_id = a.id AND host = $2) AS repos,
		(SELECT COUNT(*) FROM tokens WHERE account_id = a.id AND kind = 'pat' AND revoked_at IS NULL
			AND (expires_at IS NULL OR expires_at > $3)) AS tokens,
		(SELECT COUNT(*) FROM boxes WHERE account_id = a.id AND state <> 'revoked') AS boxes,
		COALESCE(m.told, '[]') AS told, m.measured_at
		FROM accounts a LEFT JOIN account_quotas q ON q.account_id = a.id LEFT JOIN account_measures m ON m.account_id = a.id
		WHERE a.id = $1`)
	personTokens = db.Q[int64](`SELECT COUNT(*) FROM tokens WHERE account_id = $1 AND user_id = $2 AND kind = 'pat' AND revoked_at IS NULL
		AND (expires_at IS NULL OR expires_at > $3)`)
	quotaOf = db.Q[quotaRow](`SELECT git_bytes, object_bytes, record_bytes, records, repos, tokens, person_tokens, boxes, writes_per_minute
		FROM account_quotas WHERE account_id = $1`)
	saveQuota = db.SWith[saveArgs](`INSERT INTO account_quotas (account_id, git_bytes, object_bytes, record_bytes, records, repos, tokens,
		person_tokens, boxes, writes_per_minute)
		VALUES (:account_id, :git_bytes, :object_bytes, :record_bytes, :records, :repos, :tokens, :person_tokens, :boxes, :writes_per_minute)
		ON CONFLICT (account_id) DO UPDATE SET git_bytes = excluded.git_bytes, object_bytes = excluded.object_bytes,
		record_bytes = excluded.record_bytes, records = excluded.records, repos = excluded.repos, tokens = excluded.tokens,
		person_tokens = excluded.person_tokens, boxes = excluded.boxes, writes_per_minute = excluded.writes_per_minute`)
	saveSize = db.SWith[sizeArgs](`INSERT INTO repo_sizes (repo_id, account_id, bytes, measured_at)
		VALUES (:repo_id, :account_id, :bytes, :measured_at)
		ON CONFLICT (repo_id) DO UPDATE SET account_id = excluded.account_id, bytes = excluded.bytes, measured_at = excluded.measured_at`)
	repoAt  = db.Q[repoRow](`SELECT id, account_id, owner, name FROM repos WHERE host = $1 AND owner = $2 AND name = $3`)
	reposOf = db.Q[repoRow](`SELECT id, account_id, owner, name FROM repos WHERE account_id = $1 AND host = $2`)
	// lockMeasures keeps other transactions from adding to what is counted until this one ends.
	lockMeasures = db.S(`INSERT INTO account_measures (account_id, due_at) VALUES ($1, $2)
		ON CONFLICT (account_id) DO UPDATE SET told = account_measures.told`)
)

// state is what an account may have and has; ok is false if there is no such account.
func state(tx *db.Tx, account string) (stateRow, bool, error) {
	return stateOf.Maybe(tx, account, codehost.BuiltIn, tx.Micros())
}

// limits are the limits of the account.
func (r stateRow) limits() Limits {
	l, ok := byTier[r.Tier]
	if !ok {
		l = unlimited
	}
	for _, s := range []struct {
		set  *int64
		most *int64
	}{
		{r.GitMost, &l.GitBytes}, {r.ObjectMost, &l.ObjectBytes}, {r.RecordMost, &l.RecordBytes}, {r.RecordsMost, &l.Records},
		{r.ReposMost, &l.Repos}, {r.TokensMost, &l.Tokens}, {r.PersonMost, &l.PersonTokens},
		{r.BoxesMost, &l.Boxes}, {r.WritesMost, &l.WritesPerMinute},
	} {
		if s.set != nil {
			*s.most = *s.set
		}
	}
	return l
}

// levels are all things of the account, in the order of names.
func (r stateRow) levels() []level {
	l := r.limits()
	return []level{
		{GitBytes, r.GitBytes, l.GitBytes, r.GitMost != nil},
		{ObjectBytes, r.ObjectBytes, l.ObjectBytes, r.ObjectMost != nil},
		{RecordBytes, r.RecordBytes, l.RecordBytes, r.RecordMost != nil},
		{Records, r.Records, l.Records, r.RecordsMost != nil},
		{Repos, r.Repos, l.Repos, r.ReposMost != nil},
		{Tokens, r.Tokens, l.Tokens, r.TokensMost != nil},
		{PersonTokens, 0, l.PersonTokens, r.PersonMost != nil},
		{Boxes, r.Boxes, l.Boxes, r.BoxesMost != nil},
		{Writes, 0, l.WritesPerMinute, r.WritesMost != nil},
	}
}

// limited tells whether the account has a limit of anything.
func (r stateRow) limited() bool {
	return r.limits() != unlimited
}
