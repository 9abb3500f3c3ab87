package webhook

import "yardmaster/internal/db"

var addresses = db.Q[string](`SELECT DISTINCT masked FROM webhooks WHERE deleted_at IS NULL ORDER BY masked`)

// Addresses are where the webhooks of all accounts lead, without what may be a secret in them.
func Addresses(tx *db.Tx) ([]string, error) { return addresses.All(tx) }
