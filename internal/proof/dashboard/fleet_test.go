//go:build !race

package dashboard_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// begin runs a server that ada has set up, and signs her in.
func begin(t *testing.T, flags ...string) (*rig.Yard, *browser.Tab) {
	t.Helper()
	return beginAs(t, "test", flags...)
}

// beginAs runs a server of a version that ada has set up, and signs her in.
func beginAs(t *testing.T, version string, flags ...string) (*rig.Yard, *browser.Tab) {
	t.Helper()
	y := rig.Boot(t, db.SQLite, rig.Log(t), func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
		return app.Run(ctx, cfg, app.Options{Version: version, Logger: log, Ready: func(a *app.App) {
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
	is := `(all => all.length === 1 && all[0].innerText === ` + quoted(heading) + `)(document.querySelectorAll("main h1"))`
	b.Until("the heading "+heading, is)
}

// first opens the first row of a list with the keyboard, once it is there.
func first(b *browser.Tab, list string) {
	b.T.Helper()
	b.Until("a row of "+list, `document.getElementById(`+quoted(list+"0")+`)`)
	b.Press("j", "Enter")
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
			.filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.parentElement.closest(".scroll,.vlist,pre,.cmd"))
			.slice(0, 4).map(e => e.outerHTML.slice(0, 160)).join("\n")`))
	}
	for _, text := range list(b, `JSON.stringify(`+touching+`)`) {
		b.T.Errorf("%s on a phone %s", name, text)
	}
	if dir != "" {
		b.Theme("dark")
		b.Picture(filepath.Join(dir, name+"-narrow-dark.png"))
		b.Theme("light")
	}
	b.Resize(1440, 900)
}

// shootAt takes a picture of a page as it is, where SHOTS names a folder.
func shootAt(b *browser.Tab, name string) {
	b.T.Helper()
	if dir := os.Getenv("SHOTS"); dir != "" {
		b.Picture(filepath.Join(dir, name+".png"))
	}
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
	b.Until("the command", `document.querySelector(".secret code")?.innerText`)
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
	boxes := call[struct{ Data []struct{ Briefing string } }](y, http.MethodGet, "/v1/runners", "").Data
	if got := boxes[0].Briefing; !strings.Contains(got, "<img") {
		t.Errorf("the briefing is %q", got)
	}
	b.Button("Drain")
	b.Yes()
	b.See("Take work again")
	b.Button("Take work again")
	b.See("It takes work again")
	visit(b, "/ui/boxes", "Boxes")
	first(b, "boxes")
	heads(b, "bench")
	b.Button("Decommission")
	b.See("for as long as you give it")
	b.Click("dialog form button.main")
	b.Until("it goes", `/being decommissioned|No box yet/.test(document.querySelector("main").innerText)`)
	visit(b, "/ui/boxes", "Boxes")
	b.See("No box yet")
	content(b)
}

// TestBoxesOfOthersAreApart holds that a box of another account is shown under a heading of
// its own, with why it is there, and leads nowhere.
func TestBoxesOfOthersAreApart(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	other, far := id.New(), id.New()
	y.Write(other, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Account{ID: other, Login: "globex", Seats: 1}, seed.Box{ID: far, Account: other})
	})
	y.Write(other, func(tx *db.Tx) error { _, err := seed.SetTarget.Exec(tx, far, "shared", nil); return err })
	visit(b, "/ui/boxes", "Boxes")
	b.See("No box yet")
	b.See("Boxes of other accounts")
	b.See("of globex")
	b.See("An operator of the server shares it with every account.")
	if browser.Eval[bool](b, `!!document.querySelector("main a[href*='`+far+`']")`) {
		t.Error("it leads to a page")
	}
	shoot(b, "boxes-outside")
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
	patience.Until(y.T, "the task ends", func() bool {
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
	first(b, "repos")
	heads(b, "acme/web")
	b.See("task done, 7 days") // one, as soon as it is counted
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
	b.Fill("Default branch", "nowhere")
	b.Button("Make it the default")
	b.Until("what is wrong with it", `document.querySelector("[name=default_branch][aria-invalid=true]")`)
	b.See("is no branch of the repository")
	b.Fill("Default branch", "main")
	b.Button("Make it the default")
	b.See("Work begins from main now.")
	shoot(b, "repo-settings")
	b.Button("Turn off")
	b.Yes()
	b.See("off: its tasks wait")
	b.Button("Enable")
	b.See("agents may work on it")
	b.Button("sessions")
	b.Until("the session of the task", `[...document.querySelectorAll("#sessions a")].some(a => a.innerText.startsWith("<img src=x onerror=alert(1)>") && a.innerText.endsWith("turned · work"))`)
	visit(b, "/ui/sessions", "Sessions")
	b.See("acme/web")
	shoot(b, "sessions")
	first(b, "sessions")
	b.Until("the title of its task", `document.querySelector("main h1")?.innerText.startsWith("Session: <img src=x onerror=alert(1)>")`)
	b.See("The session is over.")
	b.See("There is nothing to do.")
	shoot(b, "session")
	b.Button("replay")
	b.Click("main form button.main")
	b.Until("what another policy decides", `document.querySelector("[aria-label=Decisions]")`)
	visit(b, "/ui/repos?add=1", "Repositories")
	b.Fill("Name", "garden")
	b.Button("Make it")
	heads(b, "acme/garden")
	content(b)
}
