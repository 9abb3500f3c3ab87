package cli

import (
	"strings"
	"testing"

	"yardmaster/internal/cli/exit"
)

// What is wrong on this machine is told before a server is asked, with the code of a wrong command line.
func TestWrongHere(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{"GET /v1/me": `{"account": {"login": "acme"}}`})
	p := f.person(t)
	for line, shows := range map[string]string{
		"call template.set name=a timeout=@nofile": "nofile: no such file",
		"task create --repo acme/web --file nope":  "nope: no such file",
		"plan file nope --repo acme/web":           "nope: no such file",
		"repo policy acme/web --file nope":         "nope: no such file",
		"audit verify nope":                        "nope: no such file",
		"repo add /nope":                           "there is no folder /nope",
		"task list --every 3s":                     "--every needs --watch",
		"task list --every 3ms":                    "--every takes 1s or more",
	} {
		p.holds(line, exit.CodeMisused, shows)
	}
	p.env = append(p.env, "YARDMASTER_TOKEN=t\nt")
	p.holds("task list", exit.CodeMisused, `has '\n' in it, which no token has`)
	if len(f.calls) > 0 {
		t.Errorf("%q", f.calls)
	}
	f.answers["GET /v1/tasks"] = `{"data": []}`
	p.env = append(p.env, "YARDMASTER_TOKEN= t\r\n")
	p.holds("task list", 0, "There are none yet")
}

// The context that is starred is the one that is used.
func TestUsedContext(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "NO_COLOR=1")
	p.signedIn(`{"current": "home", "contexts": {"home": {"url": "http://127.0.0.1:1", "token": "t"}, "work": {"url": "http://127.0.0.1:2"}}}`)
	used := func(line, want string) {
		t.Helper()
		if shown := strings.TrimSpace(p.holds(line+" --jq '.[]|select(.used).context'", 0)); shown != want {
			t.Errorf("%s: %q, not %q", line, shown, want)
		}
	}
	used("auth list", "home")
	used("auth list --context work", "work")
	p.env = append(p.env, "YARDMASTER_CONTEXT=work")
	used("auth list", "work")
	p.env = append(p.env, "YARDMASTER_CONTEXT=home", "YARDMASTER_TOKEN=t")
	p.holds("doctor", exit.CodeFailed, "from YARDMASTER_TOKEN", "!in the context", "!file of tokens")
}

// What one object has is said in the words of people.
func TestAnswersInWords(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/tasks/" + someID + "/report": `{"task_id": "` + someID + `", "report": "Done.", "report_md": "final_turn"}`,
		"GET /v1/prs/" + someID: `{"id": "` + someID + `", "repo": "acme/web", "number": 3, "state": "open",
			"created_at": "2020-01-02T03:04:05Z", "review": {"state": "none"}}`,
		"GET /v1/prs/" + someID + "/diff":              `{"files": []}`,
		"GET /v1/org/members":                          `{"data": [{"user_id": "` + otherID + `", "login": "ada"}]}`,
		"PUT /v1/billing/spend-cap/members/" + otherID: `{}`,
		"GET /v1/billing/usage":                        `{"members": [{"user_id": "` + otherID + `", "cap_usd": 5}]}`,
	})
	p := f.person(t)
	p.holds("task report "+someID, 0, "report from  the agent's last turn", "!final_turn")
	p.holds("task report "+someID+" --jq .report_md", 0, "final_turn")
	p.holds("pr view "+someID, 0, "opened    ", "2020-01-02 03:04 (", "y ago)")
	p.holds("budget member ada null", 0, "in US dollars: none.", "Undo: yardmaster budget member", " 5")
}
