package modelkey

import (
	"time"

	"yardmaster/internal/db"
)

type prefRow struct {
	AccountID, UserID, Provider, Model string
	UpdatedAt                          time.Time
}

const prefColumns = `account_id, user_id, provider, model, updated_at FROM llm_prefs`

var (
	onePref = db.Q[prefRow](`SELECT ` + prefColumns + ` WHERE account_id = $1 AND user_id = $2`)
	putPref = db.SWith[prefRow](`INSERT INTO llm_prefs (account_id, user_id, provider, model, updated_at)
		VALUES (:account_id, :user_id, :provider, :model, :updated_at)
		ON CONFLICT (account_id, user_id) DO UPDATE SET provider = EXCLUDED.provider, model = EXCLUDED.model,
		updated_at = EXCLUDED.updated_at`)
	dropPref = db.S(`DELETE FROM llm_prefs WHERE account_id = $1 AND user_id = $2`)
	// prefsOf reads what a person has in every account.
	prefsOf = db.Q[prefRow](`SELECT ` + prefColumns + ` WHERE user_id = $1 ORDER BY account_id`)
)

// withOwn lists people of an account who have a key of their own, or like a model best.
var withOwn = db.Q[string](`SELECT user_id FROM provider_keys WHERE account_id = $1 AND user_id <> '' AND deleted_at IS NULL
	UNION SELECT user_id FROM llm_prefs WHERE account_id = $1 ORDER BY user_id LIMIT 100`)
