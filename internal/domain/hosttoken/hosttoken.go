// Package hosttoken is the tokens that people have at code hosts, and the repositories
// that are driven with them: git of a person's runs, and of the person, goes there with
// the person's own token in place of the App's. A token is sealed when it is stored, is
// good in one account, and is never shown.
//
//   - hosttoken.go: Service, Token, Binding
//   - drive.go: which credential git has at the host
//   - ops.go, store.go, events.go
package hosttoken

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
	"yardmaster/internal/seal"
)

// State is the state of a token.
type State string

// Values lists all states.
func (State) Values() []string { return []string{StateNone, StateOK, StateExpired, StateRefused} }

// BindingState is the state of a binding.
type BindingState string

// States of a token and of a binding.
const (
	StateNone      = "none"      // there is no token
	StateOK        = "ok"        // the host took it when it was last asked
	StateUnchecked = "unchecked" // the token was replaced, and the host has not been asked about the repository since
	StateExpired   = "expired"   // its end has passed
	StateRefused   = "refused"   // the host did not take it
)

// Values lists all states.
func (BindingState) Values() []string {
	return []string{StateOK, StateUnchecked, StateExpired, StateRefused}
}

const (
	mostGrants   = 10  // repositories that a host is asked about when a token comes
	mostBindings = 100 // of a person in an account
)

// Token is what the owner of a token is shown of it.
type Token struct {
	_           struct{}   `doc:"The state of the caller's token at a code host. The token itself is never shown." schema:"HostToken"`
	Connected   bool       `json:"connected" example:"true" doc:"whether there is one"`
	State       State      `json:"state" example:"ok" doc:"none; ok; expired: its end has passed; refused: the host no longer takes it"`
	Host        *string    `json:"host" example:"builtin" doc:"the code host that it is for"`
	Login       *string    `json:"login" example:"ann" doc:"whose it is there"`
	Masked      *string    `json:"masked" example:"…4f2a" doc:"its last characters, to tell it by"`
	ExpiresAt   *time.Time `json:"expires_at" doc:"when it ends; null: never, or the host does not say"`
	CheckedAt   *time.Time `json:"checked_at" doc:"when the host was last asked about it"`
	ConnectedAt *time.Time `json:"connected_at" doc:"when it was stored"`
	Grants      []Grant    `json:"grants" doc:"what the host said of repositories of the account when it was asked: of the ten newest when the token came, and of each that was bound"`
}

// Grant is what a token may do in a repository.
type Grant struct {
	_         struct{}  `doc:"What a token may do in a repository, as the code host said." schema:"HostTokenGrant"`
	Repo      string    `json:"repo" example:"acme/web" doc:"the repository, owner/name"`
	Push      bool      `json:"push" doc:"true: it may push; false: read alone"`
	CheckedAt time.Time `json:"checked_at" doc:"when the host said so"`
}

// Binding is a repository that is driven with the token of its owner.
type Binding struct {
	_         struct{}     `doc:"A repository that the caller drives with their own token." schema:"RepoBinding"`
	Repo      string       `json:"repo" example:"acme/web" doc:"the repository, owner/name"`
	RepoID    string       `json:"repo_id" format:"uuid" doc:"its id"`
	Host      string       `json:"host" example:"builtin" doc:"the code host that it is at"`
	State     BindingState `json:"state" example:"ok" doc:"with expired and refused git of the caller's runs is refused there: the App's credential is not used in its place"`
	Reason    *string      `json:"reason" example:"null" doc:"why it does not work, and what to do; null while nothing is known to be wrong"`
	CheckedAt *time.Time   `json:"checked_at" doc:"when the host was last asked whether the token may push there; null: not with this token"`
	BoundAt   time.Time    `json:"bound_at" doc:"when it was bound"`
}

// Repo is a repository of an account.
type Repo struct {
	ID, Account string
	At          codehost.Repo
}

// Repos finds repositories.
type Repos interface {
	// ByName finds one of tx.Account by its name at a host.
	ByName(tx *db.Tx, host, owner, name string) (Repo, bool, error)
	// Newest lists enabled ones of tx.Account at a host.
	Newest(tx *db.Tx, host string, limit int) ([]Repo, error)
	// ByIDs lists those of tx.Account that have the ids.
	ByIDs(tx *db.Tx, ids []string) ([]Repo, error)
	// At finds one of whatever account by its identity at its host.
	At(tx *db.Tx, r codehost.Repo) (Repo, bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Ring   *seal.Keyring
	Hosts  *codehost.Hosts
	Repos  Repos
	Logger *slog.Logger
}

// Service keeps the tokens and the bindings.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// purpose is the place that a token is sealed for.
func purpose(tokenID string) string { return "host-token/" + tokenID }

// mask is the last four characters of a token, which has at least 10.
func mask(token string) string { return "…" + token[len(token)-4:] }

// asked turns an error of a host into a fault for the caller.
func asked(err error) error {
	var busy *codehost.BusyError
	if errors.As(err, &busy) {
		return fault.New(fault.Unavailable, "code-host-unavailable", "The code host does not answer now. Try again later.").
			After(busy.After).Because(err)
	}
	var forbidden *codehost.ForbiddenError
	if errors.As(err, &forbidden) { // such as the token of an App, which is nobody's
		return codehost.ErrTokenRefused.Because(err)
	}
	return err
}

// state is that of a token at a time.
func (r row) state(now time.Time) string {
	switch {
	case r.RefusedAt != nil:
		return StateRefused
	case r.ExpiresAt != nil && !now.Before(*r.ExpiresAt):
		return StateExpired
	}
	return StateOK
}

// why says why a binding does not work; "" if nothing is known to be wrong.
func (b binding) why(t row, now time.Time) (state BindingState, reason string) {
	switch state := t.state(now); {
	case state == StateExpired:
		return BindingState(state), "The token has expired. Connect another one."
	case state == StateRefused:
		return BindingState(state), "The code host does not accept the token: it was revoked, or has expired. Connect another one."
	case b.RefusedAt != nil:
		return StateRefused, "The code host does not let the token at the repository, or lets it read alone. Grant it there, and bind the repository again."
	case b.CheckedAt == nil:
		return StateUnchecked, ""
	}
	return StateOK, ""
}

// UserAt finds the user of tx.Account whose token says that they are somebody at a host;
// "" if there is none. sure is false if only the login tells, which may have another owner
// there by now.
func UserAt(tx *db.Tx, host, hostID, login string) (userID string, sure bool, err error) {
	if hostID == "" && login == "" {
		return "", false, nil
	}
	r, _, err := userAt.Maybe(tx, userAtArgs{AccountID: tx.Account, Host: host, HostUserID: hostID, Login: strings.ToLower(login)})
	return r.UserID, r.HostUserID != "", err
}

// LoginAt is the login of a user of tx.Account at a host; "" if no token tells.
func LoginAt(tx *db.Tx, userID, host string) (string, error) {
	login, _, err := loginAt.Maybe(tx, tx.Account, userID, host)
	return login, err
}

// RightsChanged forgets the tokens that a user has in accounts to which they do not
// belong any more. It is a subscriber of event.RightsChanged.
func RightsChanged(tx *db.Tx, userID string) error {
	rows, err := ofUser.All(tx, userID)
	if err != nil {
		return err
	}
	accounts := make([]string, len(rows))
	for i, r := range rows {
		accounts[i] = r.AccountID
	}
	return people.Leave(tx, userID, accounts, func(i int) error {
		if _, err := forget(tx, userID); err != nil {
			return err
		}
		return clearedEvent.Record(tx, event.Subject{ID: userID}, clearedData{Host: rows[i].Host, Why: "left"})
	})
}

// check asks a host about a token and one repository, or none.
func (s *Service) check(ctx context.Context, host, token string, r codehost.Repo) (codehost.PersonToken, error) {
	p := s.Hosts.People(host)
	if p == nil {
		return codehost.PersonToken{}, noHost()
	}
	out, err := p.CheckToken(ctx, token, r)
	return out, asked(err)
}

func noHost() error {
	return fault.Reason("no-code-host", "The server is connected to no code host where people have tokens.")
}
