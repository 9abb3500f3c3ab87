package tracker

import (
	"yardmaster/internal/db"
	"yardmaster/internal/linear"
)

var anybody = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM trackers)`)

// Addresses is that of Linear, if an account is connected to it.
func Addresses(tx *db.Tx) ([]string, error) {
	if is, err := anybody.One(tx); err != nil || !is {
		return nil, err
	}
	return []string{linear.Address}, nil
}
