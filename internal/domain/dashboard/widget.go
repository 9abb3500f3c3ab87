package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Kind is how a widget shows it.
type Kind string

// Kinds of widgets.
const (
	Stat     = "stat"     // one number
	Series   = "series"   // a number over time
	Table    = "table"    // a number by repository, or what the source is made of
	Feed     = "feed"     // the things themselves, the newest first
	Markdown = "markdown" // a text
)

// Values lists all.
func (Kind) Values() []string { return []string{Stat, Series, Table, Feed, Markdown} }

// Spec is what a widget shows, as it is stored.
type Spec struct {
	Kind   string `json:"kind"`
	Title  string `json:"title,omitempty"`
	Source string `json:"source,omitempty"`
	Window string `json:"window,omitempty"`
	RepoID string `json:"repo_id,omitempty"`
	Text   string `json:"text,omitempty"`
}

// source is something that widgets show.
type source struct {
	name   string
	kinds  []string
	what   measure.What // of what is counted over time
	rate   bool         // it has a d
	money  bool
	now    bool // it is as of now, and has no window
	scopes policy.Set
}

// sources lists what widgets show. scopes are those without which a reader sees nothing of it.
func sources() []source {
	pulls, tasks := policy.Scopes(policy.ReadPRs), policy.Scopes(policy.ReadTasks)
	boxes, sessions := policy.Scopes(policy.ReadRunners), policy.Scopes(policy.ReadSessions)
	counted, listed := []string{Stat, Series, Table}, []string{Stat, Series, Table, Feed}
	return []source{
		{name: "pulls_merged", kinds: listed, what: measure.PullsMerged, scopes: pulls},
		{name: "pulls_ended", kinds: counted, what: measure.PullsEnded, rate: true, scopes: pulls},
		{name: "pulls_open", kinds: []string{Stat}, now: true, scopes: pulls},
		{name: "tasks_filed", kinds: counted, what: measure.TasksFiled, scopes: tasks},
		{name: "tasks_ended", kinds: counted, what: measure.TasksEnded, rate: true, scopes: tasks},
		{name: "tasks_failed", kinds: listed, what: measure.TasksFailed, scopes: tasks},
		{name: "tasks_running", kinds: []string{Stat}, now: true, scopes: tasks},
		{name: "checks_ended", kinds: counted, what: measure.ChecksEnded, rate: true, scopes: boxes},
		{name: "boxes_online", kinds: []string{Stat}, now: true, rate: true, scopes: boxes},
		{name: "sessions", kinds: counted, what: measure.SessionsOfA, scopes: sessions},
		{name: "cost", kinds: counted, what: measure.Cost, money: true, scopes: policy.Scopes(policy.ReadUsage, policy.ReadBilling)},
		{name: "waiting", kinds: []string{Stat, Table, Feed}, now: true, scopes: pulls | tasks},
		{name: "health", kinds: []string{Table}, rate: true, scopes: pulls | tasks | boxes},
	}
}

func sourceOf(name string) (source, bool) {
	all := sources()
	i := slices.IndexFunc(all, func(s source) bool { return s.name == name })
	if i < 0 {
		return source{}, false
	}
	return all[i], true
}

// windows are the times that widgets look back, with the parts of a series.
func window(name string) (long, width time.Duration) {
	const day = 24 * time.Hour
	switch name {
	case "1h":
		return time.Hour, 5 * time.Minute
	case "24h":
		return day, time.Hour
	case "30d":
		return 30 * day, day
	case "90d":
		return 90 * day, day
	default: // 7d
		return 7 * day, day
	}
}

// widgetIn is a widget as callers describe it.
type widgetIn struct {
	_      struct{} `doc:"A widget to make." schema:"DashboardWidgetSpec"`
	Kind   Kind     `json:"kind" doc:"stat: one number; series: over time; table: by repository; feed: the newest things; markdown: a text"`
	Title  string   `json:"title,omitempty" maxLength:"120" example:"Merged this week" doc:"heading; its source names it unless sent"`
	Source string   `json:"source,omitempty" enum:"pulls_merged,pulls_ended,pulls_open,tasks_filed,tasks_ended,tasks_failed,tasks_running,checks_ended,boxes_online,sessions,cost,waiting,health" doc:"what it shows; none for markdown. _ended are rates: how many of d went well"`
	Window string   `json:"window,omitempty" enum:"1h,24h,7d,30d,90d" doc:"how far it looks back; 7d unless sent, and none for what is as of now"`
	Repo   string   `json:"repo,omitempty" maxLength:"200" example:"acme/web" doc:"owner/name, to show that repository alone"`
	Text   string   `json:"text,omitempty" maxLength:"10000" example:"## On call" doc:"the text of markdown"`
}

// spec checks a widget, and finds its repository.
func (s *Service) spec(tx *db.Tx, at int, in widgetIn) (out Spec, err error) {
	wrong := func(field, text string) (Spec, error) {
		return Spec{}, fault.Field(fmt.Sprintf("widgets.%d.%s", at, field), text)
	}
	out = Spec{Kind: string(in.Kind), Title: strings.TrimSpace(in.Title)}
	if strings.ContainsAny(out.Title, "\r\n") {
		return wrong("title", "must be one line")
	}
	if in.Kind == Markdown {
		switch {
		case in.Source != "":
			return wrong("source", "is not for markdown")
		case in.Window != "":
			return wrong("window", "is not for markdown")
		case in.Repo != "":
			return wrong("repo", "is not for markdown")
		case strings.TrimSpace(in.Text) == "":
			return wrong("text", "must not be empty")
		}
		out.Text = in.Text
		return out, nil
	}
	from, ok := sourceOf(in.Source)
	switch {
	case !ok:
		return wrong("source", "is required")
	case !slices.Contains(from.kinds, string(in.Kind)):
		return wrong("kind", "must be one of "+strings.Join(from.kinds, ", ")+" for "+from.name)
	case in.Text != "":
		return wrong("text", "is for markdown")
	case from.now && in.Window != "":
		return wrong("window", "is not for "+from.name+", which is as of now")
	case in.Repo != "" && (from.what == "" || in.Kind == Feed):
		return wrong("repo", "does not narrow "+from.name+" as a "+string(in.Kind))
	}
	out.Source, out.Window = from.name, in.Window
	if !from.now && out.Window == "" {
		out.Window = "7d"
	}
	if in.Repo != "" {
		owner, name, _ := strings.Cut(in.Repo, "/")
		id, ok, err := s.Repos.ByName(tx, owner, name)
		if err != nil {
			return out, err
		}
		if !ok {
			return out, fault.Missing("repository")
		}
		out.RepoID = id
	}
	return out, nil
}
