package webhook

import "yardmaster/internal/db"

var (
	givenUp   = db.Q[int64](`SELECT COUNT(*) FROM webhooks WHERE deleted_at IS NULL AND unhealthy_at IS NOT NULL`)
	addresses = db.Q[string](`SELECT DISTINCT masked FROM webhooks WHERE deleted_at IS NULL ORDER BY masked`)
)

// Addresses are where the webhooks of all accounts lead, without what may be a secret in them.
func Addresses(tx *db.Tx) ([]string, error) { return addresses.All(tx) }

// GivenUp counts the webhooks of all accounts to which nothing is sent any more, since they took
// nothing.
func GivenUp(tx *db.Tx) (int64, error) { return givenUp.One(tx) }
