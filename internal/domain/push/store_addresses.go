package push

import "yardmaster/internal/db"

var addresses = db.Q[string](`SELECT DISTINCT service FROM push_subscriptions ORDER BY service`)

// Addresses are the services through which browsers are reached.
func Addresses(tx *db.Tx) ([]string, error) { return addresses.All(tx) }
