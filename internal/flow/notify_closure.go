package flow

import (
	"fmt"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/closure"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

const nounDeletion = "account_deletion"

var closureRules = []rule{{[]event.Any{closure.AskedEvent}, Notify.deletionAsked}}

var closureReliefs = []relief{{[]event.Any{closure.TakenBack}, notification.Escalation, nounDeletion}}

// deletionAsked: owners and admins hear that the account is going to be deleted, whatever they have chosen.
func (n Notify) deletionAsked(tx *db.Tx, e event.Recorded) (out notification.Notice, ok bool, err error) {
	d, err := closure.AskedEvent.Decode(e)
	if err != nil {
		return out, false, err
	}
	login, err := people.AccountLogin(tx, tx.Account)
	if err != nil {
		return out, false, err
	}
	out = notification.Notice{
		Kind: notification.Escalation, Noun: nounDeletion, Subject: e.Object, Path: "/ui/settings/account",
		Title: fmt.Sprintf("The account %s is going to be deleted on %s", login, d.EndsAt.Format("2 January 2006, 15:04 UTC")),
		Text:  "An owner has asked for it. Until then any owner can take it back; afterwards nothing of it is left.",
	}
	out.To, err = deciders(tx, nil, policy.ReadAccount)
	return out, err == nil, err
}
