package flow

import (
	"cmp"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/sso"
)

// Gifts implements invitation.Gifts: it books the gift of a platform invitation as a
// grant.
type Gifts struct{ Ledger grant.Ledger }

// Give books the content of a bundle for a user. If the user has an active grant,
// given is false and nothing is booked.
func (g Gifts) Give(tx *db.Tx, userID string, b invitation.Bundle) (given bool, err error) {
	return g.Ledger.Give(tx, userID, grant.Gift{
		AIDevs: int64(b.AIDevs), Days: b.ExpiresInDays, IssuedBy: b.IssuedBy,
		// Links that were mailed before the reason was kept came off the waitlist.
		Reason: cmp.Or(b.Reason, "invited off the waitlist"),
	})
}

// OwnersChanged wakes the queues whose capacity changes with the owners of an
// account: what an owner was given counts in one account only.
func (g Gifts) OwnersChanged(tx *db.Tx, o invitation.Owner) error {
	return g.Ledger.Moved(tx, o.AccountID, o.UserID)
}

// Invitations implements grant.Invitations and signin.Invitations: it invites people
// who are no users yet.
type Invitations struct{ Invites *invitation.Service }

// Invite mails an invitation to the platform that brings a gift along, unless
// one waits for the address: then it answers that one, and fresh is false.
func (i Invitations) Invite(tx *db.Tx, email string, g grant.Gift) (invitationID string, fresh bool, err error) {
	return i.Invites.SendOnce(tx, invitation.Offer{
		Kind: invitation.Platform, Email: email, Inviter: "Yardmaster",
		Bundle: invitation.Bundle{AIDevs: int(g.AIDevs), ExpiresInDays: g.Days, Reason: g.Reason, IssuedBy: g.IssuedBy},
	})
}

// Invited tells whether an address has an invitation that can be accepted.
func (Invitations) Invited(tx *db.Tx, email string) (bool, error) {
	return invitation.Invited(tx, email)
}

// Redeem accepts an invitation for a user and answers the account that it led
// to; empty if it led to none. It fails with fault.NotFound if there is no such
// token.
func (i Invitations) Redeem(tx *db.Tx, token, userID string) (accountID string, err error) {
	out, err := i.Invites.Redeem(tx, token, userID)
	if err != nil || out.Account == nil {
		return "", err
	}
	return out.Account.ID, nil
}

// Providers implements signin.Providers: whether accounts have identity providers of
// their own, for the page of the sign-in, and who is asked still.
type Providers struct {
	GitHub string // the address of the GitHub that people sign in with; empty: of none
}

// Any tells whether an account has an identity provider of its own.
func (Providers) Any(tx *db.Tx) (bool, error) { return sso.Any(tx) }

// Vouches tells whether the issuer of an identity is asked still, and would let the user in.
func (p Providers) Vouches(tx *db.Tx, userID, issuer string) (bool, error) {
	return sso.Vouches(tx, p.GitHub, userID, issuer)
}
