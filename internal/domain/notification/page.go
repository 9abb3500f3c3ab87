package notification

import (
	"context"
	"net/url"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/client/inert"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/web"
)

// commands are what people do about an object, by the folder of its address. ID is its id.
var commands = map[string][]string{
	"tasks":       {"yardmaster task watch ID", "yardmaster call task.get id=ID", "yardmaster task redispatch ID"},
	"plans":       {"yardmaster call plan.get id=ID"},
	"escalations": {"yardmaster call escalation.list", `yardmaster call escalation.resolve id=ID note="What you decided"`},
	"boxes":       {"yardmaster call box.get id=ID", "yardmaster box list"},
	"webhooks":    {"yardmaster call webhook.deliveries", "yardmaster call webhook.revive id=ID"},
	"repos":       {"yardmaster repo list"},
	"schedules":   {"yardmaster call schedule.get id=ID", "yardmaster call schedule.update id=ID paused=false"},
	"you":         {"yardmaster call self.github_token_get"},
}

func (s *Service) pageOp() op.Op {
	return op.New(op.Row{ID: "notification.page", Method: "GET", Path: "/ui/{place}/{id}", Group: group, Rule: policy.Public(),
		NoStore: true, Also: []int{303},
		Summary: "Where a notification leads: what the caller was told of an object, and what to do about it",
		Doc: "place is tasks, plans, escalations, boxes, webhooks, repos, schedules or you. Who is not signed in is sent to the sign-in " +
			"page first. It shows the caller's own notifications about the object, and changes nothing."}, s.page)
}

type placeIn struct {
	Place string `json:"place" maxLength:"40" example:"tasks" doc:"what sort of object it is"`
	ID    string `json:"id" maxLength:"100" doc:"id of the object"`
}

// place is the data of the page.
type place struct {
	Told     []Notification
	Commands []string
}

func (s *Service) page(ctx context.Context, in placeIn) (op.Reply, error) {
	all, ok := commands[in.Place]
	if !ok || !id.Valid(in.ID) {
		return op.Reply{}, fault.Missing("page")
	}
	a := policy.From(ctx)
	if a.UserID == "" {
		return web.GoTo("/login?" + url.Values{"return_to": {"/ui/" + in.Place + "/" + in.ID}}.Encode()), nil
	}
	var v place
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		rows, err := about.All(tx, tx.Account, a.UserID, in.ID)
		v.Told = s.wireAll(rows)
		return err
	})
	if err != nil {
		return op.Reply{}, err
	}
	for _, c := range all {
		v.Commands = append(v.Commands, strings.ReplaceAll(c, "ID", in.ID))
	}
	r, err := web.Render(places, 200, "place", v, "")
	if text, is := r.Body.(string); is {
		// The page holds text of agents. Escape makes invisible characters visible.
		r.Body = inert.Escape(text)
	}
	return r, err
}

var places = web.Templates(`
{{define "place"}}{{template "top" "What you were told"}}
{{range .Told}}<p><strong><bdi>{{.Title}}</bdi></strong></p>
{{with .Repo}}<p><bdi>{{.}}</bdi></p>
{{end}}{{with .Text}}<blockquote><bdi>{{.}}</bdi></blockquote>
{{end}}{{if .SettledAt}}<p class="note">Somebody has dealt with it.</p>
{{end}}{{else}}<p>Nothing about this in this account.</p>
{{end}}<p>On the command line:</p>
{{range .Commands}}<p><code>{{.}}</code></p>
{{end}}{{template "end"}}{{end}}`)
