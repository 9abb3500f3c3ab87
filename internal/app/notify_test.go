package app

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// What a person is told of follows the work: a question of an agent, a failure, a question
// about a merge, what is done; and the inbox settles what somebody has dealt with. Who
// acted, and who has nothing to do with it, is told nothing.
func TestNotices(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		y.push("acme/web", map[string]string{"README": "hello\n"})
		bob := y.person("bob", y.acct, policy.Member)
		bobs := y.mint(y.acct, &bob, policy.Member.Ceiling(), nil)
		inbox := func(bearer string) string {
			var page struct {
				Data []struct {
					Kind, Title, Text string
					Settled           *string `json:"settled_at"`
				}
			}
			decode(t, y.send("GET", "/v1/notifications?filter=state:all", bearer, "").want(200), &page)
			var out strings.Builder
			for _, n := range page.Data {
				out.WriteString(n.Kind + ": " + n.Title + "; ")
				if n.Settled != nil {
					out.WriteString("settled; ")
				}
			}
			return out.String()
		}
		filed := func(title string) string {
			var made struct {
				TaskID string `json:"task_id"`
			}
			decode(
				t,
				y.send("POST", "/v1/tasks", bobs, `{"repo": "acme/web", "title": "`+title+`", "problem": "It is not."}`).want(202),
				&made,
			)
			return made.TaskID
		}
		asks := filed("Ask me")
		y.block(asks, "missing_credential", map[string]string{"PAYMENT_KEY": "env_secret"})
		patience.Until(y.t, "bob hears of the blocker", func() bool {
			return strings.Contains(inbox(bobs), "blocker: A run needs you: Ask me")
		})
		// Bob may not write secrets: his mail has no link of the form.
		patience.Until(y.t, "it is mailed", func() bool { return len(y.letters("bob@example.com")) > 0 })
		if text := strings.Join(y.letters("bob@example.com"), "\n"); strings.Contains(text, "/blocker-fix/") {
			t.Errorf("bob was given the form: %s", text)
		}
		y.send("POST", "/v1/tasks/"+asks+"/cancel", bobs, "").want(200)
		patience.Until(y.t, "nobody has to look", func() bool { return strings.Contains(inbox(bobs), "Ask me; settled") })

		fails := filed("Break it")
		y.rig().OnTask(fails, func(tx *db.Tx, r *task.Row) error {
			return y.rig().Tasks.Fail(tx, r, task.PolicyRefused, "It is refused.")
		})
		patience.Until(y.t, "bob hears of the failure", func() bool {
			return strings.Contains(inbox(bobs), "task_failed: Failed: Break it; ")
		})
		y.send("POST", "/v1/tasks/"+fails+"/redispatch", bobs, `{"guidance": "Again."}`).want(200)
		patience.Until(y.t, "it is settled", func() bool { return strings.Contains(inbox(bobs), "Break it; settled") })

		y.send("POST", "/v1/asks", bobs, `{"title": "Be kinder", "body": "Everywhere.", "source": "survey"}`).want(202)
		patience.Until(y.t, "the owner hears of the escalation", func() bool {
			return strings.Contains(inbox(y.owner), "escalation: Be kinder")
		})
		if got := inbox(y.owner); strings.Count(got, ";") != 1 {
			t.Errorf("the owner is told %s", got)
		}
		b := y.station(y.owner)
		y.send("PUT", "/v1/runners/"+b.ID+"/owner", y.owner, `{"target": "user", "owner_id": "`+bob+`"}`).want(200)
		patience.Until(y.t, "bob is asked to own the box", func() bool { return strings.Contains(inbox(bobs), " take your work?; ") })
		y.send("PUT", "/v1/runners/"+b.ID+"/owner", y.owner, `{"target": "org"}`).want(200)
		patience.Until(y.t, "bob is asked no more", func() bool { return strings.Contains(inbox(bobs), " take your work?; settled") })
		other := y.tenant("rival")
		eve := y.person("eve", other, policy.Owner)
		if got := inbox(y.mint(other, &eve, policy.Owner.Ceiling(), nil)); got != "" {
			t.Errorf("another account is told %s", got)
		}
		y.send("GET", "/v1/notifications", y.mint(y.acct, nil, policy.Owner.Ceiling(), nil), "").want(http.StatusForbidden)
	})
}

// The inbox is a topic of streams, of each person their own.
func TestInboxIsStreamed(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	bob := y.person("bob", y.acct, policy.Member)
	bobs := y.mint(y.acct, &bob, policy.Member.Ceiling(), nil)
	asked := false
	a := y.hear("/v1/streams?topics=notifications", y.owner, nil, func(a answer) bool {
		if !asked && bytes.Contains(a.body, []byte("event: ready")) {
			asked = true
			y.send("POST", "/v1/asks", bobs, `{"title": "Be kinder", "body": "Everywhere.", "source": "survey"}`).want(202)
		}
		return bytes.Contains(a.body, []byte(`"kind":"escalation"`))
	})
	if !bytes.Contains(a.body, []byte(`"topic":"notifications"`)) {
		t.Errorf("heard %s", a.body)
	}
	y.send("GET", "/v1/streams?topics=notifications", y.mint(y.acct, nil, policy.Owner.Ceiling(), nil), "").want(http.StatusForbidden)
}
