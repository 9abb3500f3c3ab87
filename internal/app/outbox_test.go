package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// A judge that mints whatever it is asked for, in the repository that the ask names.
const willing = `scenarios:
  - name: elsewhere
    without_tools: true
    match: Refresh the notes
    steps:
      - text: '{"kind":"mint","reason":"Plain work.","tasks":[{"repo":"acme/vaulted","title":"Refresh the notes","problem":"Run sh notes.sh."}]}'
  - name: here
    without_tools: true
    match: Mend the tests
    steps:
      - text: '{"kind":"mint","reason":"Plain work.","tasks":[{"repo":"acme/public","title":"Mend the tests","problem":"They are slow."}]}'
`

// seenTask is a task as these tests look at it.
type seenTask struct {
	ID, Title, Repo, Status string
	RequestedBy             *string `json:"requested_by"`
}

// A test script that an agent runs writes asks into the outbox: of the repository that it is
// of, and of another one, which has a secret. The first is judged, and its task drives git
// without the token of the person at the beginning. The second waits for a person, who is
// told which run of which task in which repository asks; nothing begins before that person
// says so, and then as theirs.
func TestOutboxStaysInItsRepository(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "judge.yml")
			if err := os.WriteFile(script, []byte(willing), 0o600); err != nil {
				t.Fatal(err)
			}
			y := start(t, e, "--scenario", script)
			y.push("acme/public", map[string]string{"test.sh": `
printf '{"title":"Refresh the notes","body":"They are stale.","repo":"acme/vaulted"}' >"$YARDMASTER_OUTBOX/ask-1.json"
printf '{"title":"Mend the tests","body":"They are slow."}' >"$YARDMASTER_OUTBOX/ask-2.json"
printf '{"kind":"label","pull":1,"label":"x","why":"there is none"}' >"$YARDMASTER_OUTBOX/action-1.json"
`, ".svc/policy.yml": "version: 1\nagent: {template: quiet}\n"})
			y.push("acme/vaulted", map[string]string{".svc/policy.yml": "version: 1\nagent: {template: worker}\n"})
			y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
			y.send("PUT", "/v1/repos/acme/vaulted/secrets/DEPLOY_KEY", y.owner, `{"value": "VAULTED-CANARY-0123456789"}`).want(200)
			for name, command := range map[string]string{"tests": "sh ./test.sh", "worker": "echo $DEPLOY_KEY | rev", "quiet": "true"} {
				y.send("PUT", "/v1/templates/"+name, y.owner,
					`{"agent": "command", "isolation": "none", "command": ["sh", "-c", "`+command+`"]}`).want(200)
			}
			bob := y.person("bob", y.acct, policy.Member)
			bobs := y.mint(y.acct, &bob, policy.Scopes(policy.ReadTasks, policy.WriteTasks), nil)
			var enrolled struct{ Token string }
			decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, `{}`).want(201), &enrolled)
			y.box(enrolled.Token)
			var first struct {
				TaskID string `json:"task_id"`
			}
			decode(t, y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/public", "title": "Run the tests", "problem": "Run them.", "template": "tests"}`).want(202), &first)

			asks := func() map[string]struct {
				seenAsk
				ID, Title string
				Repo      *string
			} {
				var page struct {
					Data []struct {
						seenAsk
						ID, Title string
						Repo      *string
					}
				}
				decode(t, y.send("GET", "/v1/asks?filter=source:run", y.owner, "").want(200), &page)
				out := map[string]struct {
					seenAsk
					ID, Title string
					Repo      *string
				}{}
				for _, a := range page.Data {
					out[a.Title] = a
				}
				return out
			}
			tasks := func(repo string) (out []seenTask) {
				var page struct{ Data []seenTask }
				decode(t, y.send("GET", "/v1/tasks", y.owner, "").want(200), &page)
				for _, s := range page.Data {
					if s.Repo == repo {
						out = append(out, s)
					}
				}
				return out
			}
			patience.Until(t, "both asks are decided", func() bool {
				all := asks()
				return len(all) == 2 && all["Refresh the notes"].State != "pending" && all["Mend the tests"].State != "pending"
			})
			own, other := asks()["Mend the tests"], asks()["Refresh the notes"]
			if own.State != "triaged" || len(own.Verdict.TaskIDs) != 1 {
				t.Fatalf("the ask for its own repository is %+v", own)
			}
			y.in(y.acct, func(tx *db.Tx) error {
				minted, _, err := task.Get(tx, y.acct, own.Verdict.TaskIDs[0])
				if !minted.Unbound || minted.RequestedBy == nil || *minted.RequestedBy == bob {
					t.Errorf("it was minted as %+v", minted)
				}
				return err
			})
			if other.State != "escalated" || *other.EscalationReason != "other_repository" || len(tasks("acme/vaulted")) != 0 {
				t.Fatalf("the ask for another repository is %+v, with the tasks %v", other, tasks("acme/vaulted"))
			}
			var raised struct{ Data []struct{ Reason string } }
			decode(t, y.send("GET", "/v1/escalations?filter=state:open", bobs, "").want(200), &raised)
			if len(raised.Data) != 1 || !strings.HasPrefix(raised.Data[0].Reason, "The run ") || !strings.Contains(raised.Data[0].Reason,
				` of the task "Run the tests" (`+first.TaskID+`) in acme/public asks for work in acme/vaulted. It is another repository`) {
				t.Errorf("a person is told %+v", raised.Data)
			}
			y.send("POST", "/v1/asks/"+other.ID+"/redrive", y.owner, "").want(409)
			y.send("POST", "/v1/asks/"+own.ID+"/approve", bobs, "").want(409)
			y.send("POST", "/v1/asks/"+other.ID+"/approve", y.mint(y.acct, nil, policy.Scopes(policy.WriteTasks), nil), "").want(403)
			y.send("POST", "/v1/asks/"+other.ID+"/approve", bobs, "").want(200)
			patience.Until(t, "the task has begun, and ended", func() bool {
				all := tasks("acme/vaulted")
				return len(all) == 1 && (all[0].Status == "completed" || all[0].Status == "failed")
			})
			if made := tasks("acme/vaulted")[0]; made.RequestedBy == nil || *made.RequestedBy != bob {
				t.Errorf("it is the task of %v", made.RequestedBy)
			}
		})
	}
}
