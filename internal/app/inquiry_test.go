package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// The scripted model as one that is asked about a repository.
const answers = `scenarios:
  - name: port
    without_tools: true
    match: "| Which port is it?"
    steps:
      - text: '{"claims":[{"text":"` + "`port`" + ` is 8080.","citations":["config.yml:1"]},{"text":"` + "`host`" + ` is \"example.org\".","citations":["config.yml:1"]}]}'
        usage: {input: 1000, output: 100}
  - name: page
    without_tools: true
    match: "PAGE guides/port"
    steps:
      - text: '{"claims":[{"text":"` + "`harbour`" + ` is open at night.","citations":["harbour.txt:1"]}]}'
  - name: none
    without_tools: true
    match: ""
    steps:
      - text: '{"claims":[]}'
`

// A question goes through the whole program: the host, the pages, the gateway, the account's key
// and its sessions.
func TestInquiry(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "answers.yml")
			if err := os.WriteFile(script, []byte(answers), 0o600); err != nil {
				t.Fatal(err)
			}
			y := start(t, e, "--scenario", script)
			y.push("acme/web", map[string]string{"config.yml": "port: 8080\n", "harbour.txt": "harbour = open at night\n"})
			const at = "/v1/repos/acme/web/ask"
			keyless := y.send("POST", at, y.owner, `{"question":"Which port is it?"}`).want(403)
			if !strings.Contains(string(keyless.body), "no_credential") {
				t.Errorf("without a key: %s", keyless.body)
			}
			y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
			var a struct {
				Refused, Partial bool
				Answer, Code     *string
				Dropped          int
				Pages            []string
				SessionID        string `json:"session_id"`
				Citations        []struct{ Cite, Text, Commit string }
			}
			decode(t, y.send("POST", at, y.owner, `{"question":"Which port is it?"}`).want(200), &a)
			if a.Refused || *a.Answer != "`port` is 8080 [1]." || a.Dropped != 1 || len(a.Citations) != 1 ||
				a.Citations[0].Cite != "config.yml:1" || a.Citations[0].Text != "port: 8080" || len(a.Citations[0].Commit) != 40 {
				t.Errorf("%+v", a)
			}
			var session struct {
				Kind, Trigger, Repo, Outcome string
				Calls                        int
				Tokens                       struct{ Input int }
			}
			patience.Until(t, "the session is closed and counted", func() bool {
				decode(t, y.send("GET", "/v1/sessions/"+a.SessionID, y.owner, "").want(200), &session)
				return session.Kind == "ask" && session.Trigger == "question" && session.Repo == "acme/web" &&
					session.Outcome == "succeeded" && session.Calls == 1 && session.Tokens.Input == 1000
			})
			// A page leads to a file that has no word of the question.
			var repo struct{ ID string }
			decode(t, y.send("GET", "/v1/repos/acme/web", y.owner, "").want(200), &repo)
			y.send("PUT", "/v1/kb/"+repo.ID+"/pages/guides/port", y.owner,
				`{"body":"# Mooring\n\nShips moor by day.","provenance":{"files":["harbour.txt"]}}`).want(201)
			decode(t, y.send("POST", at, y.owner, `{"question":"When do ships moor?"}`).want(200), &a)
			if a.Refused || len(a.Pages) != 1 || a.Pages[0] != "guides/port" || a.Citations[0].Cite != "harbour.txt:1" {
				t.Errorf("by a page: %+v", a)
			}
			decode(t, y.send("POST", at, y.owner, `{"question":"What is the port of the moon?"}`).want(200), &a)
			if !a.Refused || *a.Code != "no_answer" {
				t.Errorf("no answer: %+v", a)
			}
			y.send("PUT", "/v1/billing/spend-cap", y.owner, `{"usd": 0}`).want(200)
			if got := y.send("POST", at, y.owner, `{"question":"Which port is it?"}`); got.StatusCode != 402 {
				t.Errorf("beyond the cap: %d %s", got.StatusCode, got.body)
			}
			machine := y.mint(y.tenant("rival"), nil, policy.Scopes(policy.ReadRepos), nil)
			y.send("POST", at, machine, `{"question":"Which port is it?"}`).want(404)
		})
	}
}
