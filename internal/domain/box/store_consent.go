package box

import (
	"time"

	"yardmaster/internal/db"
)

// consentRow is what a user was asked about a box and an account, and has said.
type consentRow struct {
	BoxID     string
	AccountID string
	UserID    string
	AskedBy   string
	AgreedAt  *time.Time // nil: not yet
}

type askArgs struct {
	BoxID, AccountID, UserID, AskedBy string
	AskedAt                           int64
	AgreedAt                          *int64
}

const answerColumns = `box_id, account_id, user_id, asked_by, agreed_at`

var (
	putAnswer = db.SWith[askArgs](`INSERT INTO box_consents (box_id, account_id, user_id, asked_at, asked_by, agreed_at)
		VALUES (:box_id, :account_id, :user_id, :asked_at, :asked_by, :agreed_at)
		ON CONFLICT (box_id, account_id, user_id) DO UPDATE SET agreed_at = excluded.agreed_at`)
	deleteAsks    = db.S(`DELETE FROM box_consents WHERE box_id = $1 AND agreed_at IS NULL`)
	deleteAnswers = db.S(`DELETE FROM box_consents WHERE box_id = $1`)
	deleteAnswer  = db.S(`DELETE FROM box_consents WHERE box_id = $1 AND account_id = $2 AND user_id = $3`)
	selectAnswers = db.Q[consentRow](`SELECT ` + answerColumns + ` FROM box_consents WHERE user_id = $1 ORDER BY box_id, account_id`)
	selectAnswer  = db.Q[consentRow](`SELECT ` + answerColumns + ` FROM box_consents WHERE box_id = $1 AND account_id = $2 AND user_id = $3`)
)

// askedOf lists the people who were asked about boxes and have not answered, by box.
func askedOf(tx *db.Tx, boxIDs []string) (map[string]string, error) {
	b := db.Build(`SELECT `+answerColumns+` FROM box_consents WHERE agreed_at IS NULL`).In("box_id", boxIDs)
	rows, err := db.Select[consentRow](tx, b)
	out := make(map[string]string, len(rows))
	for _, r := range rows {
		out[r.BoxID] = r.UserID
	}
	return out, err
}
