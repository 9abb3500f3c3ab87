//go:build !race

package dashboard_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/mail"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

// post is the folder of a server's mails.
type post struct {
	y  *yard
	at mail.Folder
}

// find waits for a mail to an address in which a pattern has a match, and answers the
// pattern's first group. It looks at the text and at the address of List-Unsubscribe.
func (p post) find(to, pattern string) (found string) {
	p.y.T.Helper()
	form := regexp.MustCompile(pattern)
	patience.Until(p.y.T, "a mail to "+to+" with "+pattern, func() bool {
		all, err := p.at.List()
		if err != nil {
			p.y.T.Fatal(err)
		}
		for _, l := range all {
			if m := form.FindStringSubmatch(l.Text + "\n" + l.Unsubscribe); l.To == to && m != nil {
				found = m[1]
			}
		}
		return found != ""
	})
	return found
}

// face is a page that works without script.
type face struct {
	name, path, heading string
	guest               bool // nobody is signed in
}

// judge holds a page that is shown against what every page of the server has.
func judge(b *browser.Tab, f face, width int64) {
	b.T.Helper()
	b.Until(f.name, `document.readyState === "complete" && document.querySelector("main h1")?.innerText.includes(`+text(f.heading)+`)`)
	for what, is := range map[string]string{
		"one heading h1":               `document.querySelectorAll("h1").length === 1`,
		"one main":                     `document.querySelectorAll("main").length === 1`,
		"a name":                       `/ - Yardmaster$/.test(document.title)`,
		"an icon":                      `document.querySelector("link[rel=icon]").href.startsWith("data:image/svg")`,
		"the mark":                     `document.querySelector("header .brand svg").getBoundingClientRect().width === 20`,
		"the look of the dashboard":    `getComputedStyle(document.documentElement).getPropertyValue("--good") !== "" && document.styleSheets.length === 1`,
		"no script and no inline look": `!document.querySelector("script, style, [style]")`,
		"the way to the dashboard":     `document.querySelector("footer a[href='/ui/']")`,
		"a way out, for who is in":     fmt.Sprintf(`(document.querySelectorAll("form[action='/auth/logout'] button").length === 1) === %t`, !f.guest),
		"targets of 44 px": `[...document.querySelectorAll("button, .button, .brand, footer a, input:not([type=hidden]):not([type=checkbox]), select")]
			.every(e => e.getBoundingClientRect().height >= 43.9)`,
		"no sideways scroll": `document.documentElement.scrollWidth <= document.documentElement.clientWidth`,
	} {
		if !browser.Eval[bool](b, "Boolean("+is+")") {
			b.T.Errorf("%s at %d px lacks: %s", f.name, width, what)
		}
	}
}

// reached fails the test unless every control of a page is reached with Tab and shows
// that it has the focus.
func reached(b *browser.Tab, name string) {
	b.T.Helper()
	n := browser.Eval[int](b, `document.activeElement?.blur(),
		[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")].
		filter(e => e.matches("summary") || !e.closest("details:not([open])")).length`)
	browser.Eval[any](b, `window.seen = new Set()`)
	for range n {
		b.Press("Tab")
		if bad := browser.Eval[string](b, `(e => { window.seen.add(e); const s = getComputedStyle(e);
			return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 ? "" : e.outerHTML })(document.activeElement)`); bad != "" {
			b.T.Errorf("%s: the focus is not seen at %s", name, bad)
		}
	}
	if got := browser.Eval[int](b, "window.seen.size"); got != n {
		b.T.Errorf("%s: Tab reaches %d of %d controls", name, got, n)
	}
}

// Every page of the server works without script in the look of the dashboard: wide and
// narrow, in light and in dark, with one name, one heading, one way home and, for who is
// signed in, a way out.
func TestFaces(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	y := start(t, "--data", data)
	letters := post{y, mail.Folder{Dir: filepath.Join(data, "mail")}}
	y.repo()
	y.box()
	task := y.task("Say hello "+hostile, "Say hello in hello.txt.")
	y.status(task, "awaiting_review")
	asks := y.task("Needs a key", "Nothing to do.")
	y.Block(asks, "missing_credential", map[string]string{"DEPLOY_KEY": "env_secret", "API": "service_url", "mcp:tools": "mcp_server"})
	y.call("POST", "/v1/email-routes", `{"address": "team@example.com", "kinds": ["escalation", "task_failed"]}`)

	link, _ := y.call("POST", "/v1/org/members", `{"email": "bob@example.com", "role": "member"}`)["link"].(string)
	invite := strings.TrimPrefix(link, y.URL)
	client, _ := y.call("POST", "/oauth/register", `{"client_name": "Editor <b>", "redirect_uris": ["http://127.0.0.1/cb"]}`)["client_id"].(string)
	consent := "/oauth/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {"http://127.0.0.1:7777/cb"},
		"scope": {"read:tasks write:tasks write:prs"}, "state": {"s"},
		"code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"},
	}.Encode()
	code, _ := y.call("POST", "/auth/device", `{"client_name": "command line on bench"}`)["user_code"].(string)
	var fix string
	patience.Until(y.T, "a blocker with a link", func() bool {
		rows, _ := y.call("GET", "/v1/blockers", "")["data"].([]any)
		if len(rows) > 0 {
			fix, _ = rows[0].(map[string]any)["fix_url"].(string)
		}
		return fix != ""
	})
	fix = strings.TrimPrefix(fix, y.URL)
	action := letters.find("ada@example.com", `(?m)^https?://[^/]+(/actions/\S+)$`)
	unsubscribe := letters.find("ada@example.com", `(/unsubscribe\?token=\S+)`)
	route := letters.find("team@example.com", `(?m)^https?://[^/]+(/email-route/confirm\?token=\S+)$`)

	faces := []face{
		{"sign-in", "/login", "Sign in", true},
		{"invitation", invite, "An invitation to acme", true},
		{"invitation of another", invite, "An invitation to acme", false},
		{"signed in", "/login", "You are signed in", false},
		{"code of a device", "/device", "Sign in a command line", false},
		{"device", "/device?user_code=" + code, "Sign in a command line", false},
		{"consent", consent, "Authorize a program", false},
		{"form of a blocker", fix, "An agent needs something of you", true},
		{"question", action, "Approve ", true},
		{"question, signed in", action, "Approve ", false},
		{"unsubscribe", unsubscribe, "Get no more of these mails?", true},
		{"route of mails", route, "Shall notices come here?", true},
		{"back from the code host", "/gh/installed?installation_id=1", "Back from the code host", false},
		{"GitHub", "/gh/setup", "Connect GitHub", false},
		{"problem type", "/problems/head_moved", "head_moved", true},
		{"nothing", "/nonsense", "There is nothing here", true},
		{"wrong invitation", "/invite/nonsense", "There is no such invitation", true},
		{"wrong question", "/actions/nonsense", "This cannot go on", true},
		{"wrong form", "/blocker-fix/nonsense", "This cannot go on", true},
		{"wrong code", "/device?user_code=BCDF-GHJK", "Sign in a command line", false},
		{"wrong program", "/oauth/authorize?client_id=nonsense", "This cannot go on", true},
		{"address that signs in", y.link("/ui/"), "Sign in as ada", true},
		{"used address", "/auth/link/nonsense", "This address is not good any more", true},
		{"password", "/password?return_to=/ui/", "Another password", false},
		{"setup that is over", "/setup/nonsense", "This address is not good", true},
		{"without a session", "/gh/setup", "This cannot go on", true},
	}
	for _, size := range []struct {
		width, height int64
		themes        []string
	}{{1280, 800, []string{"light", "dark"}}, {320, 640, []string{"light", "dark"}}} {
		guest, ada := browser.Open(t, y.URL, size.width, size.height), y.open(size.width, size.height)
		ada.Complaints()
		for _, f := range faces {
			b := ada
			if f.guest {
				b = guest
			}
			b.Go(f.path)
			judge(b, f, size.width)
			for _, theme := range size.themes {
				b.Theme(theme)
				usable(b, f.name+" in "+theme)
				if at := os.Getenv("SHOTS"); at != "" {
					b.Picture(fmt.Sprintf("%s/face-%s-%d-%s.png", at, strings.ReplaceAll(f.name, " ", "-"), size.width, theme))
				}
			}
			if size.width > 720 {
				reached(b, f.name)
			}
			for _, c := range b.Complaints() {
				if !strings.Contains(c, "responded with a status of 4") {
					t.Errorf("%s: the browser complains: %s", f.name, c)
				}
			}
		}
	}
}

// Pages lead on by their own buttons alone: an invitation to a session, a session to a
// refusal, a question to its answer, and out.
func TestFacesLeadOn(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	y := start(t, "--data", data)
	letters := post{y, mail.Folder{Dir: filepath.Join(data, "mail")}}
	y.repo()
	y.box()
	y.status(y.task("Say hello", "Say hello in hello.txt."), "awaiting_review")

	link, _ := y.call("POST", "/v1/org/members", `{"email": "bob@example.com", "role": "member"}`)["link"].(string)
	b := browser.Open(t, y.URL, 390, 844)
	b.Go(strings.TrimPrefix(link, y.URL))
	b.Button("Make a code and accept")
	judge(b, face{"code", "", "Enter the code", true}, 390)
	usable(b, "the page of a code")
	b.Fill("Code", "000000")
	b.Press("Enter")
	b.See("Enter the code")
	b.See("yardmaster mail bob@example.com")
	b.Until("a refusal", `document.querySelector("main [role=alert]")`)
	usable(b, "the page of a code, refused")
	b.Fill("Code", letters.find("bob@example.com", `(?m)\b(\d{6})\b`))
	b.Press("Enter")
	// The server sends no mail, so bob gets a way to come back.
	judge(b, face{"first password", "", "Choose a password", false}, 390)
	usable(b, "the first password")
	b.Fill("New password", "bobs own words")
	b.Press("Enter")
	b.See("It was accepted.")
	judge(b, face{"accepted", "", "An invitation to acme", false}, 390)
	b.Go("/gh/setup") // for operators
	b.See("What this means")
	judge(b, face{"refused", "", "This cannot go on", false}, 390)
	if status := browser.Eval[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`); status != 403 {
		t.Errorf("the page of an operator answers bob %d", status)
	}
	b.Button("Sign out")
	b.Until("the sign-in page", `location.pathname === "/login" && document.querySelector("#password")`)
	b.Fill("Login or e-mail", "bob")
	b.Fill("Password", "not his own one")
	b.Press("Enter")
	b.Until("a refusal", `document.querySelector("main [role=alert]")`)
	usable(b, "the sign-in page, refused")
	b.Go(strings.TrimPrefix(link, y.URL))
	b.Click("main a[href^='/login']")
	b.Until("the sign-in page", `location.pathname === "/login" && document.querySelector("#password")`)
	b.Fill("Login or e-mail", "bob@example.com")
	b.Fill("Password", "bobs own words")
	b.Press("Enter")
	b.Until("the dashboard", `location.pathname === "/ui/" && document.querySelector("#app main h1")`)
	in := y.link("/ui/prs")
	b.Go(in)
	b.See("Sign in as ada") // bob is signed in
	b.Button("Sign in")
	b.Until("the page of the address, as ada", `location.pathname === "/ui/prs" && document.querySelector(".foot")?.innerText.includes("ada")`)
	b.Go(in)
	b.See("This address is not good any more")
	b.Until("the way in", `document.querySelector("main a[href^='/login']")`)
	b.Go(y.link("/ui/tasks")) // ada is signed in already
	b.Until("the page of the address", `location.pathname === "/ui/tasks"`)

	// The address of this page is a credential, so it sends no referrer; its buttons work
	// all the same.
	a := y.open(390, 844)
	a.Go(letters.find("ada@example.com", `(?m)^https?://[^/]+(/actions/\S+)$`))
	judge(a, face{"question", "", "Approve ", false}, 390)
	a.Click("main button.main")
	a.Until("an answer", `document.querySelector("h1").innerText === "Approved" && document.querySelector("main .done")`)
	judge(a, face{"answer", "", "Approved", false}, 390)
	usable(a, "the answer of a question")
	a.Button("Sign out")
	a.Until("the sign-in page", `location.pathname === "/login" && document.querySelector("#password")`)

	// Cancel comes first on the page where a program asks for rights.
	client, _ := y.call("POST", "/oauth/register", `{"client_name": "Editor", "redirect_uris": ["http://127.0.0.1/cb"]}`)["client_id"].(string)
	a.Fill("Login or e-mail", "ada")
	a.Fill("Password", rig.Password)
	a.Press("Enter")
	a.Until("the dashboard", `document.querySelector("#app main h1")`)
	a.Go("/oauth/authorize?response_type=code&client_id=" + client + "&redirect_uri=http://127.0.0.1:7777/cb&scope=read:tasks+write:tasks" +
		"&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256")
	a.See("It may see")
	a.See("It may change")
	if got := browser.Eval[string](a, `[...document.querySelectorAll("main .pair button")].map(b => b.innerText + (b.className ? "*" : "")).join(" ")`); got != "Cancel Authorize*" {
		t.Errorf("the buttons are %s", got)
	}
}

// The page that describes the API is in the look of the dashboard, and runs the script of
// this server alone.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	y := start(t)
	for _, size := range []struct{ width, height int64 }{{1280, 800}, {320, 640}} {
		b := browser.Open(t, y.URL, size.width, size.height)
		b.Go("/docs")
		b.Until("the script", `document.querySelector(".copy")`)
		for what, is := range map[string]string{
			"one heading h1": `document.querySelectorAll("h1").length === 1`, "one main": `document.querySelectorAll("main").length === 1`,
			"the look":     `getComputedStyle(document.documentElement).getPropertyValue("--good") !== ""`,
			"the way home": `document.querySelector("a.brand[href='/'] svg")`, "no inline script or look": `!document.querySelector("style, [style], script:not([src])")`,
			"no sideways scroll": `document.documentElement.scrollWidth <= document.documentElement.clientWidth`,
		} {
			if !browser.Eval[bool](b, "Boolean("+is+")") {
				t.Errorf("/docs at %d px lacks: %s", size.width, what)
			}
		}
		if at := os.Getenv("SHOTS"); at != "" {
			b.Picture(fmt.Sprintf("%s/face-docs-%d.png", at, size.width))
		}
		browser.Eval[any](b, `document.querySelector("#menu").checked = true`)
		b.Fill("Search", "task.create")
		b.Until("what fits", `[...document.querySelectorAll("nav li:not([hidden])")].length < 20 && document.querySelector("nav li:not([hidden]) a[href='#task.create']")`)
		// The whole page is too much for axe in a test: a part of each sort is held against it.
		browser.Eval[any](b, `[...document.querySelectorAll("main section")].slice(4).forEach(e => e.remove())`)
		for _, theme := range []string{"light", "dark"} {
			b.Theme(theme)
			usable(b, "/docs in "+theme)
		}
		if c := b.Complaints(); len(c) > 0 {
			t.Errorf("the browser complains: %q", c)
		}
	}
}
