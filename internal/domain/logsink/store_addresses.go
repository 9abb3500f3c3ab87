package logsink

import "yardmaster/internal/db"

var addresses = db.Q[string](`SELECT DISTINCT masked FROM log_sinks ORDER BY masked`)

// Addresses are where calls of models are logged to, without what may be a secret in them.
func Addresses(tx *db.Tx) ([]string, error) { return addresses.All(tx) }
