package sso

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/fault"
	"yardmaster/internal/idp"
	"yardmaster/internal/web"
)

// flow is a sign-in during which the browser is at a provider. It travels sealed in a
// cookie, so that only the browser that began the sign-in can finish it.
type flow struct {
	idp.Ticket
	Account  string    `json:"account,omitempty"` // account of the provider; empty for GitHub
	ReturnTo string    `json:"return_to"`
	Expires  time.Time `json:"expires"`
}

const (
	flowLife  = 10 * time.Minute
	sealFlow  = "signin-flow"
	lost      = "signin-lost"
	maxCookie = 4000 // size in bytes that every browser accepts
)

func cookieName(secure bool) string {
	if secure {
		return "__Host-svc_flow"
	}
	return "svc_flow"
}

func flowCookie(value string, age time.Duration, secure bool) string {
	c := fmt.Sprintf("%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax", cookieName(secure), value, int(age.Seconds()))
	if secure {
		c += "; Secure"
	}
	return c
}

// sendAway redirects the browser to a provider, with the flow in a cookie.
func (s *Service) sendAway(ctx context.Context, f flow, address string) (op.Reply, error) {
	b, err := json.Marshal(f)
	if err != nil {
		return op.Reply{}, err
	}
	cookie := flowCookie(s.Ring.Seal(sealFlow, b), flowLife, op.RequestOf(ctx).Secure)
	if len(cookie) > maxCookie {
		return s.failed(ctx, f.ReturnTo, fault.New(fault.Invalid, "", "The address you are to go to then is too long for this "+
			"way to sign in. Take another one."))
	}
	out := web.GoTo(address, cookie)
	out.Header["Referrer-Policy"] = "no-referrer"
	return out, nil
}

// openFlow reads the flow from the cookies and compares it with the state that the
// provider returned. It returns the fault signin-lost if there is no flow, if the
// state differs, or if the flow has expired.
func (s *Service) openFlow(ctx context.Context, cookies, state string, now time.Time) (f flow, err error) {
	gone := fault.New(fault.Invalid, lost, "This sign-in was not begun in this browser, or too long ago. Begin again.")
	name := cookieName(op.RequestOf(ctx).Secure)
	for pair := range strings.SplitSeq(cookies, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if key != name {
			continue
		}
		b, err := s.Ring.Unseal(sealFlow, value)
		if err != nil || json.Unmarshal(b, &f) != nil {
			return f, gone
		}
	}
	if !f.Good(state) || !now.Before(f.Expires) {
		return f, gone
	}
	return f, nil
}

// failed shows the sign-in page with the failure.
func (s *Service) failed(ctx context.Context, returnTo string, err error) (op.Reply, error) {
	return s.SignIn.Failed(ctx, returnTo, err)
}

// refused is failed for a browser that came back from a provider. It deletes the
// cookie of the flow, which is over. It keeps a cookie of another state, whose flow
// may still run.
func (s *Service) refused(ctx context.Context, f flow, err error) (op.Reply, error) {
	r, failed := s.failed(ctx, f.ReturnTo, err)
	if fault.From(err).Slug != lost {
		r.Cookies = append(r.Cookies, flowCookie("", 0, op.RequestOf(ctx).Secure))
	}
	return r, failed
}

type chooseIn struct {
	Org      string `json:"org,omitempty" maxLength:"100"`
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000"`
}

func (s *Service) choose(ctx context.Context, in chooseIn) (op.Reply, error) {
	r, err := s.start(ctx, startIn{Org: strings.ToLower(strings.TrimSpace(in.Org)), ReturnTo: in.ReturnTo})
	if err != nil || r.Header["Location"] == "" {
		return r, err
	}
	// A form of the sign-in page has led here, and the policy of that page lets forms lead
	// to this server alone, also by redirects. So a page of its own leads on.
	away := r.Header["Location"]
	to, err := url.Parse(away)
	if err != nil {
		return op.Reply{}, fmt.Errorf("address of the provider: %w", err)
	}
	page, err := web.Render(ctx, pages, 200, "away", awayData{URL: away, Host: to.Host}, "")
	page.Cookies, page.Header["Referrer-Policy"] = r.Cookies, "no-referrer"
	page.Header["Refresh"] = "0;url=" + to.String()
	return page, err
}

type awayData struct{ URL, Host string }

var pages = web.Templates(`
{{define "away"}}{{template "top" "Sign in with your organisation"}}<p><a class="button main" href="{{.URL}}">Go on to {{.Host}}</a></p>
{{template "end"}}{{end}}`)

type startIn struct {
	Site     string `json:",omitempty" header:"Sec-Fetch-Site" doc:"set by browsers"`
	Org      string `json:"org" maxLength:"100" doc:"login of the account"`
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"path of this server to go to then"`
}

func (s *Service) start(ctx context.Context, in startIn) (op.Reply, error) {
	if in.Site == "cross-site" {
		// A link on another site could choose a provider of its own and sign visitors
		// in there. So a person confirms their organisation first.
		return s.SignIn.Offer(ctx, in.ReturnTo, in.Org)
	}
	var r row
	f := flow{Ticket: idp.NewTicket(), ReturnTo: signin.Local(in.ReturnTo)}
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		f.Expires = tx.Now.Add(flowLife)
		r, err = configured(byLogin(tx, in.Org))
		return err
	})
	if err != nil {
		return s.failed(ctx, in.ReturnTo, err)
	}
	f.Account = r.AccountID
	address, err := s.Providers.Begin(ctx, idp.Provider{Issuer: r.Issuer, ClientID: r.ClientID}, f.Ticket, s.BaseURL+oidcBack)
	if err != nil {
		return s.failed(ctx, in.ReturnTo, err)
	}
	return s.sendAway(ctx, f, address)
}

// configured returns fault.NotFound unless there is a configuration.
func configured(r row, ok bool, err error) (row, error) {
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "", "No organisation of this login has a sign-in of its own here.")
	}
	return r, err
}

type backIn struct {
	Cookies string `json:",omitempty" header:"Cookie"`
	State   string `json:"state,omitempty"`
	Code    string `json:"code,omitempty"`
	Issuer  string `json:"iss,omitempty"`
	Error   string `json:"error,omitempty"`
}

// check returns the fault provider-refused if the provider has answered without a
// code.
func (in backIn) check() error {
	if in.Error == "" && in.Code != "" {
		return nil
	}
	return fault.New(fault.Forbidden, "provider-refused", "The provider did not let you sign in.")
}

func (s *Service) callback(ctx context.Context, in backIn) (op.Reply, error) {
	var f flow
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if f, err = s.openFlow(ctx, in.Cookies, in.State, tx.Now); err != nil {
			return err
		}
		r, err = configured(byAccount.Maybe(tx, f.Account))
		return err
	})
	if err == nil {
		err = in.check()
	}
	if err != nil {
		return s.refused(ctx, f, err)
	}
	secret, err := s.Ring.Unseal(purpose(r.AccountID), r.Sealed)
	if err != nil {
		return op.Reply{}, fmt.Errorf("client secret of %s: %w", r.AccountID, err)
	}
	who, err := s.Providers.Finish(ctx, idp.Provider{
		Issuer:       r.Issuer,
		ClientID:     r.ClientID,
		ClientSecret: string(secret),
	}, f.Ticket, s.BaseURL+oidcBack, in.Code, in.Issuer)
	if err == nil && (!op.IsAddress(who.Email) || len(who.Email) > 254 || !r.vouches(who.Email)) {
		err = fault.New(fault.Forbidden, "provider-refused", "The organisation's provider may not vouch for this address: it is "+
			"of none of its domains.")
	}
	if err != nil {
		return s.refused(ctx, f, err)
	}
	return s.enter(ctx, f, signin.Proof{
		Method: "oidc", Email: who.Email, Name: who.Name, Login: who.Login, AvatarURL: who.AvatarURL,
		Issuer: issuerOIDC + r.AccountID + " " + who.Issuer, Subject: who.Subject, Account: r.AccountID, Role: r.Role,
	})
}

// enter signs the proved person in and redirects the browser to where it wanted to
// go.
func (s *Service) enter(ctx context.Context, f flow, p signin.Proof) (op.Reply, error) {
	session, _, err := s.SignIn.Enter(ctx, func(*db.Tx) (signin.Proof, error) { return p, nil })
	if err != nil {
		return s.refused(ctx, f, err)
	}
	return web.GoTo(f.ReturnTo, session, flowCookie("", 0, op.RequestOf(ctx).Secure)), nil
}

type githubIn struct {
	ReturnTo string `json:"return_to,omitempty" maxLength:"8000" doc:"path of this server to go to then"`
}

func (s *Service) noGitHub() error {
	if s.GitHub.ClientID != "" {
		return nil
	}
	return fault.New(fault.NotFound, "", "Nobody signs in with GitHub here.")
}

func (s *Service) startGitHub(ctx context.Context, in githubIn) (op.Reply, error) {
	if err := s.noGitHub(); err != nil {
		return s.failed(ctx, in.ReturnTo, err)
	}
	f := flow{Ticket: idp.NewTicket(), ReturnTo: signin.Local(in.ReturnTo)}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		f.Expires = tx.Now.Add(flowLife)
		return nil
	})
	if err != nil {
		return op.Reply{}, err
	}
	return s.sendAway(ctx, f, s.GitHub.Begin(f.Ticket, s.BaseURL+githubBack))
}

func (s *Service) callbackGitHub(ctx context.Context, in backIn) (op.Reply, error) {
	var f flow
	err := s.noGitHub()
	if err == nil {
		err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			f, err = s.openFlow(ctx, in.Cookies, in.State, tx.Now)
			return err
		})
	}
	if err == nil {
		err = in.check()
	}
	if err == nil && f.Account != "" {
		err = fault.New(fault.Invalid, lost, "This sign-in was begun elsewhere. Begin again.")
	}
	if err != nil {
		return s.refused(ctx, f, err)
	}
	who, err := s.GitHub.Finish(ctx, f.Ticket, s.BaseURL+githubBack, in.Code)
	if err == nil && !op.IsAddress(who.Email) {
		err = fault.New(fault.Forbidden, "provider-refused", "Your address at GitHub is none that mail can be sent to.")
	}
	if err != nil {
		return s.refused(ctx, f, err)
	}
	return s.enter(ctx, f, signin.Proof{
		Method: "github", Email: who.Email, Emails: who.Emails, Name: who.Name, Login: who.Login, AvatarURL: who.AvatarURL,
		Issuer: GitHubIssuer(who.Issuer), Subject: who.Subject,
	})
}
