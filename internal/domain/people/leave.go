package people

import "yardmaster/internal/db"

// Leave forgets what a user has in those of some accounts to which they do not belong any more:
// it calls forget with the index of each, in a transaction of that account.
func Leave(tx *db.Tx, userID string, accounts []string, forget func(i int) error) error {
	for i, account := range accounts {
		_, member, err := Role(tx, account, userID)
		if err == nil && !member {
			err = tx.As(account, func() error { return forget(i) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}
