//go:build !race

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// hostOf is the host and port of an address.
func hostOf(url string) string {
	_, host, _ := strings.Cut(url, "://")
	return host
}

// Nine tabs of a browser, which has six connections to a server, all show what changes.
func TestNineTabs(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	first := y.open(1440, 900)
	first.Go("/ui/tasks")
	first.See("No tasks yet")
	tabs := []*browser.Tab{first}
	for range 8 {
		b := first.Another()
		b.Go("/ui/tasks")
		b.See("No tasks yet")
		tabs = append(tabs, b)
	}
	for _, b := range tabs {
		b.Until("live", `document.querySelector(".link.live")`)
	}
	y.task("Seen everywhere", "Nothing to do.")
	for _, b := range tabs {
		b.See("Seen everywhere")
	}
}

// A page that is open while the server is away says so, keeps its rows, and goes on by
// itself with what it missed.
func TestServerGoneForAWhile(t *testing.T) {
	t.Parallel()
	c := newCable(t)
	url := "http://127.0.0.1:" + c.port()
	y := start(t, "--base-url", url)
	y.repo()
	y.task("Before", "Nothing to do.")
	c.plug(hostOf(y.URL))
	b := browser.Open(t, url, 1440, 900)
	b.SignIn("ada", rig.Password)
	b.Go("/ui/tasks")
	b.See("Before")
	b.Until("live", `document.querySelector(".link.live")?.title === "Rows follow the server"`)
	// The rows are as of when the link broke, however long nothing had changed before.
	browser.Eval[any](b, `new Promise(go => setTimeout(go, 2000)).then(() => { window.cut = Date.now(); return null })`)
	c.plug("")
	b.See("Reconnecting")
	b.Until("as of then", `(at => Date.parse(new Date().toDateString() + " " + at) > cut - 1000)(
		document.querySelector(".foot .link").title.replace("Rows as of ", ""))`)
	b.See("Before")
	y.task("Meanwhile", "Nothing to do.")
	c.plug(hostOf(y.URL))
	b.See("Meanwhile")
	b.Until("live", `document.querySelector(".link.live")`)
}

// Over plain http on a name that is not loopback a browser gives a page no locks, no
// clipboard and no randomUUID. All works without them.
func TestPlainHTTPOnAName(t *testing.T) {
	t.Parallel()
	c := newCable(t)
	url := "http://yard.test:" + c.port()
	y := start(t, "--base-url", url)
	y.repo()
	c.plug(hostOf(y.URL))
	b := browser.Open(t, url, 1440, 900)
	b.SignIn("ada", rig.Password)
	if browser.Eval[bool](b, "isSecureContext || Boolean(navigator.locks) || Boolean(crypto.randomUUID)") {
		t.Fatal("the page is in a secure context: the test shows nothing")
	}
	b.Until("live", `document.querySelector(".link.live")`)
	b.Press("c")
	b.Fill("Title", "By hand")
	b.Fill("What to do", "Nothing to do.")
	b.Button("File the task")
	b.See("No box has it yet")
	b.Press("g", "t")
	b.See("By hand")
	y.task("From elsewhere", "Nothing to do.")
	b.See("From elsewhere")
}

// Whose session ends under an open page is told so over the page, and goes on where
// they were once they have signed in again, in whichever tab.
func TestSessionEndsUnderAPage(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("Still here", "Nothing to do.")
	b := y.open(1440, 900)
	b.Go("/ui/tasks")
	b.See("Still here")
	browser.Eval[any](b, `fetch("/auth/logout", {method: "POST"}).then(() => null)`)
	b.Button("Home")
	b.See("You are signed out")
	other := b.Another()
	other.SignIn("ada", rig.Password)
	browser.Eval[any](b, `dispatchEvent(new Event("focus"))`)
	b.Gone("You are signed out")
	b.See("Waits for you")
}

// Two organisations in two tabs of one browser are two: each tab acts for its own, shows
// its own, and hears its own.
func TestTwoOrganisations(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("Of acme", "Nothing to do.")
	other := id.New()
	y.Write(other, func(tx *db.Tx) error {
		return seed.Account{ID: other, Login: "globex"}.Add(tx)
	})
	y.Write(other, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Member{Account: other, User: y.User, Role: string(policy.Owner)})
	})
	choose := func(b *browser.Tab, account string) {
		t.Helper()
		b.Until("a choice of organisations", `document.querySelector("select[aria-label=Organisation]")`)
		browser.Eval[any](b, `(s => { s.value = "`+account+`"; s.dispatchEvent(new Event("change", {bubbles: true})) })(`+
			`document.querySelector("select[aria-label=Organisation]"))`)
	}
	one := y.open(1440, 900)
	choose(one, y.Account)
	one.See("Runs now") // where something was done, Home has no first steps
	one.Go("/ui/tasks")
	one.See("Of acme")
	two := one.Another()
	two.Go("/ui/tasks")
	choose(two, other)
	two.See("First steps")
	two.Press("g", "t")
	two.See("No tasks yet")
	y.task("Another of acme", "Nothing to do.")
	one.See("Another of acme")
	two.Until("live", `document.querySelector(".link.live")`)
	if text := browser.Eval[string](two, "document.body.innerText"); strings.Contains(text, "Another of acme") {
		t.Errorf("the tab of globex shows a task of acme:\n%s", text)
	}
	two.Go("/ui/tasks") // the choice is the tab's, and stays
	two.See("No tasks yet")
}

// What an agent asks is answered on the first page, and its task goes on.
func TestBlockerIsAnsweredOnTheFirstPage(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	task := y.task("Needs a key", "Nothing to do.")
	y.Block(task, "missing_credential", map[string]string{"DEPLOY_KEY": "env_secret"})
	b := y.open(1440, 900)
	b.See("How do I get <b>in</b>?")
	b.Fill("DEPLOY_KEY", "s3cret value")
	b.Button("Submit")
	b.See("Nothing waits for you.")
	y.status(task, "pending")
	if text := browser.Eval[string](b, "document.documentElement.outerHTML"); strings.Contains(text, "s3cret value") {
		t.Error("the page still holds the secret")
	}
}

// The answer to what was done before may come after that to what was done last, and after
// what the stream told of it: what was done last is shown.
func TestLateAnswerIsNotTheLast(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.Block(y.task("One", "Nothing to do."), "missing_credential", map[string]string{"KEY": "env_secret"})
	b := y.open(1440, 900)
	b.Go("/ui/notifications")
	unread := func(n int) {
		t.Helper()
		b.Until(fmt.Sprint(n, " unread"), `document.querySelectorAll("#inbox .row .unread").length === `+fmt.Sprint(n))
	}
	unread(1)
	browser.Eval[any](b, `(() => { const ask = window.fetch; window.fetch = async (url, how) => {
		const answer = await ask(url, how);
		if (String(url).endsWith("/read")) await new Promise(done => { window.late = done });
		return answer;
	} })()`)
	b.Press("j", "k", "m")
	unread(0)
	b.Until("the answer is held", "window.late")
	b.Press("m")
	unread(1)
	y.Block(y.task("Two", "Nothing to do."), "missing_credential", map[string]string{"KEY": "env_secret"})
	unread(2) // the stream has told of all before it
	if !browser.Eval[bool](b, `(async () => { late(); for (let i = 0; i < 9; i++) await new Promise(requestAnimationFrame);
		return document.querySelectorAll("#inbox .row .unread").length === 2 })()`) {
		t.Error("the late answer is shown as the last")
	}
}
