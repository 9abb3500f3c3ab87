//go:build !race

package dashboard_test

import (
	"net/http"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

func TestUsageAndAudit(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	work(y)
	visit(b, "/ui/usage", "Usage and budgets")
	b.See("calls of models")
	b.See("scripted")
	b.See("Day by day")
	b.See("No call has a known price.")
	b.Until("what has no price is no sum", `document.querySelector(".figures b").innerText === "–" && !document.querySelector(".fig svg")`)
	b.See("By kind of session")
	b.Button("Budget")
	b.Fill("Budget of the account", "30")
	b.Button("Set the budget")
	b.See("It holds from the next call on")
	b.See("$30.00")
	shoot(b, "usage")
	visit(b, "/ui/audit", "Audit")
	b.See("task created")
	shoot(b, "audit")
	browser.Eval[any](b, `document.querySelector("main input[type=search]").focus()`)
	b.Type("task created")
	b.Until("only those", `[...document.querySelectorAll("#events .row")].length === 1`)
	b.Press("Enter")
	first(b, "events")
	b.Until("the event", `document.querySelector("[aria-label=Event]")`)
	b.See("<img src=x onerror=alert(1)>")
	shoot(b, "audit-event")
	b.Press("Backspace")
	b.Until("the event is closed, on the same page", `location.pathname === "/ui/audit" && !document.querySelector("[aria-label=Event]")`)

	// The server filters, and an event is found by its id wherever it is.
	event := call[struct{ Data []struct{ ID string } }](y, http.MethodGet, "/v1/audit/events?filter=kind:task.created", "").Data[0].ID
	b.Go("/ui/audit?kind=account&event=" + event)
	b.Until("the event", `document.querySelector("[aria-label=Event]")?.innerText.includes("task created by you")`)
	b.Until("the events of accounts alone", `[...document.querySelectorAll("#events .row")].length > 0 &&
		[...document.querySelectorAll("#events .row a")].every(a => a.innerText.startsWith("account"))`)
	b.Go("/ui/audit?event=01890000-0000-7000-8000-000000000000")
	b.See("There is no event")
	b.Go("/ui/audit?q=signed+in")
	b.Until("who signed in", `[...document.querySelectorAll("#events .row")].some(r => /^you\s+user signed in/.test(r.innerText))`)
	if got := browser.Eval[bool](b, `/user:[0-9a-f]{8}-/.test(document.querySelector("#events").innerText)`); got {
		t.Error("an event names a person by an id")
	}
	b.Button("Export")
	b.See("exported.")
	b.Go("/ui/ci?check=01890000-0000-7000-8000-000000000000")
	b.See("There is no check")
	content(b)
}

// An ask that was given to a person says what they decided, and offers the judge again only
// where none answered.
func TestAskGivenToAPerson(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	ask := call[struct {
		ID string `json:"askId"`
	}](y, http.MethodPost, "/v1/asks", `{"title": "Be kinder", "body": "To everybody.", "source": "survey"}`).ID
	var escalation string
	patience.Until(y.T, "a person is asked", func() bool {
		rows := call[struct{ Data []struct{ ID string } }](y, http.MethodGet, "/v1/escalations?filter=ask:"+ask, "").Data
		if len(rows) > 0 {
			escalation = rows[0].ID
		}
		return len(rows) > 0
	})
	visit(b, "/ui/asks/"+ask, "Be kinder")
	b.See("It needs a person")
	b.See("Ask the judge again")
	call[any](y, http.MethodPost, "/v1/escalations/"+escalation+"/resolve", `{"note": "We are."}`)
	b.See("by you: We are.")
	b.Until("the way to it", `document.querySelector("main a[href='/ui/escalations/`+escalation+`']")`)
	visit(b, "/ui/notifications", "Inbox")
	b.Until("what became of it", `/resolved .* ago/.test(document.querySelector("#inbox .row")?.lastChild.innerText)`)
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
	b.See("open pull requests")
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
	browser.Eval[any](b, `document.querySelector("[name=seats]").form.sure.focus()`)
	b.Type("acme")
	b.Button("Set the seats")
	b.See("7 paid")
	b.Button("Set")
	b.Until("a role asks for the name of the account", `document.querySelector("[name=role]").form.querySelector("[name=sure][aria-invalid=true]")`)
	b.Button("Grant")
	b.Until("a grant asks for it", `document.querySelector("[name=ai_devs]").form.querySelector("[name=sure][aria-invalid=true]")`)
	shoot(b, "platform-account")
	b.Click(`a[href="/ui/platform/requests"]`)
	heads(b, "Requests")
	b.See("eve@example.com")
	b.See("<img src=x")
	shoot(b, "platform-requests")
	b.Click(`main .item button.main`)
	b.Fill("For days", "9")
	b.Click(`main .item form button.main`)
	b.See("Link of the invitation")
	b.Button("I have kept it")
	b.Button("invitations")
	b.See("eve@example.com")
	b.Button("Give it back")
	b.See("Given back.")
	b.Until("it says what is missing", `(all => all.length > 0 && all.every(e => e.ariaDisabled === "true"))([...document.querySelectorAll("main .item button")])`)
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

// On a phone a table stands as blocks, one below the other: nothing of it is cut off.
func TestTablesOnAPhone(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	work(y)
	box := call[struct{ Data []struct{ ID string } }](y, http.MethodGet, "/v1/runners", "").Data[0].ID
	b.Resize(390, 844)
	for path, name := range map[string]string{
		"/ui/usage": "repository", "/ui/boxes/" + box: "isolation", "/ui/settings/notifications": "approval",
	} {
		b.Go(path)
		b.Until("a table of "+path, `document.querySelector("main .scroll table")?.innerText.toLowerCase() && document.querySelector("main").innerText.includes(`+quoted(name)+`)`)
		b.Until("nothing is cut off in "+path, `[...document.querySelectorAll("main .scroll")].every(e => e.scrollWidth <= e.clientWidth)`)
		usable(b, path+" on a phone")
	}
}
