package modelkey

import (
	"time"

	"yardmaster/internal/db"
)

const healthColumns = `rest_until, rest_since, rest_why, rests, slips, probe_until, health_seq`

var (
	setHealth = db.SWith[row](`UPDATE provider_keys SET rest_until = :rest_until, rest_since = :rest_since, rest_why = :rest_why,
		rests = :rests, slips = :slips, probe_until = :probe_until, health_seq = :health_seq WHERE account_id = :account_id AND id = :id`)
	tryOut = db.SWith[tryOutArgs](`UPDATE provider_keys SET probe_until = :until, health_seq = health_seq + 1
		WHERE account_id = :account_id AND id = :id AND rest_until <= :now AND (probe_until IS NULL OR probe_until <= :now)`)
)

// tryOutArgs are the parameters of tryOut.
type tryOutArgs struct {
	AccountID, ID string
	Now, Until    time.Time
}
