package sso

import "yardmaster/internal/db"

var addresses = db.Q[string](`SELECT DISTINCT issuer FROM org_sso ORDER BY issuer`)

// Addresses are those of the identity providers of accounts.
func Addresses(tx *db.Tx) ([]string, error) { return addresses.All(tx) }
