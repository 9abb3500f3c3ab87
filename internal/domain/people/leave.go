package people

import (
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// Ends ends what a user has set out in some accounts and might not set out again: it calls end with
// the index of each of which may says so, for the role of the user in that account ("" without any), in
// a transaction of the account. It is for the subscribers of event.RightsChanged.
func Ends(tx *db.Tx, userID string, accounts []string, may func(i int, now policy.Role) bool, end func(i int) error) error {
	for i, account := range accounts {
		role, _, err := Role(tx, account, userID)
		if err == nil && !may(i, role) {
			err = tx.As(account, func() error { return end(i) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Leave is Ends of what takes a membership alone.
func Leave(tx *db.Tx, userID string, accounts []string, forget func(i int) error) error {
	return Ends(tx, userID, accounts, func(_ int, now policy.Role) bool { return now != "" }, forget)
}
