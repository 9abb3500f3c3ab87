package oauth

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/lazy"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
	"yardmaster/internal/web"
)

type authorizeIn struct {
	ClientID        string `json:"client_id,omitempty" doc:"what service.oauth_register answered"`
	RedirectURI     string `json:"redirect_uri,omitempty" doc:"where the browser is sent back to; one of those that were registered"`
	ResponseType    string `json:"response_type,omitempty" doc:"must be code"`
	Scope           string `json:"scope,omitempty" doc:"scopes, separated by spaces; left out: those that the person may give"`
	State           string `json:"state,omitempty" maxLength:"2000" doc:"sent back as it is"`
	Challenge       string `json:"code_challenge,omitempty" doc:"of PKCE: the verifier's SHA-256 in base64url"`
	ChallengeMethod string `json:"code_challenge_method,omitempty" doc:"must be S256"`
	Resource        string `json:"resource,omitempty" doc:"what the token is for: the address of the MCP endpoint, or left out"`
	// Account is no parameter of OAuth: our consent screen sends it for another
	// account of the person.
	Account string `json:"account,omitempty" maxLength:"100" doc:"id or login of the account that the program is to act in"`
}

// query returns the request as a query, to which the sign-in page leads back.
func (in authorizeIn) query() string {
	q := url.Values{}
	for name, value := range in.members() {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// members returns the parameters of the client by name.
func (in authorizeIn) members() map[string]string {
	return map[string]string{
		"client_id": in.ClientID, "redirect_uri": in.RedirectURI, "response_type": in.ResponseType, "scope": in.Scope, "state": in.State,
		"code_challenge": in.Challenge, "code_challenge_method": in.ChallengeMethod, "resource": in.Resource,
	}
}

// ticket is the request that a person was shown and may allow. It travels sealed in
// the page, and is good for one decision in the session that was shown the page.
type ticket struct {
	ID        string     `json:"id"`
	Session   string     `json:"session"`
	User      string     `json:"user"`
	Account   string     `json:"account"` // the account in which the program is to act
	Active    string     `json:"active"`  // the account in which the session acted
	Expires   time.Time  `json:"expires"`
	Scopes    policy.Set `json:"scopes"`
	Name      string     `json:"name"`
	Client    string     `json:"client,omitempty"`
	Redirect  string     `json:"redirect,omitempty"`
	State     string     `json:"state,omitempty"`
	Challenge string     `json:"challenge,omitempty"`
}

// Purposes for which tickets are sealed. A ticket of one kind does not open as one of
// the other.
const (
	sealConsent = "oauth-consent"
	sealDevice  = "oauth-device"
)

func (s *Service) issue(purpose string, t ticket) (string, error) {
	b, err := json.Marshal(t)
	return s.Ring.Seal(purpose, b), err
}

// open unseals a ticket that the actor may decide about now, and sets tx.Account to
// its account. It returns the fault bad-ticket for any other ticket.
func (s *Service) open(tx *db.Tx, purpose, sealed string, a policy.Actor) (t ticket, err error) {
	b, err := s.Ring.Unseal(purpose, sealed)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	switch {
	case err != nil:
		return t, badTicket("This form was not made by this server.")
	case !signedIn(a) || t.Session != a.CredentialID || t.User != a.UserID || t.Active != a.AccountID:
		return t, badTicket("This page was shown to another session, or for another account. Start again.")
	case !tx.Now.Before(t.Expires):
		return t, badTicket("This page was open for too long. Start again.")
	}
	if a, err = s.actorIn(tx, a, t.Account); err != nil {
		return t, err
	}
	if !s.grantable(a).Has(t.Scopes) {
		return t, badTicket("Your rights have changed since the page was shown. Start again.")
	}
	tx.Account = t.Account
	return t, nil
}

// actorIn returns the actor of the person in one of their accounts: the session's, or
// another that they chose. It has no scopes in an account of which they are no
// member.
func (s *Service) actorIn(tx *db.Tx, a policy.Actor, account string) (policy.Actor, error) {
	if account == a.AccountID {
		return a, nil
	}
	return s.Sessions.Within(tx, a, account)
}

func badTicket(detail string) *fault.Error { return fault.New(fault.Invalid, "bad-ticket", detail) }

var challengeForm = lazy.New(`^[A-Za-z0-9_-]{43}$`)

// check returns the fault of a request from a known client, or nil.
func (in authorizeIn) check(base string) error {
	switch {
	case in.ResponseType != responseCode:
		return refuse("unsupported_response_type", "response_type must be code.")
	case in.ChallengeMethod != "S256":
		return refuse("invalid_request", "code_challenge_method must be S256.")
	case !challengeForm.MatchString(in.Challenge):
		return refuse("invalid_request", "code_challenge must be 43 characters of base64url.")
	}
	return checkResource(base, in.Resource)
}

// checkResource accepts the addresses for which the tokens are good (RFC 8707), and
// no resource at all. For others it returns the fault invalid_target.
func checkResource(base, resource string) error {
	switch strings.TrimSuffix(resource, "/") {
	case "", base, base + ResourcePath:
		return nil
	}
	return refuse("invalid_target", "resource is not this server's.")
}

// authorize shows the consent screen. Whatever is wrong with the request, nobody is
// redirected to a client's address before they have decided on that screen (RFC 9700,
// section 4.11.2): registration is open, so otherwise a link to this server could
// lead to any site.
func (s *Service) authorize(ctx context.Context, in authorizeIn) (op.Reply, error) {
	client, ok := s.client(in.ClientID)
	if !ok {
		return op.Reply{}, refuse("invalid_client", "The program that sent you here is not registered: its client_id is not one "+
			"of this server.")
	}
	if !client.registered(in.RedirectURI) {
		return op.Reply{}, refuse("invalid_request", "The program that sent you here names a redirect_uri that it has not registered.")
	}
	a := policy.From(ctx)
	if !signedIn(a) {
		return toSignIn(authorizePath + "?" + in.query()), nil
	}
	base := op.RequestOf(ctx).BaseURL
	var names namesRow
	var accounts []choice
	var sealed string
	var scopes policy.Set
	err := in.check(base)
	if err == nil {
		err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			if accounts, err = s.choices(tx, a, in.Account); err != nil {
				return err
			}
			active := a.AccountID
			for _, c := range accounts {
				if c.Chosen {
					if a, err = s.actorIn(tx, a, c.ID); err != nil {
						return err
					}
				}
			}
			if scopes, err = s.narrow(in.Scope, a); err != nil {
				return err
			}
			if names, err = namesOf(tx, a.AccountID, a.UserID); err != nil {
				return err
			}
			sealed, err = s.issue(sealConsent, ticket{
				ID:        id.New(),
				Session:   a.CredentialID,
				User:      a.UserID,
				Account:   a.AccountID,
				Active:    active,
				Expires:   tx.Now.Add(ticketLife),
				Scopes:    scopes,
				Name:      client.Name,
				Client:    clientKey(in.ClientID),
				Redirect:  in.RedirectURI,
				State:     in.State,
				Challenge: in.Challenge,
			})
			return err
		})
	}
	if err != nil {
		return op.Reply{}, err
	}
	return render(ctx, 200, consentPage, consent{
		Action: authorizePath, Name: client.Name, User: names.Login, Account: names.Account, Scopes: inWords(scopes), Ticket: sealed,
		Destination: destination(in.RedirectURI), Days: int(tokenLife.Hours() / 24), Accounts: accounts, Request: in.members(),
	}, source(in.RedirectURI))
}

// choice is an account in which the person may let the program act.
type choice struct {
	ID     string
	Login  string
	Chosen bool
}

// choices returns the person's accounts. One is marked: the chosen one, by login or
// id, or else the session's. A session that is good in its own account only gets no
// choices.
func (s *Service) choices(tx *db.Tx, a policy.Actor, chosen string) ([]choice, error) {
	if a.Bound {
		return nil, nil
	}
	mine, err := people.Memberships(tx, a.UserID)
	if err != nil || len(mine) == 0 {
		return nil, err
	}
	all := make([]choice, len(mine))
	found := false
	for i, m := range mine {
		all[i] = choice{ID: m.AccountID, Login: m.Login}
		all[i].Chosen = chosen != "" && (all[i].Login == chosen || all[i].ID == chosen)
		found = found || all[i].Chosen
	}
	for i := range all {
		all[i].Chosen = all[i].Chosen || !found && all[i].ID == a.AccountID
	}
	return all, nil
}

type decisionIn struct {
	Ticket   string `json:"ticket,omitempty" doc:"sealed by the screen that is answered"`
	Decision string `json:"decision,omitempty" doc:"the button that was pressed: authorize or cancel"`
}

// allowed tells which of the two buttons was pressed. It returns the fault
// invalid_request for anything else.
func (in decisionIn) allowed() (bool, error) {
	switch in.Decision {
	case "authorize":
		return true, nil
	case "cancel":
		return false, nil
	}
	return false, refuse("invalid_request", "decision must be authorize or cancel.")
}

// decide carries out the person's decision on the consent screen.
func (s *Service) decide(ctx context.Context, in decisionIn) (op.Reply, error) {
	a := policy.From(ctx)
	var t ticket
	code := ""
	allowed, err := in.allowed()
	if err == nil {
		err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
			if t, err = s.open(tx, sealConsent, in.Ticket, a); err != nil || !allowed {
				return err
			}
			if _, err := purgeCodes.Exec(tx, db.Micros(tx.Now.Add(-tokenLife))); err != nil {
				return err
			}
			code = id.Opaque()
			_, err = insertCode.Exec(tx, insertCodeArgs{
				Hash: seal.Hash(code), Ticket: t.ID, AccountID: tx.Account, UserID: t.User, Client: t.Client, Name: t.Name,
				Redirect: t.Redirect, Challenge: t.Challenge, Scopes: db.JSON[[]string]{V: t.Scopes.Names()},
				Vouched: a.Bound, ExpiresAt: db.Micros(tx.Now.Add(codeLife)),
			})
			if err != nil {
				return err
			}
			return authorizedEvent.Record(tx, event.Subject{ID: t.ID},
				clientData{Name: t.Name, Redirect: destination(t.Redirect), Scopes: t.Scopes.Names()})
		})
	}
	if db.IsUnique(err) {
		err = badTicket("This page was answered before. Start again.")
	}
	if err != nil {
		return op.Reply{}, err
	}
	var denied *fault.Error
	if !allowed {
		denied = refuse("access_denied", "The user said no.")
	}
	return redirect(op.RequestOf(ctx).BaseURL, t.Redirect, t.State, denied, code), nil
}

// redirect sends the browser to the client's address with the answer and the issuer
// (RFC 9207). The status 303 makes the browser drop the form that it has just sent.
func redirect(base, to, state string, failure *fault.Error, code string) op.Reply {
	q := url.Values{"iss": {base}}
	if state != "" {
		q.Set("state", state)
	}
	if failure != nil {
		q.Set("error", failure.Slug)
		q.Set("error_description", failure.Detail)
	} else {
		q.Set("code", code)
	}
	return web.GoTo(answerAt(to, q))
}
