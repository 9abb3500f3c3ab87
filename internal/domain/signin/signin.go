// Package signin lets people prove who they are, and resolves the credential of every
// request to an actor. Credentials are browser sessions in a cookie and personal
// access tokens. Resolved credentials are kept in memory for a moment, and dropped at
// once if they are revoked on this node.
package signin

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// Lifetimes of a browser session.
const (
	Absolute = 30 * 24 * time.Hour
	Idle     = 14 * 24 * time.Hour
)

// fresh is how long a resolved credential is trusted without a look at the database.
// A token revoked on another node stops within that time.
const fresh = time.Second

// usedEvery is how often the use of a credential is recorded.
const usedEvery = time.Minute

// Cookie returns the name of the session cookie. Over https it has the prefix
// __Host-.
func Cookie(secure bool) string {
	if secure {
		return "__Host-svc_session"
	}
	return "svc_session"
}

// Presented is the credential that a request presents.
type Presented = op.Presented

// Invitations lets new people in.
type Invitations interface {
	// Invited tells whether an address has an invitation that can be accepted.
	Invited(tx *db.Tx, email string) (bool, error)
	// Redeem accepts an invitation for a user and returns the account that they
	// joined, if there is one. It returns fault.NotFound if there is no such token.
	Redeem(tx *db.Tx, token, userID string) (accountID string, err error)
}

// Providers asks about the identity providers of this server and of accounts.
type Providers interface {
	// Any tells whether an account has an identity provider of its own.
	Any(tx *db.Tx) (bool, error)
	// Vouches tells whether the issuer of an identity, as a Proof has it, is asked here
	// still, and would let the user in.
	Vouches(tx *db.Tx, userID, issuer string) (bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB    *db.DB
	Clock func() time.Time // of the cache and of last uses; other stored times are the transaction's
	Ring  *seal.Keyring
	Mail  *mail.Outbox

	// Mailed tells that mail leaves the machine, so that people receive codes.
	Mailed bool
	// Waitlist lets people sign in without an invitation; they then wait for
	// approval.
	Waitlist bool
	// Seats is the number of seats of a newcomer's own account.
	Seats int
	// GitHub tells that people can sign in with GitHub.
	GitHub bool

	Invitations Invitations
	Providers   Providers
}

// Service resolves credentials and implements the routes of sign-in.
type Service struct {
	Needs

	mu    sync.Mutex
	known map[lookup]entry

	checks checks
	drops  int // counts the calls of Forget and ForgetUser
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// lookup is the hash of a credential and the account that the caller chose, if any.
type lookup struct{ hash, account string }

type entry struct {
	actor policy.Actor
	until time.Time
	used  time.Time // when its use was last recorded
	asked bool      // whether a request has used it since it was resolved
}

// Forget drops a credential from memory by its hash.
func (s *Service) Forget(hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	maps.DeleteFunc(s.known, func(l lookup, _ entry) bool { return l.hash == hash })
}

// ForgetUser drops all credentials of a user from memory.
func (s *Service) ForgetUser(userID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drops++
	maps.DeleteFunc(s.known, func(_ lookup, e entry) bool { return e.actor.UserID == userID })
}

// CredentialDropped calls Forget after the transaction has committed.
func (s *Service) CredentialDropped(tx *db.Tx, hash string) error {
	tx.AfterCommit(func() { s.Forget(hash) })
	return nil
}

// RightsChanged calls ForgetUser after the transaction has committed.
func (s *Service) RightsChanged(tx *db.Tx, userID string) error {
	tx.AfterCommit(func() { s.ForgetUser(userID) })
	return nil
}

// Authenticate resolves a credential to an actor. A request without one has the
// anonymous actor. It returns fault.Unauthenticated for a credential that is
// malformed, unknown, expired or revoked, and the faults cross-origin, not-a-member
// and sso-session for sessions.
func (s *Service) Authenticate(ctx context.Context, p Presented) (policy.Actor, error) {
	switch {
	case p.Bearer != "":
		if !id.Checked(id.PAT, p.Bearer) {
			return policy.Actor{}, policy.Unauthenticated()
		}
		return s.cached(ctx, seal.Hash(p.Bearer), "", resolveToken)
	case p.Session != "":
		if p.Write && !p.SameOrigin {
			return policy.Actor{}, fault.New(fault.Forbidden, "cross-origin", strings.TrimSpace("A cookie cannot be used for a "+
				"write from another origin. "+p.Came))
		}
		return s.cached(ctx, seal.Hash(p.Session), p.Account, resolveSession)
	}
	return policy.Actor{}, nil
}

type resolver func(tx *db.Tx, hash, account string) (policy.Actor, error)

func (s *Service) cached(ctx context.Context, hash, acct string, resolve resolver) (policy.Actor, error) {
	key := lookup{hash, acct}
	now := s.Clock()
	s.mu.Lock()
	e, ok := s.known[key]
	live := ok && now.Before(e.until)
	if live && !e.asked {
		e.asked = true
		s.known[key] = e
	}
	drops := s.drops
	s.mu.Unlock()
	if live {
		return e.actor, nil
	}
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		e.actor, err = resolve(tx, hash, acct)
		return err
	})
	if err != nil {
		return policy.Actor{}, err
	}
	e.until, e.asked = now.Add(fresh), true
	stale := now.Sub(e.used) >= usedEvery
	if stale {
		e.used = now
	}
	s.mu.Lock()
	if s.known == nil || len(s.known) > 10_000 {
		s.known = map[lookup]entry{}
	}
	if s.drops == drops { // otherwise this credential may have been revoked meanwhile
		s.known[key] = e
	}
	s.mu.Unlock()
	if stale {
		go s.used(context.WithoutCancel(ctx), e.actor, hash, now)
	}
	return e.actor, nil
}

// used records the last use of a credential, about once a minute, with the time of the
// request: the record may be late, and must not make a session live longer. Its errors are
// ignored: the next use is recorded again.
func (s *Service) used(ctx context.Context, a policy.Actor, hash string, at time.Time) {
	_ = s.DB.Write(ctx, func(tx *db.Tx) error {
		if a.Credential == policy.Session {
			_, err := touchSession.Exec(tx, hash, db.Micros(at))
			return err
		}
		return token.Touch(tx, a.CredentialID, at)
	})
}

func resolveToken(tx *db.Tx, hash, _ string) (policy.Actor, error) {
	c, ok, err := token.Resolve(tx, hash)
	if err != nil {
		return policy.Actor{}, err
	}
	if !ok {
		return policy.Actor{}, policy.Unauthenticated()
	}
	scopes, _ := policy.ParseScopes(c.Scopes.V)
	a := policy.Actor{Credential: policy.Credential(c.Kind), CredentialID: c.ID, AccountID: c.AccountID, Scopes: scopes}
	if c.ExpiresAt != nil {
		a.ExpiresAt = *c.ExpiresAt
	}
	if c.UserID == nil {
		return a, nil
	}
	if c.Role == nil {
		// The minter is no longer a member, so the token acts for no user.
		return policy.Actor{}, policy.Unauthenticated()
	}
	a.UserID, a.Role = *c.UserID, policy.Role(*c.Role)
	admin := c.Admin != nil && *c.Admin
	a.Scopes &= ceiling(a.Role, admin) | operator(a.Credential, admin)
	if c.Vouched {
		a = bound(a)
	}
	if c.Approved == nil {
		a.Scopes &= policy.Scopes(policy.ReadAccount)
	}
	return a, nil
}

// bound is an actor whom the identity provider of an account has vouched for, in a session
// or in one that has minted a token: they are good in that account only, and never act as an
// owner. Otherwise a member who may set the provider could become one.
func bound(a policy.Actor) policy.Actor {
	a.Bound = true
	if a.Role == policy.Owner {
		a.Role = policy.Admin
	}
	a.Scopes &= a.Role.Ceiling() &^ policy.Scopes(policy.SelfKeys, policy.SelfPrompt)
	return a
}

// operator returns the scopes that an operator token may hold; none if its user is no
// operator.
func operator(c policy.Credential, admin bool) policy.Set {
	if c == policy.Operator && admin {
		return policy.OperatorOnly
	}
	return 0
}

func ceiling(r policy.Role, admin bool) policy.Set {
	s := r.Ceiling()
	if admin {
		s |= policy.PlatformRead
	}
	return s
}

func resolveSession(tx *db.Tx, hash, acct string) (policy.Actor, error) {
	r, ok, err := sessionByHash.Maybe(tx, hash, tx.Micros(), db.Micros(tx.Now.Add(-Idle)))
	if err != nil {
		return policy.Actor{}, err
	}
	if !ok {
		return policy.Actor{}, policy.Unauthenticated()
	}
	if acct != "" {
		if r.AccountID, ok, err = people.MemberAccount(tx, r.UserID, acct); err != nil {
			return policy.Actor{}, err
		} else if !ok {
			return policy.Actor{}, fault.New(fault.Forbidden, "not-a-member", "X-Svc-Account names no account this user belongs to.")
		}
	}
	role, ok, err := people.Role(tx, r.AccountID, r.UserID)
	if err != nil {
		return policy.Actor{}, err
	}
	if !ok {
		return policy.Actor{}, policy.Unauthenticated()
	}
	if r.SSOAccountID != nil && *r.SSOAccountID != r.AccountID {
		return policy.Actor{}, fault.New(fault.Forbidden, "sso-session", "This session was opened by the identity provider of "+
			"another account, and is good there only.")
	}
	a := policy.Actor{
		Credential: policy.Session, CredentialID: hash[:16], UserID: r.UserID, AccountID: r.AccountID,
		Role: role, ExpiresAt: r.ExpiresAt, SignedInAt: r.SignedInAt,
	}
	a.Scopes = ceiling(a.Role, r.PlatformAdmin)
	if r.SSOAccountID != nil {
		a = bound(a)
	}
	if r.ApprovedAt == nil {
		a.Scopes = policy.Scopes(policy.ReadAccount)
	}
	return a, nil
}

// Within returns the actor of a session in another account of its user. The actor has
// no scopes if the user is no member there, or if the session is good in its own
// account only.
func (s *Service) Within(tx *db.Tx, a policy.Actor, accountID string) (policy.Actor, error) {
	role, member, err := people.Role(tx, accountID, a.UserID)
	if err != nil {
		return a, err
	}
	a.AccountID, a.Role, a.Scopes = accountID, role, 0
	if !member || a.Bound {
		return a, nil
	}
	admin, approved, err := people.Standing(tx, a.UserID)
	if err != nil {
		return a, err
	}
	a.Scopes = ceiling(a.Role, admin)
	if !approved {
		a.Scopes = policy.Scopes(policy.ReadAccount)
	}
	return a, nil
}

// UserOf is the user whose identity an issuer vouches for; "" if there is none.
func UserOf(tx *db.Tx, issuer, subject string) (string, error) {
	user, _, err := userByIdentity.Maybe(tx, issuer, subject)
	return user, err
}

// Open makes a browser session and returns its Set-Cookie value.
func (s *Service) Open(tx *db.Tx, userID, accountID string, secure bool) (cookie string, err error) {
	return open(tx, userID, accountID, nil, secure)
}

func open(tx *db.Tx, userID, accountID string, sso *string, secure bool) (cookie string, err error) {
	plain := id.Opaque()
	if _, err := dropDead.Exec(tx, userID, tx.Micros(), db.Micros(tx.Now.Add(-Idle))); err != nil {
		return "", err
	}
	if _, err := insertSession.Exec(tx, insertSessionArgs{
		Hash: seal.Hash(plain), UserID: userID, AccountID: accountID, SignedInAt: tx.Micros(),
		ExpiresAt: db.Micros(tx.Now.Add(Absolute)), SSOAccountID: sso,
	}); err != nil {
		return "", err
	}
	if err := people.NoteSignIn(tx, userID); err != nil {
		return "", err
	}
	return setCookie(plain, int(Absolute.Seconds()), secure), nil
}

func setCookie(value string, maxAge int, secure bool) string {
	c := fmt.Sprintf("%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax", Cookie(secure), value, maxAge)
	if secure {
		c += "; Secure"
	}
	return c
}
