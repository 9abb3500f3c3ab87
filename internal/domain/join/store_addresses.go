package join

import "yardmaster/internal/db"

var addresses = db.Q[string](`SELECT DISTINCT host FROM ssh_joins WHERE ended_at IS NULL ORDER BY host`)

// Addresses are the machines that are about to be dialled.
func Addresses(tx *db.Tx) ([]string, error) { return addresses.All(tx) }
