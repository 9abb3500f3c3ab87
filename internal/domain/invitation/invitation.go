// Package invitation lets new people in. An invitation is a one-time link, mailed to
// an address. It gives the user with that address a place in an account, or access to
// the platform. The link is shown once, to the inviter; only its hash is stored.
package invitation

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// Kind is what an invitation is for.
type Kind string

// Kinds of invitation.
const (
	OrgMember Kind = "org_member"
	Platform  Kind = "platform"
)

// Values lists all kinds.
func (Kind) Values() []string { return []string{string(OrgMember), string(Platform)} }

// Status is how far an invitation is.
type Status string

// Statuses of an invitation. They follow from the times of its row.
const (
	Pending  = "pending"
	Accepted = "accepted"
	Revoked  = "revoked"
	Expired  = "expired"
)

// Values lists all statuses.
func (Status) Values() []string { return []string{Pending, Accepted, Revoked, Expired} }

// Lifetimes of a link.
const (
	memberLife   = 7 * 24 * time.Hour
	platformLife = 14 * 24 * time.Hour
)

// Invitation is an invitation without its link.
type Invitation struct {
	_          struct{}     `doc:"An offer to join an account, or the platform."`
	ID         string       `json:"id" example:"inv_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the invitation, with the prefix inv_"`
	Kind       Kind         `json:"kind" doc:"org_member: into an account; platform: through the gate of the closed beta"`
	Email      *string      `json:"email" format:"email" doc:"the address it is for; null: it is for a login"`
	Login      *string      `json:"login" example:"null" doc:"the login it is for, whether or not anybody has it; null: it is for an address"`
	Role       *policy.Role `json:"role" example:"member" doc:"role in the account; null on a platform invitation"`
	Status     Status       `json:"status" doc:"expired: nobody accepted it in time"`
	InvitedBy  *string      `json:"invited_by" format:"uuid" doc:"id of the user who invited; null: a machine or the platform did"`
	CreatedAt  time.Time    `json:"created_at" doc:"when it was first sent"`
	ExpiresAt  time.Time    `json:"expires_at" doc:"until when it can be accepted"`
	AcceptedAt *time.Time   `json:"accepted_at" example:"null" doc:"when it was accepted; null: it was not"`
	RevokedAt  *time.Time   `json:"revoked_at" example:"null" doc:"when it was withdrawn; null: it was not"`
}

// SentInvitation is an invitation with its link, which is shown only here.
type SentInvitation struct {
	_          struct{}   `doc:"An invitation that was mailed, with its link." schema:"SentInvitation"`
	Invitation Invitation `json:"invitation" doc:"the invitation"`
	Link       string     `json:"link" format:"uri" example:"https://yardmaster.example.com/invite/dev_inv_example" doc:"address that accepts it, shown this once"`
}

// InvitationRevoked is the answer to a withdrawal. Revoked is false if the invitation
// had been withdrawn before.
type InvitationRevoked struct {
	_       struct{} `doc:"What a withdrawal did."`
	ID      string   `json:"id" example:"inv_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the invitation"`
	Status  string   `json:"status" enum:"revoked" doc:"its status after the call"`
	Revoked bool     `json:"revoked" doc:"false: it was withdrawn before"`
}

// Acceptance tells what an invitation gave the caller. If it gave nothing, Reason
// says why.
type Acceptance struct {
	_            struct{}      `doc:"What accepting an invitation granted." schema:"Acceptance"`
	InvitationID string        `json:"invitation_id" example:"inv_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the invitation"`
	Kind         Kind          `json:"kind" doc:"what it was for"`
	Granted      bool          `json:"granted" doc:"whether this call granted anything"`
	Reason       *string       `json:"reason" enum:"already_accepted,revoked,expired,other_address,already_member,already_approved" example:"null" doc:"why nothing was granted; null when something was"`
	Account      *JoinedTenant `json:"account" doc:"null for a platform invitation, and when nothing was granted"`
}

// JoinedTenant is the account that an invitation has opened.
type JoinedTenant struct {
	_     struct{}    `doc:"The account that was joined." schema:"JoinedTenant"`
	ID    string      `json:"id" format:"uuid" doc:"id of the account"`
	Login string      `json:"login" example:"acme" doc:"login of the account"`
	Role  policy.Role `json:"role" example:"member" doc:"role of the new member"`
}

// Bundle is the grant that a platform invitation brings along besides access.
type Bundle struct {
	AIDevs        int    `json:"ai_devs,omitempty"`
	ExpiresInDays int    `json:"expires_in_days,omitempty"` // 0: for good
	Reason        string `json:"reason,omitempty"`          // why the grant is given
	IssuedBy      string `json:"issued_by,omitempty"`       // label of the actor who gives it
}

// Gifts books the grants that platform invitations bring along.
type Gifts interface {
	// Give books the grant of a bundle for a user. given is false, and nothing is
	// booked, if the user has an active grant.
	Give(tx *db.Tx, userID string, b Bundle) (given bool, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB   *db.DB
	Mail *mail.Outbox
	// Mailed tells that mail leaves the machine, so that people receive codes.
	Mailed bool
	// BaseURL is the beginning of every link.
	BaseURL string
	Gifts   Gifts
}

// Service sends, redeems and withdraws invitations.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Offer is the content of an invitation and its recipient.
type Offer struct {
	Kind      Kind
	AccountID string      // of OrgMember
	Role      policy.Role // of OrgMember
	Email     string      // where the mail goes; empty: nobody is told
	Login     string      // whom it is for by name, of OrgMember; empty: it is for Email
	UserID    string      // who has Login; empty: nobody has
	Bundle    Bundle      // of Platform
	Inviter   string      // as the mail names them
	Account   string      // login of the account, for the mail
}

// Send mails an invitation and returns it with its link. If the address has an
// invitation to the same account, or to the platform, that is neither accepted nor
// withdrawn, that one gets a new link, and its old link stops working.
func (s *Service) Send(tx *db.Tx, o Offer) (SentInvitation, error) {
	sent, _, err := s.send(tx, o, arm)
	return sent, err
}

// SendOnce is Send, but if an invitation to the address can still be accepted,
// SendOnce leaves it unchanged, returns its id, and fresh is false.
func (s *Service) SendOnce(tx *db.Tx, o Offer) (invitation string, fresh bool, err error) {
	sent, fresh, err := s.send(tx, o, armOnce)
	if err != nil || fresh {
		return sent.Invitation.ID, fresh, err
	}
	invitation, err = waits.One(tx, o.Kind, Address(o.Email))
	return invitation, false, err
}

// Empty removes the bundle from the open platform invitation of an address.
func Empty(tx *db.Tx, email string) error {
	_, err := empty.Exec(tx, Address(email))
	return err
}

func (s *Service) send(tx *db.Tx, o Offer, arm db.QueryWith[armArgs, row]) (SentInvitation, bool, error) {
	link := id.Secret(id.Invite)
	life := memberLife
	if o.Kind == Platform {
		life = platformLife
	}
	var account *string
	var role *policy.Role
	if o.Kind == OrgMember {
		account, role = &o.AccountID, &o.Role
	}
	email := Address(o.Email)
	if o.Login != "" {
		email = ""
	}
	r, ok, err := arm.Maybe(tx, armArgs{
		ID: prefix + id.New(), Kind: o.Kind, AccountID: account, Email: email, Login: o.Login, UserID: db.NullText(o.UserID), Role: role,
		Bundle: db.JSON[Bundle]{V: o.Bundle}, TokenHash: seal.Hash(link),
		InvitedBy: db.NullText(policy.From(tx.Context()).UserID), CreatedAt: tx.Now, ExpiresAt: tx.Now.Add(life),
	})
	if err != nil || !ok {
		return SentInvitation{}, false, err
	}
	sent, err := s.mailed(tx, r, Address(o.Email), link, o.Inviter, o.Account)
	return sent, true, err
}

// mailed puts the mail of an invitation into the outbox and returns the invitation
// with its link. Without an address nobody is told.
func (s *Service) mailed(tx *db.Tx, r row, to, secret, inviter, account string) (SentInvitation, error) {
	out := SentInvitation{Invitation: r.wire(tx.Now), Link: s.BaseURL + "/invite/" + secret}
	what := "Yardmaster"
	if r.Kind == OrgMember {
		what = account + " on Yardmaster"
	}
	if to == "" {
		return out, nil
	}
	return out, s.Mail.Post(tx, mail.Page{
		Lead: inviter + " invites you to " + what + ".", Links: []mail.Link{{Label: "Accept the invitation", URL: out.Link}},
		Notes: []string{fmt.Sprintf("The link works once, for %s, until %s. If you did not expect it, do nothing.",
			cmp.Or(r.Login, r.Email), r.ExpiresAt.UTC().Format("2 January 2006"))},
	}.Message(to, "An invitation to "+what))
}

// prefix is the beginning of the id of every invitation.
const prefix = "inv_"

// Address returns an e-mail address in the form in which addresses are compared:
// trimmed and in lower case.
func Address(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

func (r row) status(now time.Time) string {
	switch {
	case r.AcceptedAt != nil:
		return Accepted
	case r.RevokedAt != nil:
		return Revoked
	case !now.Before(r.ExpiresAt):
		return Expired
	}
	return Pending
}

func (r row) wire(now time.Time) Invitation {
	return Invitation{
		ID:         r.ID,
		Kind:       r.Kind,
		Email:      db.NullText(r.Email),
		Login:      db.NullText(r.Login),
		Role:       r.Role,
		Status:     Status(r.status(now)),
		InvitedBy:  r.InvitedBy,
		CreatedAt:  r.CreatedAt,
		ExpiresAt:  r.ExpiresAt,
		AcceptedAt: r.AcceptedAt,
		RevokedAt:  r.RevokedAt,
	}
}

// Approve lets a user through the gate of the closed beta. It returns false if they
// had been let through before.
func (s *Service) Approve(tx *db.Tx, userID string) (bool, error) {
	fresh, err := people.Approve(tx, userID)
	if err == nil {
		err = event.RightsChanged.Send(tx, userID)
	}
	return fresh, err
}

// Give books the grant of a bundle for a user; see Gifts.
func (s *Service) Give(tx *db.Tx, userID string, b Bundle) (given bool, err error) {
	return s.Gifts.Give(tx, userID, b)
}

// Join makes a user a member of an account. It returns false if they are a member
// already.
func (s *Service) Join(tx *db.Tx, accountID, userID string, role policy.Role) (bool, error) {
	joined, err := people.Join(tx, accountID, userID, role)
	if err == nil && joined {
		err = s.SendOwnersChanged(tx, accountID, userID, "", role)
	}
	return joined, err
}

// SendOwnersChanged sends OwnersChanged for a member whose role changes from was to is, if
// either is the role owner. An empty role means no member.
func (s *Service) SendOwnersChanged(tx *db.Tx, accountID, userID string, was, is policy.Role) error {
	if was != policy.Owner && is != policy.Owner {
		return nil
	}
	return OwnersChanged.Send(tx, Owner{AccountID: accountID, UserID: userID})
}

// Of lists the invitations to tx.Account, newest first.
func Of(tx *db.Tx, p op.PageIn) ([]Invitation, error) {
	rows, err := listMembers(tx, p)
	if err != nil {
		return nil, err
	}
	out := make([]Invitation, len(rows))
	for i, r := range rows {
		out[i] = r.wire(tx.Now)
	}
	return out, nil
}

// Withdraw withdraws an invitation to an account, or to the platform if account is
// empty. It returns fault.NotFound if there is no such invitation, and the fault
// already_accepted if it was accepted.
func Withdraw(tx *db.Tx, account, invitation string) (InvitationRevoked, error) {
	r, err := find(tx, account, invitation)
	if err != nil {
		return InvitationRevoked{}, err
	}
	switch r.status(tx.Now) {
	case Accepted:
		return InvitationRevoked{}, fault.Reason("already_accepted", "The invitation was accepted; "+
			"what it granted is taken back elsewhere.")
	case Revoked:
		return InvitationRevoked{ID: r.ID, Status: Revoked, Revoked: false}, nil
	}
	_, err = revoke.Exec(tx, r.ID, tx.Micros())
	return InvitationRevoked{ID: r.ID, Status: Revoked, Revoked: true}, err
}

// WithdrawFrom withdraws all that invites a user to tx.Account, and records it. Whoever stops
// being a member must not come back by what they were sent before.
func WithdrawFrom(tx *db.Tx, userID string) error {
	u, err := people.ReadUser(tx, userID)
	if err != nil {
		return err
	}
	open, err := openTo.All(tx, openToArgs{AccountID: tx.Account, UserID: userID, Email: u.Email})
	for _, one := range open {
		if err == nil {
			_, err = Withdraw(tx, tx.Account, one)
		}
		if err == nil {
			err = RevokedEvent.Record(tx, event.Subject{ID: one}, event.None{})
		}
	}
	return err
}

// RightsChanged withdraws what a user has invited others to and may not give any more: nobody
// lets themself in again, or others, by what they have sent before they were removed. It is a
// subscriber of event.RightsChanged.
func RightsChanged(tx *db.Tx, userID string) error {
	open, err := sentBy.All(tx, userID)
	if err != nil {
		return err
	}
	accounts := make([]string, len(open))
	for i, sent := range open {
		accounts[i] = sent.AccountID
	}
	again := func(i int, now policy.Role) bool {
		return now.Ceiling().Has(policy.Scopes(policy.WriteMembers)) && (now == policy.Owner || open[i].Role != policy.Owner)
	}
	return people.Ends(tx, userID, accounts, again, func(i int) error {
		out, err := Withdraw(tx, tx.Account, open[i].ID)
		if err != nil || !out.Revoked {
			return err
		}
		return RevokedEvent.Record(tx, event.Subject{ID: open[i].ID}, event.None{})
	})
}

func find(tx *db.Tx, account, invitation string) (r row, err error) {
	var ok bool
	if account == "" {
		r, ok, err = platformByID.Maybe(tx, invitation)
	} else {
		r, ok, err = memberByID.Maybe(tx, account, invitation)
	}
	if err == nil && !ok {
		err = fault.Missing("invitation")
	}
	return r, err
}

// Invited tells whether an address has an invitation that can be accepted.
func Invited(tx *db.Tx, email string) (bool, error) {
	n, err := openFor.One(tx, Address(email), tx.Micros())
	return n > 0, err
}
