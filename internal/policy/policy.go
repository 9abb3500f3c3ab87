// Package policy answers one question, "may this actor call it?", with pure
// functions: who is calling (Actor), what a row demands (Rule), and the scopes
// and role ceilings both speak of. It reads nothing and stores nothing.
package policy

import (
	"context"
	"strings"
	"time"

	"yardmaster/internal/fault"
)

// Credential is what kind of thing vouches for an actor.
type Credential string

// The credentials.
const (
	None     Credential = ""
	Session  Credential = "session"  // browser cookie
	PAT      Credential = "pat"      // personal access token
	Operator Credential = "operator" // short-lived operator token
	Box      Credential = "box"      // a box's durable token
	System   Credential = "system"   // this process: loops, first boot
	FixLink  Credential = "fix_link" // the link of one blocker's form; CredentialID is the blocker
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
	Bound        bool      // a session that is good in its account only
	RequestID    string    // of the request being served, for audit rows
}

// Anonymous tells whether nothing vouches for the caller.
func (a Actor) Anonymous() bool { return a.Credential == None }

// Label names the actor on audit rows: kind and id, never a secret.
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

// Rule is what a row demands before anything of the request is decoded.
type Rule struct {
	kind   ruleKind
	scopes Set
	user   bool
	sess   bool
	any    bool
	link   bool
}

type ruleKind uint8

const (
	unset ruleKind = iota
	public
	perRequest
	needScopes
)

// Public rows are mounted ahead of the credential guard; the string says what
// authenticates instead and is published.
func Public() Rule { return Rule{kind: public} }

// PerRequest rows need a valid credential; the handler asserts the rest.
func PerRequest() Rule { return Rule{kind: perRequest} }

// Demanding is a per-request row whose scopes are the same at every request.
func (r Rule) Demanding(scopes ...Scope) Rule { r.scopes = Scopes(scopes...); return r }

// Require rows need every scope named.
func Require(scopes ...Scope) Rule { return Rule{kind: needScopes, scopes: Scopes(scopes...)} }

// OfUser narrows a rule to credentials that name a user.
func (r Rule) OfUser() Rule { r.user = true; return r }

// OfSession narrows a rule to a signed-in browser session.
func (r Rule) OfSession() Rule { r.user, r.sess = true, true; return r }

// OrAnyCredential keeps the published scopes and lets every valid credential
// pass all the same.
func (r Rule) OrAnyCredential() Rule { r.any = true; return r }

// OrFixLink lets the fix link of a blocker pass as well; the handler answers
// for that blocker alone.
func (r Rule) OrFixLink() Rule { r.link = true; return r }

// Declared tells whether a row has a rule at all.
func (r Rule) Declared() bool { return r.kind != unset }

// IsPublic tells whether the row is ahead of the guard.
func (r Rule) IsPublic() bool { return r.kind == public }

// Names lists the scopes the rule demands.
func (r Rule) Names() []string { return r.scopes.Names() }

// Scopes are those that the row demands.
func (r Rule) Scopes() Set { return r.scopes }

// NeedsUser tells whether the credential must name a user.
func (r Rule) NeedsUser() bool { return r.user }

// NeedsSession tells whether the credential must be a browser's session.
func (r Rule) NeedsSession() bool { return r.sess }

// TakesAny tells whether every valid credential passes.
func (r Rule) TakesAny() bool { return r.any }

// TakesFixLink tells whether the link of a blocker passes as well.
func (r Rule) TakesFixLink() bool { return r.link }

// String is the rule as the contract's table prints it.
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

// Check decides. It fails with 401 for a missing credential and 403 for one
// that does not suffice.
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
		// A box's token is good on the rows that read it themselves, and may ask
		// who it is.
		return Unauthenticated()
	}
	if r.user && a.Credential == Box {
		return userRequired()
	}
	if !r.any {
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

// Unauthenticated is the one answer to a missing, malformed, unknown, expired
// or revoked credential.
func Unauthenticated() *fault.Error {
	return fault.New(fault.Unauthenticated, "", "No valid credential came with the request.")
}

// MissingScope is the answer to a valid credential that lacks scopes.
func MissingScope(missing Set) *fault.Error {
	names := missing.Names()
	return fault.Newf(fault.Forbidden, "missing-scope", "The credential lacks %s.", strings.Join(names, ", ")).With("missing_scopes", names)
}

type actorKey struct{}

// With puts the actor into the context of a request.
func With(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, a) }

// From finds the actor; without one it is anonymous.
func From(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}
