//go:build !race

package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/npm"
	"yardmaster/internal/proof/rig"
)

// axe is the source of axe-core, which finds what people with disabilities cannot use.
var axe = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("../../web/packages.lock")
	if err != nil {
		return "", err
	}
	packages, err := npm.Parse(text)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(packages, func(p npm.Package) bool { return p.Name == "axe-core" })
	if i < 0 {
		return "", errors.New("packages.lock has no axe-core")
	}
	dir, err := npm.Cache("web", text)
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, "axe-"+packages[i].Version+".js")
	err = npm.Alone(dir, func() error {
		if _, err := os.Stat(at); err == nil {
			return nil
		}
		return packages[i].Each(context.Background(), func(_ string, _ bool, text []byte) error { return npm.Write(at, text) })
	})
	if err != nil {
		return "", err
	}
	text, err = os.ReadFile(at)
	return string(text), err
})

// usable fails the test for what axe finds on a page as it is now.
func usable(b *browser.Tab, where string) {
	b.T.Helper()
	for _, f := range faults(b) {
		b.T.Errorf("%s: %s", where, f)
	}
}

// faults returns what axe finds on a page as it is now.
func faults(b *browser.Tab) (found []string) {
	b.T.Helper()
	if !browser.Eval[bool](b, "Boolean(window.axe)") { // it stays as long as the document
		source, err := axe()
		if err != nil {
			b.T.Fatal(err)
		}
		browser.Eval[bool](b, source+"; true")
	}
	text := browser.Eval[string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v =>
		v.id + ": " + v.help + " at " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " (" + n.failureSummary + ")").join("; "))))`)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.T.Fatal(err)
	}
	return found
}

// On the way to the sign-in page and back nothing is refused, so that the console has nothing to say.
func TestWayToTheSignInPage(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := browser.Open(t, y.URL, 1440, 900)
	b.Go("/ui/tasks?show=failed")
	b.Until("the sign-in page", `location.pathname === "/login" && document.querySelector("input[type=password]")`)
	if bad := b.Complaints(); len(bad) > 0 {
		t.Errorf("the browser complains: %q", bad)
	}
	b.Fill("Login or e-mail", "ada")
	b.Fill("Password", rig.Password)
	b.Press("Enter")
	b.Until("the page that was asked for", `location.pathname + location.search === "/ui/tasks?show=failed" && document.querySelector("#app main h1")`)
}

// The judges of TestPages see what they are for.
func TestJudges(t *testing.T) {
	t.Parallel()
	b := start(t).open(1440, 900)
	b.Complaints()
	browser.Eval[any](b, `document.querySelector("main").append(document.createElement("button"))`)
	if found := faults(b); len(found) != 1 || !strings.Contains(found[0], "button-name") {
		t.Errorf("a button without a name: axe finds %q", found)
	}
	for attack, heard := range map[string]string{
		`(() => { const s = document.createElement("script"); s.append("window.broken = true"); document.head.append(s) })()`: "script",
		`(() => { try { document.body.innerHTML = "<b>x</b>" } catch (e) { console.error(String(e)) } })()`:                   "TrustedHTML",
		`(() => { fetch("https://elsewhere.example/").catch(() => null) })()`:                                                 "connect-src",
		`(() => { const i = new Image(); i.src = "https://elsewhere.example/x.png" })()`:                                      "img-src",
	} {
		browser.Eval[any](b, attack)
		b.Heard(heard)
		b.Complaints()
	}
	if browser.Eval[bool](b, "Boolean(window.broken)") {
		t.Error("a script within the page ran")
	}
}

// addresses are the paths of the pages, as the dashboard has them.
func addresses(t *testing.T) (paths []string) {
	t.Helper()
	text, err := os.ReadFile("../../web/src/pages.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`path: "([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		paths = append(paths, m[1])
	}
	if len(paths) < 3 {
		t.Fatalf("pages.ts has the paths %q", paths)
	}
	return paths
}

// example is an address of a page: one of its objects is shown, or none of that id.
func example(path, task string) string {
	path = strings.NewReplacer(
		"/tasks/{id}", "/tasks/"+task, "/docs/{name}", "/docs/secrets", "/call/{id}", "/call/task.list",
		"{owner}", "acme", "{repo}", "web").Replace(path)
	return regexp.MustCompile(`\{\w+(\.\.\.)?\}`).ReplaceAllString(path, "01a209ae-0000-7000-8000-000000000000")
}

// Every page can be used wide and narrow, in light and in dark, with rows and without:
// it has one heading that names it, nothing that axe finds, no complaint of the browser
// no sideways scroll, and no word of programs in a sentence.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, full := range map[string]bool{"empty": false, "with rows": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := start(t)
			task := "01a209ae-0000-7000-8000-000000000000"
			if full {
				y.repo()
				y.box()
				task = y.task("Say hello <img src=x onerror=alert(1)>", "Say hello in hello.txt.")
				y.status(task, "awaiting_review")
			}
			for _, size := range []struct {
				width, height int64
				themes        []string
			}{{1440, 900, []string{"light"}}, {390, 844, []string{"dark"}}, {320, 640, nil}} {
				b := y.open(size.width, size.height)
				b.Complaints()
				for _, path := range addresses(t) {
					at := example(path, task)
					b.Go(at)
					b.Until("the page "+at, `document.querySelector("#app main h1")?.innerText && !document.querySelector("[aria-busy=true]")`)
					if n := browser.Eval[int](b, `document.querySelectorAll("h1").length`); n != 1 {
						t.Errorf("%s has %d headings h1", at, n)
					}
					if over := browser.Eval[int](b, `document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth`); over > 0 {
						t.Errorf("%s at %d px scrolls sideways by %d px", at, size.width, over)
					}
					if len(size.themes) > 0 && !programs.MatchString(path) {
						for _, found := range unspoken(b) {
							if !strings.Contains(at, found[:strings.Index(found, " in: ")]) { // the name that the address gives it
								t.Errorf("%s says %s", at, found)
							}
						}
					}
					// Light where it is wide and dark where it is narrow: axe takes its time.
					for _, theme := range size.themes {
						b.Theme(theme)
						usable(b, at+" in "+theme)
						if shots := os.Getenv("SHOTS"); shots != "" {
							b.Picture(filepath.Join(shots, strings.ReplaceAll(strings.Trim(path, "/"), "/", "_")+"-"+name+"-"+theme+"-"+
								map[bool]string{true: "wide", false: "narrow"}[size.width > 720]+".png"))
						}
					}
					goals := "503 (Service Unavailable) " + y.URL + "/v1/admin/goals"
					for _, c := range b.Complaints() {
						// What is not there is asked for by the address that the test made up, and
						// nobody has configured where goals come from.
						if !strings.Contains(c, "status of 404") && !strings.HasSuffix(c, goals) {
							t.Errorf("%s: the browser complains: %s", at, c)
						}
					}
				}
			}
		})
	}
}
