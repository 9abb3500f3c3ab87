package box

import (
	"context"

	"yardmaster/internal/db"
)

var (
	untold   = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM box_commands WHERE account_id = $1 AND kind = 'run.halt')`)
	allBoxes = db.Q[string](`SELECT id FROM boxes WHERE account_id = $1 AND revoked_at IS NULL ORDER BY id`)
)

// Told tells whether no command that ends a run of tx.Account waits for its box.
func Told(tx *db.Tx) (bool, error) {
	waits, err := untold.One(tx, tx.Account)
	return !waits, err
}

// ReleaseAll revokes all boxes of an account, which stop.
func (s *Service) ReleaseAll(ctx context.Context, account string) error {
	var all []Removal
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		all = nil
		return tx.As(account, func() error {
			ids, err := allBoxes.All(tx, account)
			for _, id := range ids {
				if err != nil {
					return err
				}
				var r row
				var out Removal
				if r, err = s.find(tx, id, true); err == nil {
					out, _, err = s.removeIn(tx, r, true)
					all = append(all, out)
				}
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	for _, out := range all {
		s.disconnect(ctx, out, true)
	}
	return nil
}
