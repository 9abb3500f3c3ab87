package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/domain/donation"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/overview"
	"yardmaster/internal/domain/payment"
	"yardmaster/internal/domain/people"
)

// Donations implements overview.Donations.
type Donations struct{}

// Received counts the gifts that are pinned to a repository of tx.Account and active.
func (Donations) Received(tx *db.Tx, repoID string) (*overview.Received, error) {
	n, err := donation.Received(tx, repoID)
	return &overview.Received{Money: n[donation.Money], Compute: n[donation.Compute], LLM: n[donation.LLM]}, err
}

// Donors implements donation.Donors.
type Donors struct{ Payment *payment.Service }

// Donor tells whether an account may give keys and boxes: it is of the tier self_hosted, it pays
// for oss_donor, or an operator has given it something free that stands in for the subscription.
func (d Donors) Donor(tx *db.Tx, account string) (bool, error) {
	a, err := people.AccountByID(tx, account)
	if err != nil || a.Tier == people.TierSelfHosted {
		return err == nil, err
	}
	if pays, err := d.Payment.Donor(tx, account); err != nil || pays {
		return pays, err
	}
	return grant.Counts(tx, account)
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
