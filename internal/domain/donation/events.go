package donation

import (
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// audience is the readers of events about gifts, in the account that gave one and in the one
// that it is for.
var audience = event.Audience(policy.ReadDonations)

// The data of events. None names a key or a box, because both accounts read it.
type (
	giftData struct {
		Kind   Kind   `json:"kind" doc:"what was given"`
		Donor  string `json:"donor" doc:"login of the account that gave it"`
		Target string `json:"target" doc:"owner/name of the repository; empty: the pool"`
	}
	parkedData struct {
		giftData
		Why Why `json:"why" doc:"cancelled by the giver, declined by the recipient, or what it was made of is gone"`
	}
	modelData struct {
		giftData
		Model *string `json:"model" doc:"the model that calls over it ask for; null: as the template says"`
	}
	toldData struct {
		giftData
		What string `json:"what" enum:"given,cancelled,declined,gone,model_set" doc:"what was done"`
	}
)

// The events of gifts. The account that changes one has the event of the change, and the other
// one that it was told.
var (
	givenEvent  = event.Declare[giftData]("donation.given", audience, "The account gave something to open-source repositories.")
	parkedEvent = event.Declare[parkedData]("donation.parked", audience, "A gift is over, and what it was made of is free again.")
	modelEvent  = event.Declare[modelData]("donation.model_set", audience, "The recipient of a gift picked the model of calls over it.")
	toldEvent   = event.Declare[toldData]("donation.told", audience, "Another account has given something, ended a gift, or picked its model.")
)

// Ended is sent with the id of a gift that is over: nothing may be set aside for it any more.
var Ended = event.DeclareSignal[string]("donation.ended", "A gift is over.")

// record records a change in tx.Account, and tells the other account of it.
func record[T any](tx *db.Tx, kind event.Kind[T], r *row, data T, what string) error {
	if err := kind.Record(tx, event.Subject{ID: r.ID, Account: tx.Account}, data); err != nil {
		return err
	}
	other := event.Subject{ID: r.ID, Account: r.AccountID}
	if tx.Account == r.AccountID {
		if other.Account = r.TargetAccount; r.RepoID != nil {
			other.RepoID = *r.RepoID
		}
	}
	if other.Account == "" || other.Account == tx.Account {
		return nil
	}
	return toldEvent.Record(tx, other, toldData{about(r), what})
}

// about is what all events tell of a gift.
func about(r *row) giftData {
	out := giftData{Kind: r.Kind, Donor: r.Donor}
	if r.RepoID != nil {
		out.Target = r.fullName()
	}
	return out
}

// end parks a gift that the caller has locked; false if it was parked before.
func end(tx *db.Tx, r *row, why string) (bool, error) {
	n, err := park.Exec(tx, r.ID, tx.Now, why)
	if err != nil || n == 0 {
		return false, err
	}
	if err := Ended.Send(tx, r.ID); err != nil {
		return false, err
	}
	return true, record(tx, parkedEvent, r, parkedData{about(r), Why(why)}, why)
}
