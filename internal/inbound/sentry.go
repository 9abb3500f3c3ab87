package inbound

import (
	"strings"
	"time"

	"yardmaster/internal/lazy"
)

// signedSentry checks Sentry-Hook-Signature: the digest of the body in hex, with the
// client secret of the integration (Sentry documentation, Integration Platform, Webhooks).
func signedSentry(secret string, r Request, _ time.Time) bool {
	return hexOfBody(secret, r, "Sentry-Hook-Signature", "")
}

// sentryProject finds the slug of a project in the address of an event in Sentry's API.
var sentryProject = lazy.New(`/projects/[^/]+/([^/]+)/`)

// readSentry reads an event of Sentry. A new issue, an issue that has come back, an alert
// and an error are work: all of one issue are one trouble. So is a metric alert that is
// critical.
func readSentry(r Request, d Document, _ Mapping) Event {
	resource, action := r.Header("Sentry-Hook-Resource"), d.text("/action")
	e := Event{
		Name: resource + "." + action, Act: Ignored, Again: true, IDs: []string{r.Header("Request-ID")},
		Senders: []string{d.text("/actor/name"), d.text("/actor/id")},
	}
	switch resource {
	case "installation":
		e.Act = Ping
	case "issue":
		readSentryIssue(d, action, &e)
	case "event_alert", "error":
		at := "/data/event"
		if resource == "error" {
			at = "/data/error"
		}
		e.Act, e.Title, e.URL = Work, d.first(at+"/title", at+"/message"), d.text(at+"/web_url")
		if e.Key = keyed("issue/", d.text(at+"/issue_id")); e.Key == "" {
			e.Key = keyed("event/", d.text(at+"/event_id"))
		}
		if m := sentryProject.FindStringSubmatch(d.text(at + "/url")); m != nil {
			e.Projects = []string{m[1]}
		}
		e.Projects = append(e.Projects, d.text(at+"/project"))
		e.Text = paragraphs(d, [][2]string{
			{"Culprit", at + "/culprit"}, {"Where", at + "/location"}, {"Level", at + "/level"}, {"Platform", at + "/platform"},
			{"Release", at + "/release"}, {"Rule", "/data/triggered_rule"}, {"Message", at + "/message"},
		}) + frames(d, at+"/exception/values/0/stacktrace/frames")
	case "metric_alert":
		at := "/data/metric_alert"
		e.Title, e.Text, e.URL = d.text("/data/description_title"), d.text("/data/description_text"), d.text("/data/web_url")
		e.Key, e.Projects = keyed("metric/", d.text(at+"/id")), d.texts(at+"/projects")
		if e.Act = Nothing; action == "critical" {
			e.Act = Work
		}
	}
	return e
}

func readSentryIssue(d Document, action string, e *Event) {
	const at = "/data/issue"
	e.Title, e.URL = d.text(at+"/title"), d.first(at+"/web_url", at+"/permalink")
	e.Projects = []string{d.text(at + "/project/slug"), d.text(at + "/project/id")}
	e.Key = keyed("issue/", d.text(at+"/id"))
	e.Text = paragraphs(d, [][2]string{
		{"Issue", at + "/shortId"}, {"Culprit", at + "/culprit"}, {"File", at + "/metadata/filename"},
		{"Function", at + "/metadata/function"},
		{"Error", at + "/metadata/type"}, {"Message", at + "/metadata/value"}, {"Level", at + "/level"}, {"Platform", at + "/platform"},
		{"Events", at + "/count"}, {"People", at + "/userCount"}, {"First seen", at + "/firstSeen"}, {"Last seen", at + "/lastSeen"},
	})
	switch sub := d.text(at + "/substatus"); {
	case action == "created":
		e.Act = Work
	case action == "unresolved" && sub == "regressed":
		// What was solved and has come back is work anew, once a day at most.
		e.Act = Work
		e.Key = keyed(e.Key+"/regressed/", day(d.text(at+"/lastSeen")))
	case action == "unresolved" && sub == "escalating":
		e.Act = Work
	}
}

// paragraphs is the text of the values that there are, each on a line with its name.
func paragraphs(d Document, fields [][2]string) string {
	var b strings.Builder
	for _, f := range fields {
		if v := d.text(f[1]); v != "" {
			b.WriteString(f[0] + ": " + clip(v, maxValue) + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// day is the date of a time in the form of RFC 3339.
func day(at string) string { return at[:min(len(at), len("2006-01-02"))] }

// texts are the elements of a list that are texts.
func (d Document) texts(pointer string) (out []string) {
	all, _ := d.at(pointer).([]any)
	for _, v := range all[:min(len(all), maxList)] {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// frames is the text of the innermost frames of a stack trace.
func frames(d Document, pointer string) string {
	all, _ := d.at(pointer).([]any)
	if len(all) == 0 {
		return ""
	}
	const most = 15
	var b strings.Builder
	b.WriteString("\n\nInnermost frames, the last is where it failed:\n")
	for _, v := range all[max(0, len(all)-most):] {
		f, _ := v.(map[string]any)
		one := Document{root: f}
		b.WriteString("  " + clip(one.first("/filename", "/abs_path", "/module"), maxName))
		if n := one.text("/lineno"); n != "" {
			b.WriteString(":" + n)
		}
		if fn := one.text("/function"); fn != "" {
			b.WriteString(" in " + clip(fn, maxName))
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}
