//go:build !race

package dashboard_test

import (
	"net/http"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
)

func TestUsageAndAudit(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	work(y)
	visit(b, "/ui/usage", "Usage and budgets")
	b.See("calls of models")
	b.See("scripted")
	b.Button("Cap")
	b.Fill("Cap for a month", "30")
	b.Button("Set the cap")
	b.See("It holds from the next call on")
	b.See("$30.00")
	shoot(b, "usage")
	visit(b, "/ui/audit", "Audit")
	b.See("task created")
	shoot(b, "audit")
	browser.Eval[any](b, `document.querySelector("main input[type=search]").focus()`)
	b.Type("task created")
	b.Until("only those", `[...document.querySelectorAll("#events .row")].length === 1`)
	b.Press("Escape")
	first(b, "events")
	b.Until("the event", `document.querySelector("[aria-label=Event]")`)
	b.See("<img src=x onerror=alert(1)>")
	shoot(b, "audit-event")
	content(b)
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	apply := `{"email": "eve@example.com", "name": ` + quoted(nasty) + `}`
	if resp, text := y.Send(http.MethodPost, "/v1/access-requests", "the-form", apply); resp.StatusCode >= 300 {
		t.Fatalf("apply: %d %s", resp.StatusCode, text)
	}
	visit(b, "/ui/platform", "Platform")
	b.See("accounts")
	shoot(b, "platform")
	visit(b, "/ui/platform/accounts", "Accounts")
	b.See("acme")
	shoot(b, "platform-accounts")
	first(b, "accounts")
	heads(b, "acme")
	b.See("get an operator's key first")
	b.Button("Operator's key")
	b.Fill("Your password", "not it at all")
	b.Button("Get the key")
	b.Until("a refusal", `document.querySelector("dialog .trouble")`)
	b.Fill("Your password", rig.Password)
	b.Button("Get the key")
	b.See("Operator's key, for")
	b.Gone("get an operator's key first")
	b.Fill("Agents it pays for", "7")
	b.Button("Set the seats")
	b.See("must be acme")
	browser.Eval[any](b, `[...document.querySelectorAll("[name=sure]")][1].focus()`)
	b.Type("acme")
	b.Button("Set the seats")
	b.See("7 paid")
	shoot(b, "platform-account")
	b.Click(`a[href="/ui/platform/requests"]`)
	heads(b, "Requests")
	b.See("eve@example.com")
	b.See("<img src=x")
	shoot(b, "platform-requests")
	b.Click(`main .card button.main`)
	b.Fill("For days", "9")
	b.Click(`main .card form button.main`)
	b.See("Link of the invitation")
	b.Button("I have kept it")
	b.Button("invitations")
	b.See("eve@example.com")
	b.Button("Give it back")
	b.See("Given back.")
	b.Until("it says what is missing", `[...document.querySelectorAll("main .card button")].every(e => e.disabled)`)
	visit(b, "/ui/platform/users", "Users")
	b.See("ada@example.com")
	first(b, "users")
	heads(b, "ada")
	shoot(b, "platform-user")
	visit(b, "/ui/platform/trail", "Trail")
	b.See("account.user_get")
	shoot(b, "platform-trail")
	b.Button("events")
	b.See("access request")
	visit(b, "/ui/platform/goals", "Goals")
	b.See("--goals-repo")
	visit(b, "/ui/platform/runs", "Runs")
	b.See("before anything is shown")
	visit(b, "/ui/platform/mail", "Mail")
	b.See("Refused addresses")
	shoot(b, "platform-mail")
	visit(b, "/ui/platform/hosts", "Code hosts")
	b.See("Only the built-in one")
	shoot(b, "platform-hosts")
	content(b)
}

func TestRunOfAnyAccount(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	id := call[struct {
		Run string `json:"run_id"`
	}](y, http.MethodGet, "/v1/tasks/"+work(y), "").Run
	visit(b, "/ui/platform/runs?run="+id, "Runs")
	b.Button("Look")
	b.See("There is nothing to do.")
	b.See("The run is over.")
	shoot(b, "platform-run")
	content(b)
}
