package account

import (
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

const applicationColumns = `id, account_id, project_url, statement, state, note, applied_by, created_at, updated_at, decided_at`

var (
	latestApplication = db.Q[OSSApplication](`SELECT ` + applicationColumns + ` FROM oss_applications WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`)
	applicationByID   = db.Q[OSSApplication](`SELECT ` + applicationColumns + ` FROM oss_applications WHERE id = $1`)
	insertApplication = db.SWith[insertApplicationArgs](`INSERT INTO oss_applications (id, account_id, project_url, statement, state, applied_by,
		created_at, updated_at)
		VALUES (:id, :account_id, :project_url, :statement, 'pending', :applied_by, :created_at, :created_at)`)
	amendApplication = db.SWith[amendApplicationArgs](`UPDATE oss_applications SET project_url = :project_url, statement = :statement, updated_at = :updated_at
		WHERE account_id = :account_id AND id = :id AND state = 'pending'`)
	decideApplication = db.SWith[decideApplicationArgs](`UPDATE oss_applications SET state = :state, note = :note, updated_at = :updated_at,
		decided_at = :updated_at
		WHERE id = :id AND state = 'pending'`)
)

// decideApplicationArgs are the parameters of decideApplication.
type decideApplicationArgs struct {
	ID, State string
	Note      *string
	UpdatedAt int64
}

// amendApplicationArgs are the parameters of amendApplication.
type amendApplicationArgs struct {
	AccountID, ID, ProjectURL, Statement string
	UpdatedAt                            int64
}

// insertApplicationArgs are the parameters of insertApplication.
type insertApplicationArgs struct {
	ID, AccountID, ProjectURL, Statement string
	AppliedBy                            *string
	CreatedAt                            int64
}

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
