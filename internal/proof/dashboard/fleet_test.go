//go:build !race

package dashboard_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
)

// begin runs a server that ada has set up, and signs her in.
func begin(t *testing.T, flags ...string) (*rig.Yard, *browser.Tab) {
	t.Helper()
	y := rig.Boot(t, db.SQLite, rig.Log(t), func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return app.Run(ctx, cfg, app.Options{Version: "test", Logger: log, Ready: func(a *app.App) {
			in := a.Inside()
			ready(rig.Plane{URL: a.URL(), DB: in.DB, Tasks: in.Tasks, Blockers: in.Blockers})
		}})
	}, flags...)
	y.Enter()
	b := browser.Open(t, y.URL, 1440, 900)
	b.SignIn("ada@example.com", rig.Password)
	b.Complaints()
	return y, b
}

// call calls the API as ada and decodes the answer.
func call[R any](y *rig.Yard, method, path, body string) (out R) {
	y.T.Helper()
	resp, text := y.Send(method, path, y.Owner, body)
	if resp.StatusCode >= 300 {
		y.T.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		y.T.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
	return out
}

// visit shows a page and waits for its heading.
func visit(b *browser.Tab, path, heading string) {
	b.T.Helper()
	b.Go(path)
	heads(b, heading)
}

// heads waits for a page with one heading of the first level.
func heads(b *browser.Tab, heading string) {
	b.T.Helper()
	b.Until("the heading "+heading, `(all => all.length === 1 && all[0].innerText === `+quoted(heading)+`)(document.querySelectorAll("main h1"))`)
}

// shoot takes pictures of a page, wide and narrow, light and dark, where SHOTS names a
// folder, and fails the test if the narrow one has to be scrolled sideways.
func shoot(b *browser.Tab, name string) {
	b.T.Helper()
	dir := os.Getenv("SHOTS")
	if dir != "" {
		b.Picture(filepath.Join(dir, name+".png"))
	}
	b.Resize(390, 844)
	if wide := browser.Eval[int](b, `document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth`); wide > 0 {
		b.T.Errorf("%s: %d px too wide on a phone: %s", name, wide, browser.Eval[string](b, `[...document.querySelectorAll("main *")]
			.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.parentElement.closest(".scroll,.vlist,pre,.code")).slice(0, 4).map(e => e.outerHTML.slice(0, 160)).join("\n")`))
	}
	if dir != "" {
		b.Theme("dark")
		b.Picture(filepath.Join(dir, name+"-narrow-dark.png"))
		b.Theme("light")
	}
	b.Resize(1440, 900)
}

// content fails the test if the browser has complained of anything but refused loads.
func content(b *browser.Tab) {
	b.T.Helper()
	for _, c := range b.Complaints() {
		if !strings.Contains(c, "Failed to load resource") {
			b.T.Errorf("the browser says %s", c)
		}
	}
}

// nasty is a text that must stay one wherever it is shown.
const nasty = "<img src=x onerror=alert(1)> \x1b[31m red \u202e turned"

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string is JSON
	}
	return string(text)
}

type made struct{ ID, Join, Token string }

func TestBoxes(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	visit(b, "/ui/boxes", "Boxes")
	b.See("No box yet")
	shoot(b, "boxes-none")
	b.Button("Add a box")
	b.Button("Make the command")
	b.See("Waiting for the machine")
	shoot(b, "boxes-add")
	line := browser.Eval[string](b, `document.querySelector(".secret code").innerText`)
	at := strings.Index(line, "dev_enr_")
	if at < 0 {
		t.Fatalf("no token in %q", line)
	}
	y.Box(strings.FieldsFunc(line[at:], func(r rune) bool { return r == ' ' || r == '\'' || r == '"' })[0])
	b.See("is here")
	b.Button("Show it")
	heads(b, "bench")
	b.See("usable")
	shoot(b, "box")
	b.Fill("Briefing", "Speak softly. "+nasty)
	b.Button("Save the briefing")
	b.See("Saved.")
	boxes := call[struct{ Data []struct{ Briefing string } }](y, http.MethodGet, "/v1/runners", "")
	if got := boxes.Data[0].Briefing; !strings.Contains(got, "<img") {
		t.Errorf("the briefing is %q", got)
	}
	b.Button("Drain")
	b.Button("Go on")
	b.See("Take work again")
	b.Button("Take work again")
	b.See("It takes work again")
	visit(b, "/ui/boxes", "Boxes")
	b.See("bench")
	b.Press("j", "Enter")
	heads(b, "bench")
	b.Button("Decommission")
	b.See("for as long as you give it")
	b.Button("Decommission")
	content(b)
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	visit(b, "/ui/templates", "Templates")
	b.See("default")
	b.Button("New template")
	b.Fill("Name", "Not A Name")
	b.Button("Save")
	b.Until("the refusal at its field", `document.querySelector("dialog [name=name][aria-invalid=true]")`)
	b.Fill("Name", "careful")
	b.Fill("Options", "effort=high")
	shoot(b, "template-edit")
	b.Button("Save")
	b.See("careful")
	if got := call[struct{ Options map[string]string }](y, http.MethodGet, "/v1/templates/careful", ""); got.Options["effort"] != "high" {
		t.Errorf("the template has %v", got.Options)
	}
	shoot(b, "templates")
	b.Button("variables")
	b.Fill("Name", "house")
	b.Fill("Value", "of bricks")
	b.Button("Set")
	b.See("{{house}}")
	b.See("of bricks")
	call[any](y, http.MethodPut, "/v1/prompt-vars/account/yard", `{"value": `+quoted(nasty)+`}`)
	b.Go("/ui/templates?tab=variables")
	b.See("<img src=x")
	b.See("‹U+202E›")
	shoot(b, "variables")
	b.Button("prompts")
	b.Fill("Text", "Be brief, {{house}}.")
	b.Button("Save")
	b.See("Saved. Runs")
	visit(b, "/ui/ci", "CI runs")
	b.See("No check has run yet")
	shoot(b, "ci")
	content(b)
}

// work pushes acme/web, has a box carry out a task on it, and returns the task's id.
func work(y *rig.Yard) string {
	y.T.Helper()
	if err := y.Push("acme/web", map[string]string{"README.md": "Web\n", ".svc/policy.yml": "version: 1\n"}); err != nil {
		y.T.Fatal(err)
	}
	call[any](y, http.MethodPost, "/v1/billing/keys", `{"provider": "scripted"}`)
	y.Box(call[made](y, http.MethodPost, "/v1/runners/enrollments", `{}`).Token)
	id := call[struct {
		ID string `json:"task_id"`
	}](y, http.MethodPost, "/v1/tasks", `{"repo": "acme/web", "title": `+quoted(nasty)+`, "problem": "Look around."}`).ID
	y.Eventually("the task ends", func() bool {
		status := call[struct{ Status string }](y, http.MethodGet, "/v1/tasks/"+id, "").Status
		return status == "completed" || status == "failed"
	})
	return id
}

func TestRepositories(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	visit(b, "/ui/repos", "Repositories")
	b.See("No repository yet")
	work(y)
	b.See("acme/web")
	shoot(b, "repos")
	b.Press("j", "Enter")
	heads(b, "acme/web")
	b.See("tasks done")
	shoot(b, "repo")
	b.Button("policy")
	b.See("In force")
	browser.Eval[any](b, `document.querySelector('textarea[aria-label="Policy file"]').focus()`)
	b.Type("nonsense: true\n")
	b.Until("what is wrong", `document.querySelector(".verdict .trouble")`)
	b.Button("As it is")
	b.Gone("nonsense")
	shoot(b, "repo-policy")
	b.Button("secrets")
	b.Fill("Name", "DEPLOY_KEY")
	b.Fill("Value", "not to be read")
	b.Button("Keep it")
	b.See("DEPLOY_KEY")
	b.Gone("not to be read")
	shoot(b, "repo-secrets")
	b.Button("settings")
	b.See("ai first")
	shoot(b, "repo-settings")
	b.Button("Turn off")
	b.Button("Go on")
	b.See("off: its tasks wait")
	b.Button("Enable")
	b.See("agents may work on it")
	b.Button("sessions")
	b.See("came of a task")
	visit(b, "/ui/sessions", "Sessions")
	b.See("acme/web")
	shoot(b, "sessions")
	b.Press("j", "Enter")
	heads(b, "Session: work")
	b.See("The session is over.")
	b.See("There is nothing to do.")
	shoot(b, "session")
	b.Button("replay")
	b.Button("Replay")
	b.Until("what another policy decides", `document.querySelector("[aria-label=Decisions]")`)
	visit(b, "/ui/repos?add=1", "Repositories")
	b.Fill("Name", "garden")
	b.Button("Make it")
	heads(b, "acme/garden")
	content(b)
}

func TestSettings(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	visit(b, "/ui/settings", "You")
	b.See("ada@example.com")
	b.Fill("Text", "Be brief.")
	b.Button("Save")
	b.See("Saved.")
	shoot(b, "you")
	browser.Eval[any](b, `(s => { s.value = "dark"; s.dispatchEvent(new Event("change", {bubbles: true})) })(document.querySelector("[name=theme]"))`)
	b.Until("it is dark", `document.documentElement.dataset.theme === "dark"`)
	visit(b, "/ui/settings/account", "Account")
	b.Until("it is dark after loading", `document.documentElement.dataset.theme === "dark"`)
	browser.Eval[any](b, `localStorage.clear()`)
	b.Fill("Zone", "Nowhere/Land")
	b.Button("Set")
	b.Until("the refusal at its field", `document.querySelector("[name=zone][aria-invalid=true]")`)
	b.Fill("Zone", "Europe/Berlin")
	b.Button("Set")
	b.See("Set.")
	b.Fill("A task may cost", "7.5")
	b.Button("Replace the floors")
	b.See("They hold from the next decision on")
	shoot(b, "account")
	if got := call[struct {
		Usd *float64 `json:"task_usd"`
	}](y, http.MethodGet, "/v1/account/floors", "").Usd; got == nil || *got != 7.5 {
		t.Errorf("the floor is %v", got)
	}

	visit(b, "/ui/settings/members", "Members")
	b.See("(you)")
	b.Fill("E-mail, or login", "eve@example.com")
	b.Button("Invite")
	b.See("Link of the invitation")
	b.See("eve@example.com")
	shoot(b, "members")
	b.Button("I have kept it")
	b.Gone("Link of the invitation")
	b.Button("Withdraw")
	b.Button("Go on")
	b.See("revoked")

	visit(b, "/ui/settings/tokens", "Tokens")
	b.Button("New token")
	b.See("file, cancel, answer")
	shoot(b, "token-new")
	b.Fill("Name", "ci")
	b.Button("Mint it")
	b.See("dev_pat_")
	shoot(b, "token-once")
	token := browser.Eval[string](b, `document.querySelector(".secret code").innerText`)
	if resp, text := y.Send(http.MethodGet, "/v1/me", token, ""); resp.StatusCode != http.StatusOK {
		t.Errorf("the token answers %d %s", resp.StatusCode, text)
	}
	b.Button("I have kept it")
	b.Until("the token is gone", `!document.body.innerText.includes(`+quoted(token)+`)`)
	b.Button("Revoke")
	b.Button("Go on")
	b.Until("it is revoked", `document.querySelector(".card .status.bad")`)
	if resp, _ := y.Send(http.MethodGet, "/v1/me", token, ""); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a revoked token answers %d", resp.StatusCode)
	}

	visit(b, "/ui/settings/keys", "Keys")
	b.See("There is no key")
	browser.Eval[any](b, `(s => { s.value = "scripted"; s.dispatchEvent(new Event("change", {bubbles: true})) })(document.querySelector("[name=provider]"))`)
	b.Button("Add it")
	b.See("not used yet")
	b.Fill("Cap for a month", "25")
	b.Button("Set the cap")
	b.See("of $25.00")
	shoot(b, "keys")

	visit(b, "/ui/settings/secrets", "Secrets")
	b.Fill("Name", "NPM_TOKEN")
	b.Fill("Value", "not to be read")
	b.Button("Keep it")
	b.See("NPM_TOKEN")
	b.Button("Delete")
	b.Button("Go on")
	b.See("There is no secret")
	content(b)
}

func TestSettingsOfSending(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write([]byte(nasty))
	}))
	t.Cleanup(receiver.Close)
	y, b := begin(t, "--allow-networks", "127.0.0.0/8")
	visit(b, "/ui/settings/webhooks", "Webhooks")
	b.Fill("Name", "ours")
	b.Fill("Address", receiver.URL+"/x")
	b.Button("Add it")
	b.See("Secret that signs")
	b.Button("I have kept it")
	b.Button("Test")
	b.Until("an attempt", `document.querySelector("[aria-label=Attempts] .card")`)
	b.See("418")
	b.Button("Answer")
	b.See("‹U+202E›")
	shoot(b, "webhooks")

	visit(b, "/ui/settings/integrations", "Integrations")
	browser.Eval[any](b, `(s => { s.value = "generic"; s.dispatchEvent(new Event("change", {bubbles: true})) })(document.querySelector("[name=kind]"))`)
	b.Fill("Name", "alarms")
	b.Button("Connect")
	b.See("Secret that signs")
	b.Button("I have kept it")
	shoot(b, "integrations")
	b.Button("alarms")
	heads(b, "alarms")
	b.Fill("Title", "/alert/title")
	b.Button("Try it on the last ten")
	b.See("Nothing was sent yet.")
	b.Button("Use it")
	b.See("It holds for what comes")
	shoot(b, "integration")
	b.Button("Rotate")
	b.See("New secret")

	visit(b, "/ui/settings/notifications", "Notifications")
	b.Click(`[aria-label="task done by e-mail"]`)
	b.See("Saved.")
	b.Fill("From", "22:00")
	b.Fill("To", "07:00")
	b.Button("Set")
	b.See("Set.")
	shoot(b, "notifications")
	if quiet := call[struct{ Quiet *string }](y, http.MethodGet, "/v1/me/notification-preferences", "").Quiet; quiet == nil || !strings.HasPrefix(*quiet, "22:00-07:00 ") {
		t.Errorf("the quiet hours are %v", quiet)
	}

	visit(b, "/ui/settings/sso", "Single sign-on")
	b.See("Register at the provider")
	b.Fill("Issuer", "nothing")
	b.Button("Turn it on")
	b.Until("the refusal", `document.querySelector("form .trouble")`)
	shoot(b, "sso")

	visit(b, "/ui/settings/schedules", "Schedules")
	b.Button("New schedule")
	b.Fill("Title", "Look at the logs")
	b.Fill("What is wanted", "Anything odd?")
	b.Button("Make it")
	b.See("Look at the logs")
	b.Button("Pause")
	b.See("paused")
	shoot(b, "schedules")

	visit(b, "/ui/settings/oss", "Open source")
	b.Fill("Where the project", "https://example.com/project")
	b.Fill("Its licence", "MIT, for everybody.")
	b.Button("Apply")
	b.See("pending")
	shoot(b, "oss")
	content(b)
}

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
	b.Press("Escape", "j", "Enter")
	b.Until("the event", `document.querySelector("[aria-label=Event]")`)
	b.See("<img src=x onerror=alert(1)>")
	shoot(b, "audit-event")
	content(b)
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	if resp, text := y.Send(http.MethodPost, "/v1/access-requests", "the-form", `{"email": "eve@example.com", "name": `+quoted(nasty)+`}`); resp.StatusCode >= 300 {
		t.Fatalf("apply: %d %s", resp.StatusCode, text)
	}
	visit(b, "/ui/platform", "Platform")
	b.See("accounts")
	shoot(b, "platform")
	visit(b, "/ui/platform/accounts", "Accounts")
	b.See("acme")
	shoot(b, "platform-accounts")
	b.Press("j", "Enter")
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
	b.Press("j", "Enter")
	heads(b, "ada")
	shoot(b, "platform-user")
	visit(b, "/ui/platform/trail", "Trail")
	b.See("account.user_get")
	shoot(b, "platform-trail")
	b.Button("events")
	b.See("access request")
	visit(b, "/ui/platform/goals", "Goals")
	b.Until("why there are none", `document.querySelector("main .trouble")`)
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
