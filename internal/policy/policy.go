// Package policy decides whether an actor may call a capability, with pure functions:
// Actor is the caller, Rule is the demand of a row of the API, and both use scopes
// and the ceilings of roles. It reads and stores nothing.
package policy

import (
	"context"
	"strings"
	"time"

	"yardmaster/internal/fault"
)

// Credential is the kind of credential that proves an actor.
type Credential string

// The credentials.
const (
	None     Credential = ""
	Session  Credential = "session"  // browser cookie
	PAT      Credential = "pat"      // personal access token
	Operator Credential = "operator" // short-lived operator token
	Box      Credential = "box"      // a box's durable token
	System   Credential = "system"   // this process: loops, first boot
	FixLink  Credential = "fix_link" // link to the form of one blocker; CredentialID is the blocker's id
	// ActionLink is a link of a mail to a person who may decide; CredentialID is the link's
	// id, and the actor is the person.
	ActionLink Credential = "action_link"
)

// Actor is the resolved caller of one request. The zero value is anonymous.
type Actor struct {
	Credential   Credential
	CredentialID string
	UserID       string // empty for a machine
	AccountID    string
	Role         Role
	Scopes       Set
	ExpiresAt    time.Time // zero: permanent
	SignedInAt   time.Time // sessions only
	Bound        bool      // an identity provider of the account has vouched for it: good in that account only
	RequestID    string    // of the request being served, for audit rows
}

// recent is the age of a sign-in up to which a session proves that its person is there.
const recent = time.Hour

// Present returns fault.Forbidden with the slug reauth-required unless the caller is a
// session of the person's own, not of an account's identity provider, that signed in within
// the last hour.
func (a Actor) Present(now time.Time) error {
	if a.Credential == Session && !a.Bound && now.Sub(a.SignedInAt) <= recent {
		return nil
	}
	return fault.New(fault.Forbidden, "reauth-required", "This takes a session of your own that signed in within the last hour. "+
		"Prove again who you are at /auth/reauth.")
}

// Anonymous tells whether the actor has no credential.
func (a Actor) Anonymous() bool { return a.Credential == None }

// Label returns the name of the actor for audit rows: kind and id, never a secret.
func (a Actor) Label() string {
	switch {
	case a.UserID != "":
		return "user:" + a.UserID
	case a.Credential == Box:
		return "box:" + a.CredentialID
	case a.Credential == System:
		return "system"
	case a.CredentialID != "":
		return string(a.Credential) + ":" + a.CredentialID
	}
	return "anonymous"
}

// Rule is the demand of a row, checked before anything of the request is decoded.
type Rule struct {
	kind   ruleKind
	scopes Set
	user   bool
	sess   bool
	any    bool
	link   bool
	other  Set
}

type ruleKind uint8

const (
	unset ruleKind = iota
	public
	perRequest
	needScopes
)

// Public is the rule of rows that need no credential. Such a row may authenticate its
// caller itself.
func Public() Rule { return Rule{kind: public} }

// PerRequest is the rule of rows that need a valid credential and whose handler
// checks the rest.
func PerRequest() Rule { return Rule{kind: perRequest} }

// Demanding adds scopes to a per-request rule, for rows whose scopes are the same at
// every request.
func (r Rule) Demanding(scopes ...Scope) Rule { r.scopes = Scopes(scopes...); return r }

// Require is the rule of rows that need all the scopes.
func Require(scopes ...Scope) Rule { return Rule{kind: needScopes, scopes: Scopes(scopes...)} }

// OfUser narrows a rule to credentials that name a user.
func (r Rule) OfUser() Rule { r.user = true; return r }

// OfSession narrows a rule to a signed-in browser session.
func (r Rule) OfSession() Rule { r.user, r.sess = true, true; return r }

// OrAnyCredential lets every valid credential pass, although the scopes of the rule
// are published.
func (r Rule) OrAnyCredential() Rule { r.any = true; return r }

// OrHolding lets a credential pass as well that has all these scopes instead of those of the rule.
func (r Rule) OrHolding(scopes ...Scope) Rule { r.other = Scopes(scopes...); return r }

// OrFixLink lets the fix link of a blocker pass as well. The handler then serves that
// blocker only.
func (r Rule) OrFixLink() Rule { r.link = true; return r }

// Declared tells whether a row has a rule at all.
func (r Rule) Declared() bool { return r.kind != unset }

// IsPublic tells whether the row needs no credential.
func (r Rule) IsPublic() bool { return r.kind == public }

// Names lists the scopes that the rule demands.
func (r Rule) Names() []string { return r.scopes.Names() }

// Scopes returns the scopes that the rule demands.
func (r Rule) Scopes() Set { return r.scopes }

// NeedsUser tells whether the credential must name a user.
func (r Rule) NeedsUser() bool { return r.user }

// NeedsSession tells whether the credential must be a browser session.
func (r Rule) NeedsSession() bool { return r.sess }

// TakesAny tells whether every valid credential passes.
func (r Rule) TakesAny() bool { return r.any }

// Instead returns the scopes that suffice instead of those of the rule; none: nothing does.
func (r Rule) Instead() Set { return r.other }

// TakesFixLink tells whether the fix link of a blocker passes as well.
func (r Rule) TakesFixLink() bool { return r.link }

// String returns the rule as the contract's table prints it.
func (r Rule) String() string {
	switch r.kind {
	case public:
		return "none"
	case perRequest:
		return "per-request"
	case needScopes:
		return strings.Join(r.Names(), "+")
	}
	return ""
}

// Check returns nil if the actor may call the row. It returns fault.Unauthenticated
// if the credential is missing or of the wrong kind, and fault.Forbidden if it does
// not suffice.
func (r Rule) Check(a Actor) error {
	if r.kind == public {
		return nil
	}
	if a.Anonymous() || a.Credential == FixLink && !r.link {
		return Unauthenticated()
	}
	if a.Credential == FixLink {
		return nil
	}
	if a.Credential == Box && !r.user && !r.any {
		// The token of a box is good only for rows that check it themselves and for
		// rows that take any credential.
		return Unauthenticated()
	}
	if r.user && a.Credential == Box {
		return userRequired()
	}
	if !r.any && (r.other == 0 || r.other&^a.Scopes != 0) {
		if missing := r.scopes &^ a.Scopes; missing != 0 {
			return MissingScope(missing)
		}
	}
	if r.user && a.UserID == "" {
		return userRequired()
	}
	if r.sess && a.Credential != Session {
		return fault.New(fault.Forbidden, "session-required", "This needs a signed-in browser session.")
	}
	return nil
}

func userRequired() error {
	return fault.New(fault.Forbidden, "user-required", "This needs a credential that names a user; a machine token does not.")
}

// Unauthenticated returns the same fault for a credential that is missing, malformed,
// unknown, expired or revoked.
func Unauthenticated() *fault.Error {
	return fault.New(fault.Unauthenticated, "", "No valid credential came with the request.")
}

// MissingScope returns the fault for a valid credential that lacks scopes, which it
// names.
func MissingScope(missing Set) *fault.Error {
	names := missing.Names()
	return fault.Newf(fault.Forbidden, "missing-scope", "The credential lacks %s.", strings.Join(names, ", ")).With("missing_scopes", names)
}

type actorKey struct{}

// With puts the actor into the context of a request.
func With(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, a) }

// From returns the actor of a context; the zero Actor, which is anonymous, if there
// is none.
func From(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}
