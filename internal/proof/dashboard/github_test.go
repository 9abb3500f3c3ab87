//go:build !race

package dashboard_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/github"
	"yardmaster/internal/proof/github/description"
	"yardmaster/internal/proof/patience"
)

// standing holds a page of the server that is shown against what each has: wide and on a
// phone, in light and in dark.
func standing(b *browser.Tab, f face) {
	b.T.Helper()
	for _, width := range []int64{1280, 320} {
		b.Resize(width, 720)
		judge(b, f, width)
		for _, theme := range []string{"light", "dark"} {
			b.Theme(theme)
			usable(b, f.name+" in "+theme)
			if at := os.Getenv("SHOTS"); at != "" && width > 720 == (theme == "light") {
				b.Picture(at + "/face-" + strings.ReplaceAll(f.name, " ", "-") + "-" + theme + ".png")
			}
		}
	}
	b.Resize(1280, 720)
	reached(b, f.name)
	for _, c := range b.Complaints() {
		if !strings.Contains(c, "responded with a status of 4") {
			b.T.Errorf("%s: the browser complains: %s", f.name, c)
		}
	}
}

// flaky is what a job prints whose test comes and goes.
const flaky = "--- FAIL: TestLease/<b_data-owned>zz-flaky</b> (2.01s)\n" +
	"    store_test.go:88: lease of <img src=x onerror=owned=1> expired after 2.013s, want > 5s\nFAIL\nFAIL\texample.com/shop/store\t2.1s\n"

// watched is a policy by which the server looks after pull requests of people.
const watched = "version: 1\nreview: {mode: off}\npulls: {watch: labelled, label: yardmaster}\n"

// GitHub is connected by the buttons of the pages alone: the form, the way to GitHub, the
// App that was made there, its installation, and the landing. Each page says what it did,
// and an address that was used says that it was. A job fails there, runs again and passes:
// that is a flake, which the open page of flakes shows.
func TestGitHubIsConnected(t *testing.T) {
	t.Parallel()
	y := start(t)
	gh := description.Serve(t, github.Options{Enterprise: "3.19.0"})
	ann, bob, acme := gh.Person("ann"), gh.Person("bob"), gh.Org("acme")
	ann.Join(acme, "admin", false)
	shop := gh.Repo("acme/shop", github.NewRepo{Private: true, Files: map[string]string{
		"README.md": "# Shop\n", ".svc/policy.yml": watched,
	}})
	shop.Allow(bob, "write")
	shop.Protect("main", github.Protection{Checks: []github.Required{{Name: "build"}}})

	b := y.open(1280, 720)
	b.Complaints()
	b.Go("/gh/setup")
	b.Fill("Organisation", "not an organisation")
	b.Fill("Address", gh.Web)
	b.Click("[name=nowebhook]") // this GitHub reaches the server
	b.Button("Continue")
	b.See("must be the login of an organisation")
	standing(b, face{name: "set-up refused", heading: "Connect GitHub"})
	b.Until("what was typed is kept", `document.querySelector("[name=address]").value === `+text(gh.Web)+` && !document.querySelector("[name=nowebhook]").checked`)
	b.Fill("Organisation", "acme")
	b.Button("Continue")
	b.See("GitHub makes the App, and sends you back here.")
	standing(b, face{name: "way to GitHub", heading: "Connect GitHub"})
	b.Button("Go to GitHub")
	b.Until("the page of GitHub", `location.origin === `+text(gh.Web))
	b.Button("Create GitHub App")
	b.See("The App is made")
	standing(b, face{name: "App made", heading: "GitHub is connected"})
	hosts, _ := y.call("GET", "/v1/admin/code-hosts", "")["data"].([]any)
	if len(hosts) != 1 {
		t.Fatalf("the code hosts are %v", hosts)
	}
	again := b.Another()
	again.Go(browser.Eval[string](b, "location.pathname + location.search"))
	again.See("This set-up is not known")
	standing(again, face{name: "set-up that is over", heading: "This cannot go on"})

	b.Button("Install the App")
	b.Until("the page of GitHub", `location.origin === `+text(gh.Web))
	b.Button("Install on acme")
	b.See("is known here")
	standing(b, face{name: "installed", heading: "Back from the code host"})
	b.Button("Go to the repositories")
	b.Until("the dashboard", `document.querySelector("#app main h1")`)
	visit(b, "/ui/repos", "Repositories")
	b.See("acme/shop")
	patience.Until(y.T, "the repository is enabled", func() bool { return y.call("GET", "/v1/repos/acme/shop", "")["enabled"] == true })

	repo, _ := y.call("GET", "/v1/repos/acme/shop", "")["id"].(string)
	commit := strings.Repeat("c", 40)
	y.call("PUT", "/v1/kb/"+repo+"/pages/build", `{"title": "Build", "body": "Run make.",
		"provenance": {"commit": "`+commit+`", "files": ["docs/read me.md"]}}`)
	visit(b, "/ui/kb/acme/shop/build", "Build")
	b.Until("the way to the file as it was", `document.querySelector("aside a[target]").href === `+
		text(gh.Web+"/acme/shop/blob/"+commit+"/docs/read%20me.md"))
	shoot(b, "kb-sources")

	visit(b, "/ui/repos/acme/shop/flakes", "Flakes of acme/shop")
	b.See("No failure came and went")
	shop.Commit(bob, "mine", "Build it", map[string]string{"build.txt": "It is built.\n"})
	there := shop.OpenPull(bob, github.NewPull{Title: "Build it", Head: "mine", Base: "main"})
	shop.Issue(there.Number).Label(ann, "yardmaster")
	patience.Until(y.T, "it is looked after", func() bool {
		prs, _ := y.call("GET", "/v1/repos/acme/shop/prs", "")["data"].([]any)
		if len(prs) == 0 {
			return false
		}
		babysit, _ := prs[0].(map[string]any)["babysit"].(map[string]any)
		return babysit["state"] == "watching"
	})
	run := shop.Run(bob, github.NewRun{Event: "pull_request", SHA: there.Head(), Branch: "mine"})
	run.Job("build").End("failure", flaky)
	patience.Until(y.T, "the job runs again", func() bool { return run.Attempt() == 2 })
	run.Job("build").End("success", "")
	b.See("zz-flaky")
	flakes, _ := y.call("GET", "/v1/repos/acme/shop/flakes", "")["data"].([]any)
	if len(flakes) != 1 {
		t.Fatalf("the flakes are %v", flakes)
	}
	row := browser.Eval[string](b, `[...document.querySelectorAll("main tbody tr")].map(e => e.innerText).join("\n")`)
	for _, want := range []string{"zz-flaky", "<img src=x onerror=owned=<n>>", "build", "1 of 1 runs", "often"} {
		if !strings.Contains(row, want) {
			t.Errorf("the row lacks %s: %q", want, row)
		}
	}
	if n := regexp.MustCompile(`\d+`).FindString(browser.Eval[string](b, `document.querySelector("main h1 ~ .num").innerText`)); n != "1" {
		t.Errorf("the page counts %q flakes", n)
	}
	harmless(b)
	for _, theme := range []string{"light", "dark"} {
		b.Theme(theme)
		usable(b, "the page of flakes in "+theme)
		shoot(b, "flakes-"+theme)
	}
	content(b)
}
