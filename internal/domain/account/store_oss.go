package account

import (
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

const applicationColumns = `id, account_id, project_url, statement, state, note, applied_by, created_at, updated_at, decided_at`

var (
	latestApplication = db.Q[OSSApplication](`SELECT ` + applicationColumns + ` FROM oss_applications WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`)
	applicationByID   = db.Q[OSSApplication](`SELECT ` + applicationColumns + ` FROM oss_applications WHERE id = $1`)
	insertApplication = db.S(`INSERT INTO oss_applications (id, account_id, project_url, statement, state, applied_by, created_at, updated_at)
		VALUES ($1, $2, $3, $4, 'pending', $5, $6, $6)`)
	amendApplication = db.S(`UPDATE oss_applications SET project_url = $3, statement = $4, updated_at = $5
		WHERE account_id = $1 AND id = $2 AND state = 'pending'`)
	decideApplication = db.S(`UPDATE oss_applications SET state = $2, note = $3, updated_at = $4, decided_at = $4 WHERE id = $1 AND state = 'pending'`)
)

func listApplications(tx *db.Tx, p op.PageIn) ([]OSSApplication, error) {
	b := db.Build(`SELECT ` + applicationColumns + ` FROM oss_applications WHERE TRUE`)
	if p.Want("status") != "all" {
		b.And("state = ", ossPending)
	}
	at, last, more, err := p.AfterTime()
	if err != nil {
		return nil, err
	}
	if more {
		b.And("(created_at, id) < ", db.Tuple(at, last))
	}
	return db.Select[OSSApplication](tx, b.SQL(" ORDER BY created_at DESC, id DESC LIMIT ", p.Size()))
}
