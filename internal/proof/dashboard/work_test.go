//go:build !race

package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/app"
	"yardmaster/internal/client"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

// hostile is text that tries to be more than text: markup, a script, an escape sequence
// of a terminal, and letters that turn a line around.
const hostile = "<b>bold</b><script>document.title='owned'</script> \u202egnp.exe"

// shop is a server with a repository and a box whose agents run scripts of it.
type shop struct {
	*rig.Yard
	t *testing.T
}

// open starts a server with the repository acme/web. Its agents are templates by name,
// each with the script that it runs.
func open(t *testing.T, policy string, agents map[string]string) *shop {
	t.Helper()
	s := &shop{t: t, Yard: rig.Boot(t, db.SQLite, rig.Log(t),
		func(ctx context.Context, cfg *config.Config, log *slog.Logger, ready func(rig.Plane)) error {
			return app.Run(ctx, cfg, app.Options{Version: "test", Logger: log, Ready: func(a *app.App) {
				in := a.Inside()
				ready(rig.Plane{URL: a.URL(), DB: in.DB, Tasks: in.Tasks, Blockers: in.Blockers})
			}})
		})}
	s.Enter()
	files := map[string]string{
		"README.md": "# Web\n\nHello, world.\n", ".svc/policy.yml": policy, "src/date.js": "export const year = () => 2025;\n",
		"src/long.txt": strings.Repeat("a line of text\n", 60),
	}
	for name, script := range agents {
		files["."+name+".sh"] = script
		s.must(200, "PUT", "/v1/templates/"+name, fmt.Sprintf(`{"agent": "command", "command": ["sh", ".%s.sh"]}`, name))
	}
	if err := s.Push("acme/web", files); err != nil {
		t.Fatal(err)
	}
	if len(agents) > 0 {
		var e struct{ Token string }
		s.into(&e, 201, "POST", "/v1/runners/enrollments", `{}`)
		s.Box(e.Token)
	}
	return s
}

// must makes a request of the owner and returns the body of its answer.
func (s *shop) must(status int, method, path, body string) []byte {
	s.t.Helper()
	resp, text := s.Send(method, path, s.Owner, body)
	if resp.StatusCode != status {
		s.t.Fatalf("%s %s: %d, not %d: %s", method, path, resp.StatusCode, status, text)
	}
	return text
}

func (s *shop) into(to any, status int, method, path, body string) {
	s.t.Helper()
	if err := json.Unmarshal(s.must(status, method, path, body), to); err != nil {
		s.t.Fatal(err)
	}
}

// task files a task for an agent and returns its id.
func (s *shop) task(agent, title string) string {
	s.t.Helper()
	var filed struct {
		TaskID string `json:"task_id"`
	}
	s.into(&filed, 202, "POST", "/v1/tasks",
		fmt.Sprintf(`{"repo": "acme/web", "title": %s, "problem": "It is wrong.", "template": %q}`, text(title), agent))
	return filed.TaskID
}

// pull waits for the pull request of a task, and for the question about it.
func (s *shop) pull(task string) string {
	s.t.Helper()
	var t struct {
		PRID *string `json:"pr_id"`
	}
	patience.Until(s.T, "the task has a pull request that waits", func() bool {
		s.into(&t, 200, "GET", "/v1/tasks/"+task, "")
		if t.PRID == nil {
			return false
		}
		var pr struct {
			PendingAction *struct{ State string } `json:"pending_action"`
		}
		s.into(&pr, 200, "GET", "/v1/prs/"+*t.PRID, "")
		return pr.PendingAction != nil
	})
	return *t.PRID
}

// enter opens a window of a size, in which ada is signed in.
func (s *shop) enter(width, height int64) *browser.Tab {
	s.t.Helper()
	b := browser.Open(s.t, s.URL, width, height)
	b.SignIn("ada@example.com", rig.Password)
	b.Until("the first page", `location.pathname === "/ui/" && document.querySelector("main h1")?.innerText === "Home"`)
	return b
}

// text is a string in JSON.
func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string is JSON
	}
	return string(b)
}

// clean fails the test if the browser complained, or if a text did more than be shown.
func clean(t *testing.T, b *browser.Tab) {
	t.Helper()
	for _, c := range b.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
	if browser.Eval[bool](b, `!!document.querySelector("main b script, main script") || document.title === "owned"`) {
		t.Error("a text became a part of the page")
	}
	if browser.Eval[bool](b, `/[\u202a-\u202e\u2066-\u2069]/.test(document.querySelector("main").innerText)`) {
		t.Error("a text turns the page around")
	}
}

// shots are pictures of a page, for people, where SHOTS names a folder.
func shots(b *browser.Tab, name string) {
	if at := os.Getenv("SHOTS"); at != "" {
		b.Picture(at + "/" + name + ".png")
	}
}

// narrow fails the test if a page scrolls sideways.
func narrow(t *testing.T, b *browser.Tab) {
	t.Helper()
	over := browser.Eval[int](b, `Math.max(...[document.documentElement, document.querySelector("main")].map(e => e.scrollWidth - e.clientWidth))`)
	if over > 0 {
		t.Errorf("%s scrolls sideways by %d px", browser.Eval[string](b, "location.pathname"), over)
	}
}

const worker = `printf 'export const year = () => new Date().getFullYear();\n' > src/date.js
(head -29 src/long.txt; printf 'a line\tof \033[31mred \342\200\256text\n'; tail -30 src/long.txt) > long
mv long src/long.txt
printf '<script>alert(1)</script>\n' > 'src/<img src=x>.txt'
git add -A
git commit -qm "Take the year from the clock"
echo 'The year comes from the **clock** now. <script>document.title="owned"</script>' > "$YARDMASTER_REPORT"
`

func TestPullRequests(t *testing.T) {
	t.Parallel()
	s := open(t, "{version: 1, merge: {mode: ask}, review: {mode: off}}\n", map[string]string{"worker": worker})
	pr := s.pull(s.task("worker", "Fix the year "+hostile))
	b := s.enter(1440, 900)
	b.Go("/ui/prs")
	b.See("Fix the year")
	b.Until("its row", `document.querySelector("#prs [role=row] a")`)
	shots(b, "prs")
	clean(t, b)
	b.Press("j", "k", "Enter")
	b.Until("its page", `location.pathname === "/ui/prs/`+pr+`" && document.querySelector("h1")?.innerText.includes("Fix the year")`)
	b.See("new Date().getFullYear()")
	b.Until("words that changed are marked", `document.querySelector(".changes .add u")`)
	b.See("‹U+001B›")
	b.See("‹U+202E›text")
	shots(b, "pr")
	clean(t, b)
	b.Press("n", "v")
	b.See("1 of 3 viewed")
	b.Theme("dark")
	shots(b, "pr-dark")
	b.Theme("light")
	b.Button("report")
	b.See("Written by a program")
	shots(b, "pr-report")
	b.Button("checks")
	b.See("No check has run")
	b.Button("review")
	b.See("It was not reviewed.")
	clean(t, b)

	phone := s.enter(390, 844)
	phone.Go("/ui/approvals")
	phone.See("Approve ")
	shots(phone, "approvals-phone")
	narrow(t, phone)
	phone.Go("/ui/prs/" + pr)
	phone.See("+3 −2 at")
	phone.Until("its lines", `document.querySelector(".changes .add u")`)
	shots(phone, "pr-phone")
	narrow(t, phone)
	clean(t, phone)

	b.Go("/ui/approvals")
	b.See("Merge: Fix the year")
	shots(b, "approvals")
	b.Press("j", "a") // its changes were not opened since the page was loaded
	b.See("You have not opened what it changes.")
	b.Yes()
	b.See("Nothing waits for you.")
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open] input")`)
	b.Type("the year") // a part of the title, which the branch and the page's name do not have
	b.Until("the pull request", `[...document.querySelectorAll(".palette li")].some(e => e.innerText.includes("Pull request acme/"))`)
	browser.Eval[any](b, `void [...document.querySelectorAll(".palette li")].find(e => e.innerText.includes("Pull request acme/")).click()`)
	b.Until("its page", `location.pathname === "/ui/prs/`+pr+`"`)
	b.Until("it is merged", `[...document.querySelectorAll("h1 ~ .status")].some(e => e.innerText === "merged")`)
	shots(b, "pr-merged")
	clean(t, b)
	phone.See("merged")
}

// A head that moves while somebody looks at it: the page keeps what is looked at, says
// so, shows what changed since, and the next decision is about the new head. All of it by
// keys alone.
func TestMovedHead(t *testing.T) {
	t.Parallel()
	s := open(t, "{version: 1, merge: {mode: ask}, review: {mode: off}}\n", map[string]string{"worker": worker})
	pr := s.pull(s.task("worker", "Fix the year"))
	var before struct {
		HeadSHA string `json:"head_sha"`
		HeadRef string `json:"head_ref"`
	}
	s.into(&before, 200, "GET", "/v1/prs/"+pr, "")
	b := hands{s.enter(1440, 900)}
	b.Press("g", "r")
	b.heading("Pull requests")
	b.Until("its row", `document.querySelector("#prs [role=row]")`)
	b.Press("j", "k", "Enter")
	b.heading("Fix the year")
	b.See("+3 −2 at")
	b.See("Approve " + before.HeadSHA[:7])

	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := client.Git(t.Context(), dir, s.URL, s.Owner, args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	git("clone", "--quiet", "--branch", before.HeadRef, s.URL+"/git/acme/web.git", ".")
	if err := os.WriteFile(filepath.Join(dir, "late.txt"), []byte("later\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("add", "--all")
	git("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", "Later")
	git("push", "--quiet", "origin", "HEAD:"+before.HeadRef)
	head := git("rev-parse", "HEAD")

	b.See("The branch has moved to")
	b.See("You are looking at " + before.HeadSHA[:10])
	b.See("new Date().getFullYear()") // what was looked at stays
	b.See("Approve " + head[:7])
	shots(b.Tab, "pr-moved")
	b.do("Show what changed since")
	b.See("1 file, +1 −0 at " + head[:10])
	b.See("later")
	b.Gone("The branch has moved to")
	b.Until("what was looked at is in the address", `new URLSearchParams(location.search).get("since") === "`+before.HeadSHA+`"`)
	b.Press("a")
	b.Until("it is merged", `[...document.querySelectorAll("h1 ~ .status")].some(e => e.innerText === "merged")`)
	clean(t, b.Tab)
}
