package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// What judges, agents and repairs do and cost: 15 cents a call, of which one may
// write 2,000 tokens for 20 cents and needs room for 1,024.
const spending = `scenarios:
  - name: judge
    without_tools: true
    match: Ada wants
    steps:
      - text: '{"kind":"mint","reason":"Work.","tasks":[{"repo":"acme/web","title":"Do it","problem":"Nothing: say so."}]}'
        usage: {input: 10, output: 1500}
  - name: repair
    match: make check
    steps:
      - shell: echo >good
        usage: {input: 10, output: 1500}
      - text: It is good.
        usage: {input: 10, output: 10}
  - name: review
    match: Review pull request
    steps:
      - text: '{"findings": []}'
        usage: {input: 10, output: 20}
  - name: work
    match: Make a file
    steps:
      - shell: echo >file
        usage: {input: 10, output: 1500}
      - text: There is a file.
        usage: {input: 10, output: 10}
  - name: none
    match: ""
    steps:
      - text: There is nothing to do.
        usage: {input: 10, output: 1500}
`

const twoDollarsAToken = "as_of: \"2026-01-01\"\nprices:\n  - {provider: scripted, family: \"*\", input: 0, output: 100, max_output: 2000}\n"

type spentTask struct {
	ID          string
	Status      string
	Kind        string
	Title       string
	CreatedBy   string  `json:"created_by"`
	RequestedBy *string `json:"requested_by"`
	Failure     *string
	PRID        *string `json:"pr_id"`
	Budget      struct{ USD, Reserved, Spent *string }
	Holds       []struct {
		Reason     string
		ClearsWhen string `json:"clears_when"`
		Clear      *struct {
			Capability string
			Args       map[string]string
		}
	}
}

func (y *yard) task(id string) (t spentTask) {
	decode(y.t, y.send(http.MethodGet, "/v1/tasks/"+id, y.owner, "").want(200), &t)
	return t
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	at := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// TestLimitsFollowWork: what a person asks for is paid within that person's
// limit, triage and all; and the repair of a pull request within the budget of
// the task that made it.
func TestLimitsFollowWork(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e, "--scenario", file(t, "s.yml", spending), "--prices", file(t, "p.yml", twoDollarsAToken))
			y.push("acme/web", map[string]string{"README": "hello\n",
				".svc/policy.yml": "version: 1\nreview: {mode: off}\nchecks: {command: \"test -e good # make check\"}\n"})
			y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
			setCap := func(usd string) {
				t.Helper()
				y.send("PUT", "/v1/billing/spend-cap/members/"+y.user, y.owner, `{"usd": `+usd+`}`).want(200)
			}
			type seen struct {
				State       string
				RequestedBy *string `json:"requested_by"`
				Verdict     *struct {
					TaskIDs []string `json:"task_ids"`
				}
				Hold *struct {
					Reason     string
					ClearsWhen string `json:"clears_when"`
					Clear      struct {
						Capability string
						Args       map[string]string
					}
				}
			}
			look := func(askID string) (a seen) {
				decode(t, y.send("GET", "/v1/asks/"+askID, y.owner, "").want(200), &a)
				return a
			}
			ask := func(bearer string) string {
				t.Helper()
				var filed struct{ AskID string }
				decode(t, y.send("POST", "/v1/asks", bearer,
					`{"repo": "acme/web", "title": "Ada wants it", "body": "Ada wants it done."}`).want(202), &filed)
				return filed.AskID
			}
			// The judge of Ada's ask may not be paid; that of Bob's may.
			setCap("0.000001")
			bob := y.person("bob", y.acct, policy.Member)
			hers, his := ask(y.owner), ask(y.mint(y.acct, &bob, policy.Member.Ceiling(), nil))
			patience.Until(y.t, "her ask is held and his is judged", func() bool {
				return look(hers).Hold != nil && look(his).State == "triaged"
			})
			a := look(hers)
			if a.State != "pending" || a.Hold.Reason != "budget_exhausted" || a.Hold.Clear.Capability != "billing.member_cap_set" ||
				a.Hold.Clear.Args["userId"] != y.user ||
				a.RequestedBy == nil || *a.RequestedBy != y.user {
				t.Errorf("her ask %+v, %+v", a, a.Hold)
			}
			setCap("0.2") // enough for the judge alone
			patience.Until(y.t, "her ask is judged", func() bool { return look(hers).State == "triaged" })
			if a = look(hers); a.Hold != nil || len(a.Verdict.TaskIDs) != 1 {
				t.Fatalf("%+v", a)
			}
			minted := y.task(a.Verdict.TaskIDs[0])
			if minted.CreatedBy != "system" || minted.RequestedBy == nil || *minted.RequestedBy != y.user {
				t.Errorf("minted %+v", minted)
			}

			var enrolled struct{ Token string }
			decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, "{}").want(201), &enrolled)
			y.box(enrolled.Token)
			patience.Until(y.t, "the minted task is held by her cap", func() bool { return y.task(minted.ID).Status == "held" })
			if got := y.task(minted.ID); len(got.Holds) != 1 || got.Holds[0].Reason != "budget_exhausted" ||
				got.Holds[0].Clear.Capability != "billing.member_cap_set" ||
				got.Failure == nil || *got.Failure != "The member's budget of this month has no room for another call." {
				t.Errorf("held %+v", got)
			}
			var usage struct {
				Members []struct {
					UserID string `json:"user_id"`
					Spent  string `json:"spent_usd"`
				}
			}
			decode(t, y.send("GET", "/v1/billing/usage", y.owner, "").want(200), &usage)
			for _, m := range usage.Members {
				if m.Spent != "0.15" && m.UserID == y.user {
					t.Errorf("the triage of her ask cost her %s", m.Spent)
				}
			}
			setCap("null")
			patience.Until(y.t, "it goes on", func() bool { return y.task(minted.ID).Status == "completed" })

			// The check is red; its repair has what the task has left.
			var work struct {
				ID string `json:"task_id"`
			}
			decode(t, y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/web", "title": "Make a file", "problem": "Make a file.", "budget_usd": 0.34}`).want(202), &work)
			var round spentTask
			patience.Until(y.t, "the repair is held by the work's budget", func() bool {
				var list struct{ Data []spentTask }
				decode(t, y.send("GET", "/v1/tasks?filter=kind:babysit", y.owner, "").want(200), &list)
				for _, r := range list.Data {
					round = r
				}
				return round.Status == "held"
			})
			if h := round.Holds[0]; len(round.Holds) != 1 || h.Reason != "budget_exhausted" || h.Clear.Capability != "task.budget_set" ||
				h.Clear.Args["id"] != work.ID || !strings.Contains(h.ClearsWhen, "the task “Make a file”") ||
				round.RequestedBy == nil || *round.RequestedBy != y.user || round.CreatedBy != "system" {
				t.Errorf("the repair is %+v", round)
			}
			y.send("PUT", "/v1/tasks/"+work.ID+"/budget", y.owner, `{"usd": 5}`).want(200)
			patience.Until(y.t, "the repair is done", func() bool { return y.task(round.ID).Status == "completed" })
			// 15.1 cents, 15 before the repair was held, and 15.1 after.
			if got := y.task(work.ID); got.Budget.Spent == nil || *got.Budget.Spent != "0.452" {
				t.Errorf("the work, with its repair, has cost %v", *got.Budget.Spent)
			} else if got.Budget.Reserved == nil || strings.Trim(*got.Budget.Reserved, "0.") != "" {
				t.Errorf("money is set aside for work that has ended: %+v", got)
			}

			// What a review costs is the work's, too.
			y.push("acme/api", map[string]string{"README": "hello\n"})
			decode(t, y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/api", "title": "Make a file", "problem": "Make a file."}`).want(202), &work)
			patience.Until(y.t, "the work, with its review, has cost 15.3 cents", func() bool {
				spent := y.task(work.ID).Budget.Spent
				return spent != nil && *spent == "0.153"
			})
			var checks struct{ Data []spentTask }
			decode(t, y.send("GET", "/v1/tasks?filter=kind:ci", y.owner, "").want(200), &checks)
			for _, c := range checks.Data {
				if c.RequestedBy == nil || *c.RequestedBy != y.user {
					t.Errorf("the check is %+v", c)
				}
			}
		})
	}
}

// TestUnpricedModel: where a limit holds, a model without a price is not called
// until it has one, or no limit is left.
func TestUnpricedModel(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e, "--scenario", file(t, "s.yml", spending))
			y.push("acme/web", map[string]string{"README": "hello\n"})
			var key, enrolled struct{ ID, Token string }
			decode(t, y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201), &key)
			decode(t, y.send("POST", "/v1/runners/enrollments", y.owner, "{}").want(201), &enrolled)
			y.box(enrolled.Token)
			create := func(more string) string {
				t.Helper()
				var made struct {
					ID string `json:"task_id"`
				}
				decode(t, y.send("POST", "/v1/tasks", y.owner,
					`{"repo": "acme/web", "title": "Nothing", "problem": "Nothing."`+more+`}`).want(202), &made)
				return made.ID
			}
			is := func(id, status string) {
				t.Helper()
				patience.Until(y.t, "the task is "+status, func() bool { return y.task(id).Status == status })
			}
			free := create("")
			is(free, "completed")
			if got := y.task(free); got.Budget.Spent != nil {
				t.Errorf("without a price it cost %s", *got.Budget.Spent)
			}
			heldFor := func(id string) {
				t.Helper()
				is(id, "held")
				got := y.task(id)
				if len(got.Holds) != 1 || got.Holds[0].Reason != "unpriced_model" || got.Holds[0].Clear.Capability != "billing.price_set" ||
					got.Holds[0].Clear.Args["provider"] != "scripted" || got.Holds[0].Clear.Args["model"] == "" {
					t.Errorf("held %+v", got)
				}
			}
			// By its own limit, which is lifted.
			one := create(`, "budget_usd": 1`)
			heldFor(one)
			var status struct {
				Data []struct {
					Reason  string
					TaskIDs []string `json:"task_ids"`
				}
			}
			decode(t, y.send("GET", "/v1/queue/status", y.owner, "").want(200), &status)
			if len(status.Data) != 1 || status.Data[0].Reason != "unpriced_model" || status.Data[0].TaskIDs[0] != one {
				t.Errorf("stalls %+v", status)
			}
			y.send("PUT", "/v1/tasks/"+one+"/budget", y.owner, `{"usd": null}`).want(200)
			is(one, "completed")
			// By the account's, until the model has a price.
			y.send("PUT", "/v1/billing/spend-cap", y.owner, `{"usd": 100}`).want(200)
			var filed struct{ AskID string }
			decode(t, y.send("POST", "/v1/asks", y.owner,
				`{"repo": "acme/web", "title": "Ada wants it", "body": "Ada wants it done."}`).want(202), &filed)
			type seen struct {
				State string
				Hold  *struct {
					Reason string
					Clear  struct{ Capability string }
				}
			}
			look := func() (a seen) {
				decode(t, y.send("GET", "/v1/asks/"+filed.AskID, y.owner, "").want(200), &a)
				return a
			}
			patience.Until(y.t, "the judge is not paid", func() bool { return look().Hold != nil })
			if a := look(); a.State != "pending" || a.Hold.Reason != "unpriced_model" || a.Hold.Clear.Capability != "billing.price_set" {
				t.Errorf("the ask is %+v", a)
			}
			two := create("")
			heldFor(two)
			model := y.task(two).Holds[0].Clear.Args["model"]
			y.send("PUT", "/v1/billing/spend-cap", y.owner, `{"usd": 200}`).want(200)
			if got := y.task(two).Status; got != "held" {
				t.Errorf("a higher limit, and it is %s", got)
			}
			y.send("PUT", "/v1/billing/prices", y.owner,
				`{"provider": "scripted", "model": "`+model+`", "input_usd": 0, "output_usd": 100}`).want(200)
			is(two, "completed")
			patience.Until(y.t, "the ask is judged", func() bool { return look().State == "triaged" })
			if got := y.task(two); got.Budget.Spent == nil || *got.Budget.Spent != "0.15" {
				t.Errorf("at its price it cost %v", got.Budget.Spent)
			}
			y.send("DELETE", "/v1/billing/prices?provider=scripted&model="+model, y.owner, "").want(200)
			three := create("")
			heldFor(three)
			y.send("PUT", "/v1/billing/keys/"+key.ID+"/price", y.owner, `{"price": {"input_usd": 0, "output_usd": 0}}`).want(200)
			is(three, "completed")
			if got := y.task(three); got.Budget.Spent == nil || *got.Budget.Spent != "0.00" {
				t.Errorf("for nothing it cost %v", got.Budget.Spent)
			}
		})
	}
}
