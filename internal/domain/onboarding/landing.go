package onboarding

import (
	"cmp"
	"context"
	"net/url"

	"yardmaster/internal/api/op"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/lazy"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

type landingIn struct {
	InstallationID string `json:"installation_id,omitempty" maxLength:"64" doc:"as the code host sends it"`
	SetupAction    string `json:"setup_action,omitempty" maxLength:"64" doc:"as the code host sends it: install, update or request"`
}

// landing is the data of the page.
type landing struct {
	Requested bool   // an owner at the code host has yet to agree
	Known     string // login of who installed the App, if the visitor may know
	Account   string // the account that the repositories belong to
	SignedIn  bool
	Waits     bool   // for the code host to tell, and looks again
	Next      string // address of the next step
}

var installationID = lazy.New(`^[0-9]{1,20}$`)

// installed is the page on which a person lands after the installation of the App at a
// code host. It only reads: whether there is an installation is for the code host to
// tell. The page names an installation to members of its account alone, so nobody
// learns by guessing ids who has installed the App.
func (s *Service) installed(ctx context.Context, in landingIn) (op.Reply, error) {
	a, home := policy.From(ctx), cmp.Or(op.RequestOf(ctx).Home, "/")
	v := landing{Requested: in.SetupAction == "request", SignedIn: a.UserID != "", Next: home}
	if !v.SignedIn {
		v.Next = "/login?" + url.Values{"return_to": {home}}.Encode()
	}
	if v.SignedIn && installationID.MatchString(in.InstallationID) {
		err := s.DB.Read(ctx, func(tx *db.Tx) error {
			i, ok, err := installationOf.Maybe(tx, in.InstallationID, a.UserID)
			if ok {
				v.Known, v.Account = i.OwnerLogin, i.Account
			}
			return err
		})
		if err != nil {
			return op.Reply{}, err
		}
	}
	v.Waits = v.SignedIn && !v.Requested && v.Known == ""
	r, err := web.Render(ctx, pages, 200, "landing", v, "")
	if text, is := r.Body.(string); is {
		r.Body = inert.Escape(text)
	}
	if err == nil && v.Waits {
		r.Header["Refresh"] = "5"
	}
	return r, err
}

var pages = web.Templates(`
{{define "landing"}}{{if .Requested}}{{template "top" "The App was asked for"}}
<p>An owner at the code host has to agree to the installation. After that it goes on by itself.</p>
{{else}}{{template "top" "Back from the code host"}}
{{with .Known}}<p class="done" role="status">The installation of <bdi>{{.}}</bdi> is known here. Its repositories belong to the account <bdi>{{$.Account}}</bdi>.</p>
{{else}}<p>The code host tells this server of the installation by itself, within a moment. Nothing needs to be done here for that.{{if .Waits}} This page looks again by itself.{{end}}</p>
{{end}}{{end}}<h2>What happens next</h2>
<ol>
<li>The repositories that you chose appear in the list of your account.</li>
<li>A repository is worked on when it is enabled there.</li>
<li>Its policy file, <code>.svc/policy.yml</code> on the default branch, says what agents may do in it. Without one, a person is asked before each merge.</li>
</ol>
<p>{{if .SignedIn}}<a class="button" href="{{.Next}}">Go to the repositories</a>{{else}}<a class="button" href="{{.Next}}">Sign in to see the repositories</a>{{end}}</p>
{{template "end"}}{{end}}`)
