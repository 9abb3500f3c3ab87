package departure

import (
	"time"

	"yardmaster/internal/db"
)

// row is an account that has left.
type row struct {
	ID         string
	AccountID  string
	Login      string
	Deletion   db.JSON[Deletion]
	BegunAt    time.Time
	FinishedAt *time.Time
	Envelope   string
	Rest       db.JSON[Rest]
}

const columns = `id, account_id, login, deletion, begun_at, finished_at, envelope, rest`

type repoRow struct{ Host, Owner, Name string }

type mirrorRow struct{ Host, Number string }

// standing is what keeps a person who belonged to an account.
type standing struct {
	ID            string
	Email         string
	PlatformAdmin bool
}

var (
	accountOf = db.Q[string](`SELECT id FROM accounts WHERE login = $1`)
	reposOf   = db.Q[repoRow](`SELECT host, owner, name FROM repos WHERE account_id = $1 ORDER BY host, owner, name`)
	taken     = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM repos WHERE host = $1 AND owner = $2 AND name = $3)`)
	mirrorsOf = db.Q[mirrorRow](`SELECT host, host_repo_id AS number FROM repos WHERE account_id = $1 AND host <> 'builtin'
		AND host_repo_id <> '' ORDER BY host, host_repo_id`)
	mirrorTaken = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM repos WHERE host = $1 AND host_repo_id = $2)`)
	ownersOf    = db.Q[string](`SELECT email FROM users WHERE email <> '' AND id IN
		(SELECT user_id FROM memberships WHERE account_id = $1 AND role = 'owner') ORDER BY id`)
	isAlone  = db.Q[bool](`SELECT NOT EXISTS (SELECT 1 FROM accounts WHERE id <> $1)`)
	peopleOf = db.Q[standing](`SELECT id, email, platform_admin FROM users WHERE id IN (SELECT user_id FROM memberships WHERE account_id = $1
		UNION SELECT user_id FROM former_members WHERE account_id = $1) ORDER BY id`)
	// serving are the code hosts of an account that others have repositories at.
	serving = db.Q[string](`SELECT h.name FROM code_hosts h WHERE h.account_id = $1
		AND EXISTS (SELECT 1 FROM installations i WHERE i.host = h.name AND i.account_id <> h.account_id) ORDER BY h.name`)

	insert = db.SWith[row](`INSERT INTO departures (id, account_id, login, deletion, begun_at, envelope, rest)
		VALUES (:id, :account_id, :login, :deletion, :begun_at, :envelope, :rest)`)
	byID       = db.Q[row](`SELECT ` + columns + ` FROM departures WHERE id = $1 AND finished_at IS NULL`)
	unfinished = db.Q[row](`SELECT ` + columns + ` FROM departures WHERE login = $1 AND finished_at IS NULL ORDER BY begun_at LIMIT 1`)
	newest     = db.Q[row](`SELECT ` + columns + ` FROM departures WHERE login = $1 ORDER BY begun_at DESC LIMIT 1`)
	finish     = db.SWith[row](`UPDATE departures SET finished_at = :finished_at, envelope = :envelope, deletion = :deletion,
		rest = :rest
		WHERE id = :id AND finished_at IS NULL`)
)
