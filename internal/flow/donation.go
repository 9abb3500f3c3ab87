package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/domain/overview"
)

// Donations implements overview.Donations.
type Donations struct{}

// Received counts the gifts that are pinned to a repository of tx.Account and active.
func (Donations) Received(tx *db.Tx, repoID string) (*overview.Received, error) {
	n, err := donation.Received(tx, repoID)
	return &overview.Received{Money: n[donation.Money], Compute: n[donation.Compute], LLM: n[donation.LLM]}, err
}

// DonationBoxes implements donation.Boxes.
type DonationBoxes struct{ Boxes *box.Service }

// Lendable implements donation.Boxes.
func (d DonationBoxes) Lendable(tx *db.Tx, boxID string) (why string, ok bool, err error) {
	return d.Boxes.Lendable(tx, boxID)
}

// Moved implements donation.Boxes.
func (d DonationBoxes) Moved(tx *db.Tx, boxID, account string) error {
	return d.Boxes.LentMoved(tx, boxID, account)
}
