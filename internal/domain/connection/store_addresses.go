package connection

import "yardmaster/internal/db"

var addresses = db.Q[string](`SELECT address FROM code_hosts ORDER BY address`)

// Addresses are those of the code hosts that operators have connected.
func Addresses(tx *db.Tx) ([]string, error) { return addresses.All(tx) }
