package digest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/domain/measure"
	"yardmaster/internal/mail"
	"yardmaster/internal/money"
	"yardmaster/internal/stencil"
)

// view is a digest as its templates have it.
type view struct {
	row
	Content
	Title, BaseURL string
	Reason         string // why somebody is mailed; "" for the page alone
	zone           *time.Location
}

// at is an instant in the zone of the digest.
func (v view) at(t time.Time) string { return t.In(v.zone).Format("Mon 2 Jan, 15:04") }

// rooms are the pages of what waits, by its kind.
var rooms = map[string]string{
	measure.Approval: "prs", measure.Pull: "prs", measure.Blocker: "blockers", measure.Escalation: "escalations",
	measure.Plan: "plans", measure.Task: "tasks",
}

// link is the address of the page of an object of a kind.
func (v view) link(kind, id string) string { return v.BaseURL + "/ui/" + rooms[kind] + "/" + id }

// whom is the person for whom something waits.
func (v view) whom(who *string) string {
	if who == nil {
		return "the owners and admins"
	}
	return *who
}

// says is the name of a rate.
func (v view) says(r Rate) string {
	return map[string]string{
		"tasks_succeeded": "tasks succeeded", "prs_merged": "pull requests were merged", "checks_passed": "checks passed",
	}[r.Name]
}

// word puts blanks for the underscores of a word of the API.
func (v view) word(s string) string { return strings.ReplaceAll(s, "_", " ") }

// page has no script and no form, loads nothing, and links only to this server. The
// policy holds a reader to that whatever the text. Programs that read mails make links of
// addresses in a text, so what others wrote is soft.
var page = sync.OnceValue(func() *stencil.Template {
	return stencil.Must(stencil.New(stencil.Page, "digest", `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; form-action 'none'">
<meta name="color-scheme" content="light dark"><title>{{.Title}}</title>
<style>body{font-family:system-ui,sans-serif;line-height:1.5;max-width:44rem;margin:1.5rem auto;padding:0 1rem}h1{font-size:1.3rem}h2{font-size:1.05rem;margin-top:1.5rem}small{opacity:.75}li{margin:.25rem 0}</style>
</head><body>
<h1>{{.Title}}</h1>
<p>{{.Headline}}<br><small>{{time .FromAt}} to {{time .ToAt}}, {{.Zone}}</small></p>
{{if .Waiting.Rows}}<h2>Waiting ({{.Waiting.Total}})</h2>
<ul>{{range .Waiting.Rows}}
<li>{{with .Repo}}{{.}}: {{end}}<a href="{{link .Kind .ID}}">{{soft .Title}}</a><br><small>{{word .Kind}}, {{soft (word .Why)}}; for {{whom .Who}}, since {{time .Since}}</small></li>{{end}}
</ul>
{{end}}{{if .Merged.Rows}}<h2>Merged ({{.Merged.Total}})</h2>
<ul>{{range .Merged.Rows}}
<li>{{.Repo}} #{{.Number}}: <a href="{{link "pr" .PRID}}">{{soft .Title}}</a><br><small>{{time .MergedAt}}{{with .RequestedBy}}, for {{.}}{{end}}{{with .MergedBy}}, by {{soft .}}{{end}}</small></li>{{end}}
</ul>
{{end}}{{if .Failed.Rows}}<h2>Failed ({{.Failed.Total}})</h2>
<ul>{{range .Failed.Rows}}
<li>{{.Repo}}: <a href="{{link "task" .TaskID}}">{{soft .Title}}</a><br><small>{{time .FailedAt}}{{with .Failure}}, {{word .}}{{end}}{{with .Why}}: {{soft .}}{{end}}</small></li>{{end}}
</ul>
{{end}}{{if not .Quiet}}<h2>Cost</h2>
<p>{{with .Cost.CostUSD}}{{usd .}}{{else}}Nothing that has a price{{end}}, {{.Cost.Calls}} calls of models in {{.Cost.Sessions}} sessions{{if .Cost.Unpriced}}; {{.Cost.Unpriced}} calls have no price{{end}}.</p>
<h2>Rates</h2>
<ul>{{range .Rates}}
<li>{{.N}} of {{.D}} {{says .}}</li>{{end}}
</ul>
{{end}}{{with .Reason}}<p><small>{{.}}</small></p>
{{end}}</body></html>
`, view{}.funcs()))
})

// funcs are what the page calls.
func (v view) funcs() stencil.Funcs {
	return stencil.Funcs{
		"soft": mail.Soft, "time": v.at, "link": v.link, "usd": money.Shown, "whom": v.whom, "says": v.says, "word": v.word,
	}
}

// view prepares a digest for its templates.
func (s *Service) view(r row, login string) view {
	title := "Digest of " + r.Period
	if r.Kind == Weekly {
		title = "Digest of the week until " + r.Period
	}
	return view{row: r, Content: r.Content.V, Title: login + ": " + title, BaseURL: s.BaseURL, zone: place(r.Zone)}
}

// html renders a digest.
func (v view) html() (string, error) {
	var b strings.Builder
	err := page().With(v.funcs()).Execute(&b, "digest", v)
	return b.String(), err
}

// text is a digest for those who read it without HTML.
func (v view) text() string {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	say("%s\n\n%s\n%s to %s, %s", v.Title, v.Headline, v.at(v.FromAt), v.at(v.ToAt), v.Zone)
	if len(v.Waiting.Rows) > 0 {
		say("\nWaiting (%d)\n", v.Waiting.Total)
	}
	for _, w := range v.Waiting.Rows {
		repo := ""
		if w.Repo != nil {
			repo = *w.Repo + ": "
		}
		say("  %s%s", repo, mail.Quiet(w.Title))
		say("    %s, %s; for %s, since %s", v.word(w.Kind), v.word(mail.Quiet(w.Why)), v.whom(w.Who), v.at(w.Since))
		say("    %s", v.link(w.Kind, w.ID))
	}
	if len(v.Merged.Rows) > 0 {
		say("\nMerged (%d)\n", v.Merged.Total)
	}
	for _, m := range v.Merged.Rows {
		say("  %s #%d: %s", m.Repo, m.Number, mail.Quiet(m.Title))
		say("    %s%s", v.at(m.MergedAt), m.people())
		say("    %s", v.link(measure.Pull, m.PRID))
	}
	if len(v.Failed.Rows) > 0 {
		say("\nFailed (%d)\n", v.Failed.Total)
	}
	for _, f := range v.Failed.Rows {
		say("  %s: %s", f.Repo, mail.Quiet(f.Title))
		why := f.Why
		if f.Failure != nil {
			why = strings.TrimSuffix(v.word(*f.Failure)+": "+why, ": ")
		}
		say("    %s", mail.Quiet(why))
		say("    %s", v.link(measure.Task, f.TaskID))
	}
	if v.Quiet {
		return b.String()
	}
	cost := "nothing that has a price"
	if v.Cost.CostUSD != nil {
		cost = money.Shown(*v.Cost.CostUSD)
	}
	say("\nCost: %s, %d calls of models in %d sessions, %d without a price", cost, v.Cost.Calls, v.Cost.Sessions, v.Cost.Unpriced)
	for _, r := range v.Rates {
		say("%d of %d %s", r.N, r.D, v.says(r))
	}
	say("\nyardmaster digest view %s", v.ID)
	if v.Reason != "" {
		say("\n-- \n%s", v.Reason)
	}
	return b.String()
}

// people are the person whose work was merged and who decided it, behind the time of it.
func (m Merge) people() (out string) {
	if m.RequestedBy != nil {
		out = ", for " + *m.RequestedBy
	}
	if m.MergedBy != nil {
		out += ", by " + mail.Quiet(*m.MergedBy)
	}
	return out
}

// letter is the mail about a digest.
func (s *Service) letter(m made) (Letter, error) {
	v := s.view(m.row, m.login)
	v.Reason = "You get this mail as a member of " + m.login + ", because of the kind digest of your notifications."
	html, err := v.html()
	return Letter{
		DigestID: m.ID, Kind: m.Kind, Subject: fmt.Sprintf("%s, %s: %s", m.login, m.Period, m.Headline), Text: v.text(), HTML: html,
	}, err
}
