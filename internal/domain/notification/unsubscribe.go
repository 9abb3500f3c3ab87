package notification

import (
	"context"
	"net/url"
	"strings"
	"time"

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

const (
	linkPurpose = "unsubscribe"
	linkLife    = 60 * 24 * time.Hour
)

var (
	errTampered = fault.New(fault.Invalid, "unsubscribe-link-malformed", "This link was not made by this server, or is cut off. "+
		"Copy it whole from the mail.")
	errExpired = fault.New(fault.Gone, "unsubscribe-link-expired", "This link has expired. Use that of a newer mail, or sign in "+
		"and choose in your notification preferences.")
)

// Unsubscribe makes the address by which a person gets no more mails of a kind.
func (s *Service) Unsubscribe(tx *db.Tx, userID, kindName string) string {
	token := s.Ring.SignLink(linkPurpose, seal.Link{
		Subject: userID + "/" + kindName, Account: tx.Account, Expires: tx.Now.Add(linkLife).Truncate(time.Second),
	})
	return s.BaseURL + "/unsubscribe?token=" + url.QueryEscape(token)
}

func (s *Service) unsubscribeOps() []op.Op {
	expired := op.Refusal{Status: 410, Slug: errExpired.Slug}
	malformed := op.Refusal{Status: 400, Slug: errTampered.Slug}
	return []op.Op{
		op.New(op.Row{
			ID: "notification.unsubscribe_page", Method: "GET", Path: "/unsubscribe", Group: group, Rule: policy.Public(), NoStore: true,
			PerAddress: 30, Refuses: []op.Refusal{malformed, expired},
			Summary: "The page of a link to get no more mails of one kind",
			Doc:     "Shows the kind and a button, and changes nothing.",
		}, s.unsubscribePage),
		op.New(op.Row{
			ID: "notification.unsubscribe", Method: "POST", Path: "/unsubscribe", Group: group, Rule: policy.Public(), NoStore: true,
			Form: true, PerAddress: 30, Refuses: []op.Refusal{malformed, expired},
			Summary: "Get no more mails of one kind; again is no error",
			Doc: "For the page, and for programs that read mails (RFC 8058). The link is the whole credential, and is good for 60 days. " +
				"It switches one kind off for mails of one account; escalations have no such link.",
		}, s.unsubscribe),
	}
}

type pageIn struct {
	Token string `json:"token" maxLength:"2000" example:"eyJhbGciOiJIUzI1NiJ9" doc:"the token of the link"`
}

type unsubscribeIn struct {
	Token  string `json:"token,omitempty" maxLength:"2000" also:"query" example:"eyJhbGciOiJIUzI1NiJ9" doc:"the token of the link"`
	Click  string `json:"List-Unsubscribe,omitempty" maxLength:"100" example:"One-Click" doc:"what programs that read mails send (RFC 8058); it changes nothing"`
	Accept string `header:"Accept"`
}

// Unsubscribed tells what a link did.
type Unsubscribed struct {
	_    struct{} `doc:"What a link did." schema:"Unsubscribed"`
	Kind Optional `json:"kind" doc:"the kind that is mailed no more"`
}

// target is what a link is about.
type target struct {
	UserID  string
	Kind    kind
	Login   string
	Account string
	Token   string
	Done    bool
}

// open reads a link. The context that it answers is of the account.
func (s *Service) open(ctx context.Context, token string) (context.Context, seal.Link, error) {
	l, err := s.Ring.ReadLink(linkPurpose, token)
	if err != nil {
		return ctx, l, errTampered.Because(err)
	}
	return db.WithAccount(ctx, l.Account), l, nil
}

// read checks a link.
func (s *Service) target(tx *db.Tx, l seal.Link) (t target, err error) {
	if !tx.Now.Before(l.Expires) {
		return t, errExpired
	}
	userID, name, _ := strings.Cut(l.Subject, "/")
	k, ok := kindOf(name)
	if !ok || k.locked {
		return t, errTampered
	}
	login, account, ok, err := people.Names(tx, userID, l.Account)
	if err == nil && !ok { // say the database was restored
		err = errExpired
	}
	return target{UserID: userID, Kind: k, Login: login, Account: account}, err
}

func (s *Service) unsubscribePage(ctx context.Context, in pageIn) (op.Reply, error) {
	ctx, l, err := s.open(ctx, in.Token)
	if err != nil {
		return op.Reply{}, err
	}
	var t target
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		t, err = s.target(tx, l)
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	t.Token = in.Token
	return render(ctx, t)
}

func (s *Service) unsubscribe(ctx context.Context, in unsubscribeIn) (op.Reply, error) {
	ctx, l, err := s.open(ctx, in.Token)
	if err != nil {
		return op.Reply{}, err
	}
	userID, _, _ := strings.Cut(l.Subject, "/")
	actor := policy.Actor{
		Credential: policy.ActionLink, CredentialID: userID, UserID: userID, AccountID: l.Account, ExpiresAt: l.Expires,
		RequestID: op.RequestOf(ctx).ID,
	}
	var t target
	err = s.DB.Write(policy.With(ctx, actor), func(tx *db.Tx) error {
		if t, err = s.target(tx, l); err != nil {
			return err
		}
		if _, err := bump.One(tx, tx.Account, t.UserID); err != nil {
			return err
		}
		p, err := s.person(tx, t.UserID)
		if err != nil || !p.wants(t.Kind, Email) {
			return err
		}
		if _, err := choose.Exec(tx, choice{AccountID: tx.Account, UserID: t.UserID, Kind: t.Kind.name, Channel: Email}); err != nil {
			return err
		}
		return unsubscribedEvent.Record(tx, event.Subject{ID: t.UserID}, unsubscribedData{Kind: t.Kind.name})
	})
	if err != nil {
		return op.Reply{}, err
	}
	if !op.PrefersPage(in.Accept) {
		return op.Reply{Body: Unsubscribed{Kind: Optional(t.Kind.name)}}, nil
	}
	t.Done = true
	return render(ctx, t)
}

// name is the kind as the page names it.
func (t target) name() string { return strings.ReplaceAll(t.Kind.name, "_", " ") }

// doc says what the kind tells.
func (t target) doc() string { return t.Kind.doc }

func render(ctx context.Context, t target) (op.Reply, error) {
	r, err := web.Render(ctx, pages, 200, "unsubscribe", t, "")
	if err == nil {
		r.Header["Referrer-Policy"] = "no-referrer" // the address is the credential
	}
	return r, err
}

var pages = web.Templates(`
{{define "unsubscribe"}}{{if .Done}}{{template "top" "No more of these mails"}}
<p class="done" role="status">You get no more mails of the kind “{{name .}}” from {{.Account}}.</p>
{{else}}{{template "top" "Get no more of these mails?"}}
<p>Mails of the kind “{{name .}}” from <strong><bdi>{{.Account}}</bdi></strong>, for {{.Login}}: {{doc .}}</p>
<form method="post" action="/unsubscribe"><input type="hidden" name="token" value="{{.Token}}"><button class="main">No more of these</button></form>
{{end}}<p class="note">All else stays as it is. You can change it in your notification preferences at any time. Escalations are always mailed.</p>
{{template "end"}}{{end}}`, stencil.Funcs{"name": target.name, "doc": target.doc})
