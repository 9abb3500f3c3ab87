package cli

import (
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

const otherID = "22345678-1234-4234-8234-123456789abc"

// @last is what was there: what was shown, made or acted on, and no id that nothing has.
func TestLast(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/prs/" + someID + "/diff":           `{"files": [], "file": null}`,
		"GET /v1/prs/" + otherID:                    `{"id": "` + otherID + `", "repo": "acme/web", "number": 4, "head_sha": "abc"}`,
		"POST /v1/prs/" + otherID + "/skip-pending": `{}`,
		"GET /v1/schedules/" + someID:               `{"id": "` + someID + `"}`,
		"DELETE /v1/schedules/" + otherID:           `{"id": "` + otherID + `", "deleted": true}`,
		"GET /v1/repos/acme/web":                    `{"id": "7", "full_name": "acme/web"}`,
		"GET /v1/templates/careful":                 `{"name": "careful"}`,
	})
	p := f.person(t)
	p.holds("task view "+someID, exit.CodeNotFound)
	p.holds("task view @last", exit.CodeMisused, "none was yet")
	p.holds("pr diff "+someID, 0)
	p.holds("pr diff @last", 0)
	p.holds("pr skip "+otherID, 0, "Declined: acme/web#4")
	if p.holds("pr skip @last", 0, "Declined: acme/web#4"); !f.was("POST /v1/prs/"+otherID) || f.was("POST /v1/prs/"+someID) {
		t.Errorf("it is another one that is declined: %q", f.calls)
	}
	p.holds("schedule view "+someID, 0)
	p.holds("schedule delete "+otherID, 0)
	p.holds("schedule view @last", 0)                                                      // not what is gone
	for noun, name := range map[string]string{"repo": "acme/web", "template": "careful"} { // which go by their names alone
		p.holds(noun+" view @last", exit.CodeMisused, "none was yet")
		p.holds(noun+" view "+name, 0)
		p.holds(noun+" view @last", 0, name)
	}
}

// A page's address names the object of the page.
func TestPagesNameObjects(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/prs/" + someID:          `{"id": "` + someID + `", "number": 3}`,
		"GET /v1/tasks/" + someID:        `{"id": "` + someID + `", "title": "Mend it"}`,
		"GET /v1/repos/acme/web":         `{"id": "7", "full_name": "acme/web"}`,
		"GET /v1/notifications":          `{"data": [{"id": "` + someID + `", "title": "Asked", "url": "SERVER/ui/prs/9"}]}`,
		"GET /v1/issues/" + someID:       `{"id": "` + someID + `", "repo": "acme/web"}`,
		"GET /v1/integrations/" + someID: `{"id": "` + someID + `"}`,
	})
	p := f.person(t)
	p.holds("pr view "+f.URL+"/ui/prs/"+someID+" --jq .number", 0, "3")
	p.holds("task view "+f.URL+"/ui/tasks/"+someID+"?tab=run --jq .title", 0, "Mend it")
	p.holds("repo view "+f.URL+"/ui/repos/acme/web --jq .id", 0, "7")
	p.holds("task view "+f.URL+"/ui/prs/"+someID, exit.CodeMisused, "the page of no task")
	p.holds("task view https://elsewhere.example/ui/tasks/"+someID, exit.CodeMisused, "no page of")
	for line, want := range map[string]string{
		"repo acme/web": "/ui/repos/acme/web", "issue " + someID: "/ui/repos/acme/web/issues/" + someID,
		"notification " + someID: "/ui/prs/9", "source " + someID: "/ui/settings/integrations/" + someID, "secret": "/ui/settings/secrets",
	} {
		if shown := p.holds("open "+line+" --print", 0); strings.TrimSpace(shown) != f.URL+want {
			t.Errorf("open %s: %s", line, shown)
		}
	}
}
