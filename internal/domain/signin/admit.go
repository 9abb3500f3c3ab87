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

// Proof is a person whose address an e-mail code or an identity provider has proved.
type Proof struct {
	Method string // email, oidc or github, for the record
	Email  string // in lower case
	// Emails are further proved addresses. An invitation may be to one of them.
	Emails    []string
	Name      string
	Login     string // their login at the provider
	AvatarURL string
	// Issuer and Subject identify the person even if the address changes. They are
	// empty for an e-mail code.
	Issuer, Subject string
	// Invitation is the token of the invitation that the person answers, or empty.
	Invitation string
	// Account is the account whose own identity provider proves the person; the proof
	// is good in that account only. It is empty for all other proofs. Role is the
	// role of a person who is new to Account.
	Account string
	Role    policy.Role
}

// tries is how often a sign-in is tried if two newcomers want the same login.
const tries = 3

// Enter signs a person in: it finds or makes their user, accepts their invitation,
// and opens a session. before runs in the same transaction and returns the proof.
// cookie is the Set-Cookie value. Enter returns the fault not-invited for an unknown
// person without an invitation, and not-a-member for a known one who is no member of
// the account whose provider proves them.
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
	user, fresh, err := s.findOrMeet(tx, p)
	if err != nil {
		return "", who, err
	}
	if p.Issuer != "" {
		if _, err := link.Exec(tx, linkArgs{Issuer: p.Issuer, Subject: p.Subject, UserID: user, CreatedAt: tx.Micros()}); err != nil {
			return "", who, err
		}
	}
	acct, err := s.accountFor(tx, p, user, fresh)
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

// findOrMeet finds the user of a proof, or makes one if the person may come in. fresh
// tells that it made one.
func (s *Service) findOrMeet(tx *db.Tx, p Proof) (user string, fresh bool, err error) {
	var known bool
	if p.Issuer != "" {
		if user, known, err = userByIdentity.Maybe(tx, p.Issuer, p.Subject); err != nil || known {
			return user, false, err
		}
	}
	for _, email := range p.emails() {
		if user, known, err = people.UserByEmail(tx, email); err != nil || known {
			return user, false, err
		}
	}
	n := people.Newcomer{Email: p.Email, Name: p.Name, AvatarURL: p.AvatarURL, Login: p.Login, Approved: !s.Waitlist}
	invited := ""
	for _, email := range p.emails() {
		if ok, err := s.Invitations.Invited(tx, email); err != nil {
			return "", false, err
		} else if ok {
			invited = email
			break
		}
	}
	founded, err := people.HasUsers(tx)
	if err != nil {
		return "", false, err
	}
	// The first user is made by the address that the server prints, and by nothing else.
	if p.Account == "" && invited == "" && (!s.Waitlist || !founded) {
		return "", false, fault.New(fault.Forbidden, "not-invited", "Nobody here knows you yet. Ask for an invitation to your address.")
	}
	n.Email = cmp.Or(invited, n.Email)
	user, err = people.Meet(tx, n)
	return user, true, err
}

// emails returns the proved addresses, each once.
func (p Proof) emails() []string {
	out := []string{p.Email}
	for _, e := range p.Emails {
		if e != p.Email {
			out = append(out, e)
		}
	}
	return out
}

// accountFor returns the account for which a person's session acts: the account of
// the provider, the account of their invitation, the one they joined first, or a new
// one of their own.
func (s *Service) accountFor(tx *db.Tx, p Proof, user string, fresh bool) (acct string, err error) {
	if p.Account != "" {
		return p.Account, s.joinByProvider(tx, p, user, fresh)
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
		// With a waitlist anybody can sign in, so capacity comes from grants only.
		tier, seats = people.TierFree, 0
	}
	return people.OwnAccount(tx, user, tier, seats)
}

// joinByProvider makes a member of a new user whom the account's own provider proves.
// A user who existed before joins only by accepting an invitation; a provider's word
// alone does not make them a member. Then it returns the fault not-a-member.
func (s *Service) joinByProvider(tx *db.Tx, p Proof, user string, fresh bool) error {
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
