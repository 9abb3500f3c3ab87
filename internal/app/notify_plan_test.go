package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

// A plan whose unit fails is told once, as the plan, with the unit in which it began; what
// revives the unit settles it.
func TestPlanNotices(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		y.push("acme/web", map[string]string{"README": "hello\n"})
		bob := y.person("bob", y.acct, policy.Member)
		bobs := y.mint(y.acct, &bob, policy.Member.Ceiling(), nil)
		type notice struct {
			Kind, Title, Text, Noun, Subject string
			Count                            int
			Settled                          *string `json:"settled_at"`
		}
		inbox := func() []notice {
			var page struct{ Data []notice }
			decode(t, y.send("GET", "/v1/notifications?filter=state:all", bobs, "").want(200), &page)
			return page.Data
		}
		var filed struct {
			PlanID  string   `json:"plan_id"`
			TaskIDs []string `json:"task_ids"`
		}
		decode(t, y.send("POST", "/v1/plans/file", bobs, `{"repo": "acme/web", "slug": "greet", "documents": {
			"overview.md": "# Greet\n\nNobody is greeted.\n", "01-first.md": "# First\n\nOne line.\n",
			"02-second.md": "---\ndepends_on: [01-first]\n---\n# Second\n\nOne line.\n",
			"03-third.md": "---\ndepends_on: [02-second]\n---\n# Third\n\nOne line.\n"}}`).want(http.StatusAccepted), &filed)
		y.rig().OnTask(filed.TaskIDs[0], func(tx *db.Tx, r *task.Row) error {
			return y.rig().Tasks.Fail(tx, r, task.PolicyRefused, "It is refused.")
		})
		patience.Until(y.t, "bob hears of the plan", func() bool { return len(inbox()) > 0 })
		// A later failure of his is told after all that the first one led to.
		var made struct {
			TaskID string `json:"task_id"`
		}
		decode(t, y.send("POST", "/v1/tasks", bobs, `{"repo": "acme/web", "title": "Last", "problem": "It is not."}`).want(202), &made)
		y.rig().OnTask(made.TaskID, func(tx *db.Tx, r *task.Row) error {
			return y.rig().Tasks.Fail(tx, r, task.PolicyRefused, "It is refused.")
		})
		patience.Until(y.t, "and of what failed after it", func() bool {
			return slices.ContainsFunc(inbox(), func(n notice) bool { return n.Title == "Failed: Last" })
		})
		all := inbox()
		if len(all) != 2 {
			t.Fatalf("told %+v", all)
		}
		n := all[slices.IndexFunc(all, func(n notice) bool { return n.Kind == "plan" })]
		if n.Noun != "plan" || n.Subject != filed.PlanID || n.Count != 1 || !strings.HasPrefix(n.Title, "The plan failed: ") ||
			!strings.Contains(n.Text, "First: It is refused.") || strings.Contains(n.Text, filed.TaskIDs[0]) {
			t.Errorf("%+v", n)
		}
		y.send("POST", "/v1/tasks/"+filed.TaskIDs[0]+"/redispatch", bobs, `{"guidance": "Again."}`).want(200)
		patience.Until(y.t, "it is settled", func() bool {
			return slices.ContainsFunc(inbox(), func(n notice) bool { return n.Kind == "plan" && n.Settled != nil })
		})
	})
}

// A hand-off that its webhook has taken is delivered. One that it has not, and cannot any more,
// is failed, and who handed it off hears of it, until it is handed off anew.
func TestHandoffToItsEnd(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, slices.Concat(flags, []string{"--allow-networks", "127.0.0.0/8"})...)
		y.push("acme/web", map[string]string{"README": "hello\n"})
		tried := make(chan string, 100)
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/broken") {
				w.WriteHeader(http.StatusInternalServerError)
			}
			tried <- r.URL.Path
		}))
		t.Cleanup(receiver.Close)
		issueID := id.New()
		y.in(y.acct, func(tx *db.Tx) error {
			r, _, err := repo.ByName(tx, "acme", "web")
			if err != nil {
				return err
			}
			return seed.Add(tx, seed.Issue{ID: issueID, Account: y.acct, Repo: r.ID, Number: 7})
		})
		hook := func(name string) (hookID string) {
			var made struct{ ID string }
			decode(t, y.send("POST", "/v1/webhooks", y.owner,
				fmt.Sprintf(`{"name": %q, "url": "%s/%s", "events": ["issue.handoff"]}`, name, receiver.URL, name)).want(201), &made)
			return made.ID
		}
		type handoff struct {
			State   string
			Failure *string
		}
		shown := func() handoff {
			var i struct{ Handoff handoff }
			decode(t, y.send("GET", "/v1/issues/"+issueID, y.owner, "").want(200), &i)
			return i.Handoff
		}
		hand := func(name string) {
			y.send("POST", "/v1/issues/"+issueID+"/handoff", y.owner, fmt.Sprintf(`{"reason": "x", "webhook_ref": %q}`, name)).want(202)
		}
		notices := func() (n, settled int) {
			var page struct {
				Data []struct {
					Kind, Noun, Subject string
					Settled             *string `json:"settled_at"`
				}
			}
			decode(t, y.send("GET", "/v1/notifications?filter=state:all", y.owner, "").want(200), &page)
			for _, one := range page.Data {
				if one.Kind != "connection" || one.Noun != "issue" || one.Subject != issueID {
					continue
				}
				if n++; one.Settled != nil {
					settled++
				}
			}
			return n, settled
		}
		broken := hook("broken")
		hand("broken")
		patience.Receive(y.t, "it is tried", tried)
		patience.Until(y.t, "it is sent", func() bool { return shown().State == "sent" })
		y.send("DELETE", "/v1/webhooks/"+broken, y.owner, "").want(200)
		if got := shown(); got.State != "failed" || got.Failure == nil || !strings.Contains(*got.Failure, "deleted") {
			t.Errorf("%+v", got)
		}
		patience.Until(y.t, "the owner hears of it", func() bool { n, _ := notices(); return n == 1 })
		hook("coder")
		hand("coder")
		patience.Until(y.t, "it is delivered", func() bool { return shown().State == "delivered" })
		patience.Until(y.t, "nobody has to see to it", func() bool { n, settled := notices(); return n == 1 && settled == 1 })
	})
}
