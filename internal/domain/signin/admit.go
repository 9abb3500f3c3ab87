package signin

import (
	"cmp"
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Proof is a person whose address somebody vouches for.
type Proof struct {
	Method string // email, oidc or github, for the record
	Email  string // in lower case
	// Further addresses that are proved as well; an invitation may be to one of
	// them.
	Emails    []string
	Name      string
	Login     string // what they are called there
	AvatarURL string
	// Issuer and Subject name the person for good, whatever becomes of the
	// address. Empty for a mailed code.
	Issuer, Subject string
	// Invitation is the token of the invitation they answer, if they do.
	Invitation string
	// Account is the one whose own identity provider vouches, empty for all
	// others: its word is good in that account only. Role is what the provider
	// makes of people who are new to it.
	Account string
	Role    policy.Role
}

// tries is how often a sign-in begins anew when two newcomers want one login.
const tries = 3

// Enter signs a person in: it finds their user or makes one, answers their
// invitation, and opens a session. before runs in the same transaction and
// proves them. It fails with 403 not-invited for a stranger whom nobody
// expects, and not-a-member for who is not of the account that vouches.
func (s *Service) Enter(ctx context.Context, before func(tx *db.Tx) (Proof, error)) (cookie string, who SignedIn, err error) {
	for range tries {
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			p, err := before(tx)
			if err != nil {
				return err
			}
			cookie, who, err = s.enter(tx, p)
			return err
		})
		if !db.IsUnique(err) {
			break
		}
	}
	return cookie, who, err
}

func (s *Service) enter(tx *db.Tx, p Proof) (cookie string, who SignedIn, err error) {
	user, fresh, err := s.person(tx, p)
	if err != nil {
		return "", who, err
	}
	if p.Issuer != "" {
		if _, err := link.Exec(tx, linkArgs{Issuer: p.Issuer, Subject: p.Subject, UserID: user, CreatedAt: tx.Micros()}); err != nil {
			return "", who, err
		}
	}
	acct, err := s.place(tx, p, user, fresh)
	if err != nil {
		return "", who, err
	}
	var bound *string
	if p.Account != "" {
		bound = &acct
	}
	if cookie, err = open(tx, user, acct, bound, op.RequestOf(tx.Context()).Secure); err != nil {
		return "", who, err
	}
	tx.AfterCommit(func() { s.ForgetUser(user) })
	return cookie, SignedIn{UserID: user, AccountID: acct}, recordSignIn(tx, user, acct, p.Method, fresh)
}

func recordSignIn(tx *db.Tx, user, acct, method string, fresh bool) error {
	return signedInEvent.Record(tx, event.Subject{ID: user, Account: acct},
		signedInData{Method: method, NewUser: fresh, IP: op.RequestOf(tx.Context()).IP})
}

// person finds the user of a proof, or makes one of who may come in.
func (s *Service) person(tx *db.Tx, p Proof) (user string, fresh bool, err error) {
	var known bool
	if p.Issuer != "" {
		if user, known, err = userByIdentity.Maybe(tx, p.Issuer, p.Subject); err != nil || known {
			return user, false, err
		}
	}
	for _, email := range p.all() {
		if user, known, err = people.UserByEmail(tx, email); err != nil || known {
			return user, false, err
		}
	}
	n := people.Newcomer{Email: p.Email, Name: p.Name, AvatarURL: p.AvatarURL, Login: p.Login, Approved: !s.Waitlist}
	invited := ""
	for _, email := range p.all() {
		if ok, err := s.Invitations.Invited(tx, email); err != nil {
			return "", false, err
		} else if ok {
			invited = email
			break
		}
	}
	if p.Account == "" && invited == "" && !s.Waitlist {
		return "", false, fault.New(fault.Forbidden, "not-invited", "Nobody here knows you yet. Ask for an invitation to your address.")
	}
	n.Email = cmp.Or(invited, n.Email)
	user, err = people.Meet(tx, n)
	return user, true, err
}

// all are the proved addresses, each once.
func (p Proof) all() []string {
	out := []string{p.Email}
	for _, e := range p.Emails {
		if e != p.Email {
			out = append(out, e)
		}
	}
	return out
}

// place is the account that a person's session acts for: the one that vouches,
// the one they are invited to, the first of theirs, or one of their own.
func (s *Service) place(tx *db.Tx, p Proof, user string, fresh bool) (acct string, err error) {
	if p.Account != "" {
		return p.Account, s.sent(tx, p, user, fresh)
	}
	if p.Invitation != "" {
		if acct, err = s.Invitations.Redeem(tx, p.Invitation, user); err != nil && !fault.IsKind(err, fault.NotFound) || acct != "" {
			return acct, err
		}
	}
	acct, ok, err := people.FirstAccount(tx, user)
	if err != nil || ok {
		return acct, err
	}
	tier, seats := people.TierSelfHosted, s.Seats
	if s.Waitlist {
		// Where strangers come, capacity is given, not taken.
		tier, seats = people.TierFree, 0
	}
	return people.OwnAccount(tx, user, tier, seats)
}

// sent makes a member of who was sent by the account's own identity provider
// and is new here. Who was here before is not handed to a provider by its word
// alone: they join by an invitation, which they accept.
func (s *Service) sent(tx *db.Tx, p Proof, user string, fresh bool) error {
	_, member, err := people.Role(tx, p.Account, user)
	switch {
	case err != nil || member:
		return err
	case !fresh:
		return fault.New(fault.Forbidden, "not-a-member", "There is a user with this address who is no member of the account. "+
			"Accept an invitation to it first.")
	}
	_, err = people.Join(tx, p.Account, user, p.Role)
	return err
}
