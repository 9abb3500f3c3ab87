package run

import "yardmaster/internal/db"

var (
	// preferRun keeps what a run follows as long as it goes on.
	preferRun       = db.SWith[preferArgs](`UPDATE runs SET pref_provider = :provider, pref_model = :own, model = :model WHERE id = :id`)
	selectPreferred = db.Q[Preferred](`SELECT COALESCE(pref_provider, '') AS provider, COALESCE(pref_model, '') AS model FROM runs
		WHERE account_id = $1 AND task_id = $2 ORDER BY created_at DESC, id DESC LIMIT 1`)
)

// preferArgs are the parameters of preferRun.
type preferArgs struct {
	ID            string
	Provider, Own *string
	Model         string
}
