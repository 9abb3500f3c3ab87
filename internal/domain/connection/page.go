package connection

import (
	"context"
	"net/url"

	"yardmaster/internal/api/op"
	"yardmaster/internal/web"
)

var pages = web.Templates(`
{{define "setup"}}{{template "wide" "Connect GitHub"}}{{template "alert" .Failure}}
<p>Yardmaster works in your repositories as a GitHub App of your own. GitHub shows you the App before it is made; its credentials come back to this server alone, and are sealed.</p>
<form method="post">
<p><label>Organisation that is to own the App <input name="organisation" value="{{.Organisation}}" placeholder="empty: your own user account" autocomplete="off"></label></p>
<p><label>Address of GitHub, or of your GitHub Enterprise Server <input name="address" value="{{.Address}}" required></label></p>
<table><thead><tr><th>Permission</th><th>What for</th><th>Without</th></tr></thead><tbody>
{{range .Permissions}}<tr><td>{{with .Switch}}<label><input type="checkbox" name="{{.}}" value="true"{{if index $.Ticked .}} checked{{end}}> {{end}}<code>{{.Name}}</code>{{with .Switch}}</label>{{end}}</td><td>{{.Why}}</td><td>{{.Without}}</td></tr>
{{end}}</tbody></table>
<p><label><input type="checkbox" name="nowebhook" value="true"{{if index .Ticked "nowebhook"}} checked{{end}}> GitHub cannot reach this server: sweeps find what happens, some minutes later</label></p>
{{with .Hidden}}<p><small>{{.}}, the address of this server, leads nowhere from outside. To have GitHub deliver what happens, set <code>base-url</code> to an address that it can reach, and restart the server.</small></p>
{{end}}
<p><button>Continue</button></p></form>
{{template "end"}}{{end}}
{{define "leave"}}{{template "top" "Connect GitHub"}}
<p>GitHub makes the App, and sends you back here.</p>
<form method="post" action="{{.Action}}"><input type="hidden" name="manifest" value="{{.Manifest}}"><button>Go to GitHub</button></form>
{{template "end"}}{{end}}
{{define "made"}}{{template "top" "GitHub is connected"}}
<p>The App is made, and its credentials are sealed. Install it where Yardmaster is to work: the repositories that you choose there appear here.</p>
<p><a href="{{.}}">Install the App</a></p>
{{template "end"}}{{end}}`)

type setupPageIn struct{}

// setupPageData is what the page of the set-up shows.
type setupPageData struct {
	Permissions           []Permission
	Hidden                string // see Maker
	Failure               string // why the last attempt failed
	Address, Organisation string
	Ticked                map[string]bool // boxes, by name
}

func (s *Service) setupPage(ctx context.Context, _ setupPageIn) (op.Reply, error) {
	hidden := s.Maker.Hidden()
	return web.Render(ctx, pages, 200, "setup", setupPageData{
		Permissions: s.Maker.Permissions(), Hidden: hidden, Address: "https://github.com",
		Ticked: map[string]bool{"nowebhook": hidden != ""},
	}, "")
}

// again shows a browser the form once more, with the values that it has sent and what is
// wrong with them.
func (s *Service) again(ctx context.Context, in any, failure error) (op.Reply, error) {
	i := in.(*beginIn)
	status, line, err := web.Complaint(failure)
	if !op.PrefersPage(i.Accept) || err != nil {
		return op.Reply{}, failure
	}
	return web.Render(ctx, pages, status, "setup", setupPageData{
		Permissions: s.Maker.Permissions(), Hidden: s.Maker.Hidden(), Failure: line,
		Address: i.Address, Organisation: i.Organisation,
		Ticked: map[string]bool{"nowebhook": i.NoWebhook, "workflows": i.Workflows, "administration": i.Administration},
	}, "")
}

type beginIn struct {
	Accept         string `header:"Accept"`
	Address        string `json:"address" format:"uri" maxLength:"200" doc:"https://github.com, or the address of a GitHub Enterprise Server"`
	Organisation   string `json:"organisation,omitempty" pattern:"^[A-Za-z0-9-]{0,39}$" says:"must be the login of an organisation" doc:"login of the organisation that is to own the App; empty: the person who makes it"`
	Workflows      bool   `json:"workflows,omitempty" doc:"also ask to change workflow files"`
	Administration bool   `json:"administration,omitempty" doc:"also ask to make repositories, and to be told of rules that change"`
	NoWebhook      bool   `json:"nowebhook,omitempty" doc:"the host cannot reach this server: nothing is delivered, and sweeps find what happens"`
}

func (s *Service) setupBegin(ctx context.Context, in beginIn) (op.Reply, error) {
	f, err := s.begin(ctx, in.Address, in.Organisation, Switches{
		Workflows: in.Workflows, Administration: in.Administration, NoWebhook: in.NoWebhook,
	})
	if err != nil {
		return s.again(ctx, &in, err)
	}
	to, err := url.Parse(f.Action)
	if err != nil {
		return op.Reply{}, err
	}
	return web.Render(ctx, pages, 200, "leave", f, to.Scheme+"://"+to.Host)
}

type endIn struct {
	Code  string `json:"code" minLength:"1" maxLength:"200" doc:"what the host sent back"`
	State string `json:"state" minLength:"1" maxLength:"200" doc:"what the set-up began with"`
}

func (s *Service) setupEnd(ctx context.Context, in endIn) (op.Reply, error) {
	install, err := s.complete(ctx, in.Code, in.State)
	if err != nil {
		return op.Reply{}, err
	}
	return web.Render(ctx, pages, 200, "made", install, "")
}
