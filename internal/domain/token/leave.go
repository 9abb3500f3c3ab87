package token

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
)

// RightsChanged revokes the tokens that a user has in accounts to which they do not belong any
// more: whoever is added again begins anew. It is a subscriber of event.RightsChanged.
func RightsChanged(tx *db.Tx, userID string) error {
	rows, err := liveOf.All(tx, userID)
	if err != nil {
		return err
	}
	accounts := make([]string, len(rows))
	for i, r := range rows {
		accounts[i] = r.AccountID
	}
	return people.Leave(tx, userID, accounts, func(i int) error { return rows[i].end(tx) })
}

// EndVouched revokes the tokens that were minted in sessions of the identity provider of tx.Account.
func EndVouched(tx *db.Tx) error {
	rows, err := vouchedIn.All(tx, tx.Account)
	for _, r := range rows {
		if err != nil {
			return err
		}
		err = r.end(tx)
	}
	return err
}

// end revokes a token of tx.Account, unless it is revoked.
func (r liveRow) end(tx *db.Tx) error {
	if n, err := revoke.Exec(tx, tx.Account, r.ID, tx.Micros()); err != nil || n == 0 {
		return err
	}
	if err := event.CredentialDropped.Send(tx, r.Hash); err != nil {
		return err
	}
	return revokedEvent.Record(tx, event.Subject{ID: r.ID}, event.None{})
}
