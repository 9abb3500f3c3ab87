package inbound

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// fuzz reads whatever comes as a delivery of a kind. Nothing in it makes the reader fail
// other than with ErrMalformed, nor say what could not be stored.
func fuzz(f *testing.F, kind string, files []string, header ...string) {
	for _, file := range files {
		f.Add(payload(f, file), "", "")
	}
	f.Add([]byte(`{"type": "url_verification", "challenge": "\u0000"}`), "{/a}", "/b")
	f.Fuzz(func(t *testing.T, body []byte, title, key string) {
		r := request(body, header...)
		Genuine(kind, secret, r, now)
		m := Mapping{Title: title, DedupeKey: key, When: &When{At: key, Is: []string{title}}}
		if len(m.Check()) > 0 {
			m = Mapping{}
		}
		e, d, err := Read(kind, r, m)
		if err != nil {
			return
		}
		texts := append([]string{e.Name, e.Key, e.Title, e.Text, e.URL, e.Ours, e.Challenge}, e.IDs...)
		texts = append(append(append(texts, e.Projects...), e.Senders...), e.Labels...)
		for _, s := range texts {
			if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
				t.Errorf("no text: %q", s)
			}
		}
		if utf8.RuneCountInString(e.Title) > maxTitle || utf8.RuneCountInString(e.Text) > maxText || len(e.Key) > maxKey {
			t.Errorf("too long: %d %d %d", len(e.Title), len(e.Text), len(e.Key))
		}
		if e.Act == Work && e.Title == "" {
			t.Error("work without a title")
		}
		if text, ok := d.Keep(); ok {
			if _, err := Parse(text); err != nil && !strings.Contains(string(body), `\u0000`) {
				t.Errorf("what is kept cannot be read: %v", err)
			}
		}
	})
}

func FuzzGitea(f *testing.F) {
	fuzz(f, Gitea, []string{"gitea-issue", "gitea-push"}, "X-Gitea-Event", "issues")
}

func FuzzForgejo(f *testing.F) {
	fuzz(f, Forgejo, []string{"gitea-issue"}, "X-Forgejo-Event", "issues")
}

func FuzzGitLab(f *testing.F) { fuzz(f, GitLab, []string{"gitlab-issue"}) }

func FuzzSentryIssue(f *testing.F) {
	fuzz(f, Sentry, []string{"sentry-issue"}, "Sentry-Hook-Resource", "issue")
}

func FuzzSentryAlert(f *testing.F) {
	fuzz(f, Sentry, []string{"sentry-alert"}, "Sentry-Hook-Resource", "event_alert")
}

func FuzzLinear(f *testing.F) { fuzz(f, Linear, []string{"linear-issue", "linear-comment"}) }

func FuzzPagerDuty(f *testing.F) {
	fuzz(f, PagerDuty, []string{"pagerduty-incident", "pagerduty-ping"})
}

func FuzzGeneric(f *testing.F) { fuzz(f, Generic, []string{"generic"}) }
