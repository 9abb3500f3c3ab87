package emailroute

import (
	"context"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
	"yardmaster/internal/stencil"
	"yardmaster/internal/web"
)

// Paths of the pages.
const (
	confirmPath = "/email-route/confirm"
	stopPath    = "/email-route/stop"
)

var (
	errTampered = fault.New(fault.Invalid, "email-route-link-malformed", "This link was not made by this server, or is cut off. "+
		"Copy it whole from the mail.")
	errExpired = fault.New(fault.Gone, "email-route-link-expired", "This link has expired, or the route that it is about was deleted.")
)

func (s *Service) linkOps() []op.Op {
	refuses := []op.Refusal{{Status: 400, Slug: errTampered.Slug}, {Status: 410, Slug: errExpired.Slug}}
	return []op.Op{
		op.New(op.Row{ID: "email_route.confirm_page", Method: "GET", Path: confirmPath, Group: group, Rule: policy.Public(), NoStore: true,
			PerAddress: 30, Refuses: refuses,
			Summary: "The page of a link that asks whether notices shall come to an address",
			Doc:     "Shows the account, the kinds and a button, and changes nothing."}, s.confirmPage),
		op.New(op.Row{ID: "email_route.confirm", Method: "POST", Path: confirmPath, Group: group, Rule: policy.Public(), NoStore: true,
			Form: true, PerAddress: 30, Refuses: refuses,
			Summary: "Have notices come to an address; again is no error",
			Doc:     "The link is the whole credential, and is good for 48 hours."}, s.confirm),
		op.New(op.Row{ID: "email_route.stop_page", Method: "GET", Path: stopPath, Group: group, Rule: policy.Public(), NoStore: true,
			PerAddress: 30, Refuses: refuses,
			Summary: "The page of a link to get no more notices of one kind at an address",
			Doc:     "Shows the kind and a button, and changes nothing."}, s.stopPage),
		op.New(op.Row{ID: "email_route.stop", Method: "POST", Path: stopPath, Group: group, Rule: policy.Public(), NoStore: true,
			Form: true, PerAddress: 30, Refuses: refuses,
			Summary: "Get no more notices of one kind at an address; again is no error",
			Doc: "For the page, and for programs that read mails (RFC 8058). The link is the whole credential, and is good for 60 days. " +
				"The last kind takes the route with it."}, s.stop),
	}
}

type pageIn struct {
	Token string `json:"token" maxLength:"2000" example:"eyJhbGciOiJIUzI1NiJ9" doc:"the token of the link"`
}

type pressIn struct {
	Token  string `json:"token,omitempty" maxLength:"2000" also:"query" example:"eyJhbGciOiJIUzI1NiJ9" doc:"the token of the link"`
	Click  string `json:"List-Unsubscribe,omitempty" maxLength:"100" example:"One-Click" doc:"what programs that read mails send (RFC 8058); it changes nothing"`
	Accept string `header:"Accept"`
}

// Pressed tells what a link did.
type Pressed struct {
	_         struct{} `doc:"What a link of a route did." schema:"EmailRoutePressed"`
	Confirmed bool     `json:"confirmed" doc:"whether notices come there"`
	Kinds     []string `json:"kinds" example:"[\"escalation\"]" doc:"the kinds of notices that come there"`
}

// target is what a link is about.
type target struct {
	route   row
	Kind    Kind // of a link that ends one
	Account string
	Token   string
	Done    bool
	Kinds   []Kind
}

// address is where notices come or shall come.
func (t target) address() string { return t.route.Address }

// name is the kind as the page names it.
func (t target) name() string { return strings.ReplaceAll(t.Kind.Name, "_", " ") }

// open reads a link. The context that it answers is of the account.
func (s *Service) open(ctx context.Context, purpose, token string) (context.Context, seal.Link, error) {
	l, err := s.Ring.ReadLink(purpose, token)
	if err != nil {
		return ctx, l, errTampered.Because(err)
	}
	return db.WithAccount(ctx, l.Account), l, nil
}

// target finds what a link is about. Of a link that ends a kind, ended tells that the route
// is gone, or does not have the kind.
func (s *Service) target(tx *db.Tx, l seal.Link) (t target, ended bool, err error) {
	if !tx.Now.Before(l.Expires) {
		return t, false, errExpired
	}
	routeID, name, stops := strings.Cut(l.Subject, "/")
	if stops {
		if t.Kind, _ = s.kind(name); t.Kind.Name == "" {
			return t, false, errExpired // it was a kind once
		}
	}
	r, ok, err := byID.Maybe(tx, tx.Account, routeID)
	if err != nil {
		return t, false, err
	}
	if !ok && !stops {
		return t, false, errExpired
	}
	t.route = r
	for _, name := range r.Kinds.V {
		if k, ok := s.kind(name); ok {
			t.Kinds = append(t.Kinds, k)
		}
	}
	t.Account, err = people.AccountLogin(tx, tx.Account)
	return t, stops && !slices.Contains(r.Kinds.V, name), err
}

func (s *Service) show(ctx context.Context, page, purpose, token string) (op.Reply, error) {
	ctx, l, err := s.open(ctx, purpose, token)
	if err != nil {
		return op.Reply{}, err
	}
	var t target
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		t, t.Done, err = s.target(tx, l)
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	t.Token = token
	return render(ctx, page, t)
}

func (s *Service) confirmPage(ctx context.Context, in pageIn) (op.Reply, error) {
	return s.show(ctx, "confirm", confirmPurpose, in.Token)
}

func (s *Service) stopPage(ctx context.Context, in pageIn) (op.Reply, error) {
	return s.show(ctx, "stop", stopPurpose, in.Token)
}

func (s *Service) confirm(ctx context.Context, in pressIn) (op.Reply, error) {
	return s.press(ctx, in, "confirm", confirmPurpose, func(tx *db.Tx, t *target) error {
		n, err := confirm.Exec(tx, tx.Account, t.route.ID, tx.Micros())
		if err != nil || n == 0 {
			return err
		}
		return confirmedEvent.Record(tx, event.Subject{ID: t.route.ID}, routeData{Address: t.route.Address, Kinds: t.route.Kinds.V})
	})
}

func (s *Service) stop(ctx context.Context, in pressIn) (op.Reply, error) {
	return s.press(ctx, in, "stop", stopPurpose, func(tx *db.Tx, t *target) error {
		left := slices.DeleteFunc(slices.Clone(t.route.Kinds.V), func(name string) bool { return name == t.Kind.Name })
		var err error
		if len(left) == 0 {
			_, err = erase.Exec(tx, tx.Account, t.route.ID, tx.Micros())
		} else {
			_, err = setKinds.Exec(tx, tx.Account, t.route.ID, db.JSON[[]string]{V: left})
		}
		if err != nil {
			return err
		}
		t.route.Kinds.V = left
		return stoppedEvent.Record(tx, event.Subject{ID: t.route.ID}, stoppedData{Address: t.route.Address, Kind: t.Kind.Name})
	})
}

// press does what a link is for, unless that is done.
func (s *Service) press(ctx context.Context, in pressIn, page, purpose string, do func(*db.Tx, *target) error) (op.Reply, error) {
	ctx, l, err := s.open(ctx, purpose, in.Token)
	if err != nil {
		return op.Reply{}, err
	}
	var t target
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := people.LockAccount(tx, tx.Account); err != nil { // no two presses of one route
			return err
		}
		var ended bool
		var err error
		if t, ended, err = s.target(tx, l); err != nil || ended {
			return err
		}
		return do(tx, &t)
	})
	if err != nil {
		return op.Reply{}, err
	}
	if !op.PrefersPage(in.Accept) {
		kinds := t.route.Kinds.V
		if kinds == nil {
			kinds = []string{}
		}
		return op.Reply{Body: Pressed{Kinds: kinds, Confirmed: len(kinds) > 0}}, nil
	}
	t.Done = true
	return render(ctx, page, t)
}

func render(ctx context.Context, page string, t target) (op.Reply, error) {
	r, err := web.Render(ctx, pages, 200, page, t, "")
	if err == nil {
		r.Header["Referrer-Policy"] = "no-referrer" // the address is the credential
	}
	return r, err
}

var pages = web.Templates(`
{{define "confirm"}}{{if .Done}}{{template "top" "Notices come here"}}
<p class="done" role="status">Notices of <bdi>{{.Account}}</bdi> come to {{address .}} from now on. Each of them has a link that ends its kind.</p>
{{else}}{{template "top" "Shall notices come here?"}}
<p>The account <strong><bdi>{{.Account}}</bdi></strong> wants to send notices to {{address .}}:</p>
<ul>{{range .Kinds}}<li>{{.Doc}}</li>{{end}}</ul>
<form method="post" action="/email-route/confirm"><input type="hidden" name="token" value="{{.Token}}"><button class="main">Send them here</button></form>
<p class="note">If you do nothing, nothing is sent.</p>
{{end}}{{template "end"}}{{end}}
{{define "stop"}}{{if .Done}}{{template "top" "No more of these mails"}}
<p class="done" role="status">Mails of the kind “{{name .}}” from <bdi>{{.Account}}</bdi> do not come to this address any more.</p>
{{else}}{{template "top" "Get no more of these mails?"}}
<p>Mails of the kind “{{name .}}” from <strong><bdi>{{.Account}}</bdi></strong>, to {{address .}}: {{.Kind.Doc}}</p>
<form method="post" action="/email-route/stop"><input type="hidden" name="token" value="{{.Token}}"><button class="main">No more of these</button></form>
{{end}}{{template "end"}}{{end}}`, stencil.Funcs{"name": target.name, "address": target.address})
