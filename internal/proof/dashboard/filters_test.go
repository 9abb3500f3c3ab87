//go:build !race

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/seed"
)

// repoID is the id of acme/web.
func (y *yard) repoID() string {
	y.T.Helper()
	id, _ := y.call("GET", "/v1/repos/acme/web", "")["id"].(string)
	return id
}

// The title of a row keeps a width at which it can be read, however wide the window is;
// other columns leave. On a phone the whole row is the link.
func TestTitlesOfRows(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	repo, task := y.repoID(), y.task("A title that says in many words what the task is about, and then some", "Nothing to do.")
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx,
			seed.Pull{ID: id.New(), Account: y.Account, Repo: repo, Task: &task, Needs: "ci_failing",
				Title: "A title that says in many words what the change is about, and then some"},
			seed.Ask{ID: id.New(), Account: y.Account, State: "pending"},
			seed.Session{ID: id.New(), Account: y.Account, Repo: repo, Model: "a-model-of-a-long-name-2026"})
	})
	b := y.open(1440, 900)
	b.Complaints()
	for path, grid := range map[string]string{
		"/ui/tasks": "tasks", "/ui/prs?show=all": "prs", "/ui/asks": "asks", "/ui/sessions": "sessions", "/ui/repos": "repos",
	} {
		b.Resize(1440, 900)
		b.Go(path)
		b.Until("a row of "+path, `document.querySelector("#`+grid+` [id$=-name]")`)
		for _, width := range []int64{320, 390, 800, 1024, 1280, 1440, 1600} {
			b.Resize(width, 900)
			b.Until(fmt.Sprintf("a title at %d px in %s", width, path), `innerWidth === `+fmt.Sprint(width)+` &&
				document.querySelector("#`+grid+` [id$=-name]").clientWidth >= 220 && (r =>
				document.querySelector("#`+grid+` [id$=-name]").clientWidth >= 0.35 * r.clientWidth && [...r.children].every(e => {
					const a = e.getBoundingClientRect(), b = r.getBoundingClientRect();
					return a.right <= b.right + 1 && a.left >= b.left - 1;
				}))(document.querySelector("#`+grid+` .row"))`)
			narrow(t, b)
		}
		b.Resize(390, 844)
		b.Until("a row that is a link on a phone", `(r => r.height >= 44 && [4, r.height - 4].every(y =>
			document.elementFromPoint(r.left + r.width / 2, r.top + y)?.closest("a")))(document.querySelector("#`+grid+` .row").getBoundingClientRect())`)
		usable(b, path+" on a phone")
	}
	clean(t, b)
}

// What is loaded is filtered at once while the server is asked; Esc empties the field and
// clears the filter; what fits nothing says what the filter is.
func TestFilterAsOneTypes(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	repo := y.repoID()
	y.task("Alpha", "Nothing to do.")
	y.task("Beta", "Nothing to do.")
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx,
			seed.Pull{ID: id.New(), Account: y.Account, Repo: repo, Title: "Gamma", Number: 1},
			seed.Pull{ID: id.New(), Account: y.Account, Repo: repo, Title: "Delta", Number: 2})
	})
	b := y.open(1440, 900)
	b.Complaints()
	b.Before(`(() => { const ask = window.fetch; window.fetch = async (...a) => {
		if (String(a[0]).includes("q=alp")) await new Promise(go => { window.answer = go });
		return ask(...a);
	} })()`)
	rows := func(want string) {
		t.Helper()
		b.Until("the rows "+want, `[...document.querySelectorAll("main [role=grid] [id$=-name]")]
			.map(e => e.innerText.split(" · ")[0]).join() === `+quoted(want))
	}
	b.Go("/ui/tasks")
	rows("Beta,Alpha")
	b.Press("/")
	b.Type("alp")
	rows("Alpha")
	b.Until("the server is asked", `typeof window.answer === "function"`)
	rows("Alpha")
	browser.Eval[any](b, `void window.answer()`)
	b.Until("it has answered", `!document.querySelector(".listbox[aria-busy=true]")`)
	rows("Alpha")
	b.Press("Escape")
	rows("Beta,Alpha")
	b.Until("no filter in the address", `location.search === "" && document.querySelector("main input[type=search]").value === ""`)
	b.Type("zzz")
	b.See("No task fits the filter: “zzz”.")
	b.Button("Clear the filter")
	rows("Beta,Alpha")
	b.Until("an empty field", `document.querySelector("main input[type=search]").value === ""`)
	b.Go("/ui/prs?show=all")
	rows("Delta,Gamma")
	b.Press("/")
	b.Type("gam")
	rows("Gamma")
	clean(t, b)
}

// A list with a filter in its address gets the rows that fit and no others, places in the
// queue move up, and what the server refuses is told with its field and its request.
func TestListsWithAFilter(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	first := y.task("First of three", "Nothing to do.")
	y.task("Second of three", "Nothing to do.")
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/tasks?filter=repo:acme/web&filter=status:pending,running")
	b.See("Second of three")
	b.Until("live", `document.querySelector(".link.live")`)
	y.task("Third of three", "Nothing to do.")
	b.See("Third of three")
	other := b.Another()
	other.Go("/ui/tasks?filter=status:cancelled")
	other.See("No task fits the filter: status:cancelled.")
	other.Until("live", `document.querySelector(".link.live")`)
	b.Until("their places", `["queue 1", "queue 2", "queue 3"].every(q => document.getElementById("tasks").innerText.includes(q))`)
	y.call("POST", "/v1/tasks/"+first+"/cancel", "")
	other.See("First of three")
	if got := browser.Eval[string](other, `document.getElementById("tasks").innerText`); strings.Contains(got, "Third") {
		t.Errorf("a row that does not fit has come: %s", got)
	}
	b.Until("the places moved up", `(s => s.includes("queue 1") && s.includes("queue 2") && !s.includes("queue 3"))(document.getElementById("tasks").innerText)`)
	clean(t, b)
	b.Go("/ui/tasks?filter=nonsense:1")
	b.See("filter has no key")
	b.See("Request ")
	y.Write(y.Account, func(tx *db.Tx) error {
		for range 110 {
			if err := seed.Add(tx, seed.Task{ID: id.New(), Account: y.Account, Repo: y.repoID(), Status: "completed"}); err != nil {
				return err
			}
		}
		return nil
	})
	b.Go("/ui/tasks")
	b.Until("how many there are at least", `document.querySelector(".head .num").innerText === "100+"`)
}

// Repositories, boxes and sessions are filtered by the server, which has more of them
// than are loaded.
func TestFiltersOfTheServer(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	repo := y.repoID()
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx,
			seed.Box{ID: id.New(), Account: y.Account},
			seed.Session{ID: id.New(), Account: y.Account, Repo: repo, Model: "small-1"},
			seed.Session{ID: id.New(), Account: y.Account, Repo: repo, Model: "large-1"})
	})
	b := y.open(1440, 900)
	b.Complaints()
	asked := func(parts ...string) {
		t.Helper()
		b.Until(fmt.Sprintf("the server was asked for %q", parts), `performance.getEntriesByType("resource").some(e => [`+
			quoted(strings.Join(parts, " "))+`][0].split(" ").every(p => decodeURIComponent(e.name).includes(p)))`)
	}
	b.Go("/ui/repos?show=enabled&q=WEB")
	b.Until("a repository", `document.querySelector("#repos .row")?.innerText.includes("acme/web")`)
	asked("/v1/repos?", "q=WEB", "enabled:true")
	b.Go("/ui/repos?show=disabled")
	b.See("No repository fits the filter: disabled.")
	b.Go("/ui/boxes?show=online")
	b.See("No box fits the filter: online.")
	asked("/v1/runners?", "presence:online")
	b.Go("/ui/boxes?show=offline")
	b.Until("a box", `document.querySelectorAll("#boxes .row").length === 1`)
	b.Go("/ui/sessions")
	b.Until("both sessions", `document.querySelectorAll("#sessions .row").length === 2`)
	browser.Eval[any](b, `(s => { s.value = "small-1"; s.dispatchEvent(new Event("change", {bubbles: true})) })(document.querySelector("select[aria-label=Model]"))`)
	b.Until("one of them", `document.querySelectorAll("#sessions .row").length === 1 && location.search === "?model=small-1"`)
	asked("/v1/sessions?", "model:small-1")
	b.Go("/ui/sessions?show=failed&repo=acme/web")
	b.See("No session fits the filter: failed, acme/web.")
	asked("/v1/repos/acme/web/sessions?", "outcome:failed,lost")
	clean(t, b)
}

// A view that an address names and that there is none of is said to be none, with a way to
// all rows.
func TestViewThatIsNone(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("Alpha", "Nothing to do.")
	b := y.open(1440, 900)
	b.Complaints()
	for _, c := range []struct{ path, view, button, after string }{
		{"/ui/tasks?show=", "foo", "Show all", ""}, {"/ui/prs?show=", "foo", "Show all", "?show=all"},
		{"/ui/boxes?show=", "constructor", "Show all", ""}, {"/ui/templates?tab=", "foo", "Show templates", ""},
	} {
		b.Go(c.path + c.view)
		b.See("There is no view “" + c.view + "”.")
		narrow(t, b)
		b.Button(c.button)
		b.Gone("There is no view")
		is(b, `location.search`, c.after)
	}
	clean(t, b)
}
