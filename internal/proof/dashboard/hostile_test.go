//go:build !race

package dashboard_test

import (
	"encoding/json"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// ask files an ask and returns its id.
func (y *yard) ask(title, body string) string {
	y.T.Helper()
	text, err := json.Marshal(map[string]string{"title": title, "body": body})
	if err != nil {
		y.T.Fatal(err)
	}
	id, _ := y.call("POST", "/v1/asks", string(text))["askId"].(string)
	return id
}

// somebody adds bob, an owner of globex who has ada's password.
func (y *yard) somebody() {
	y.T.Helper()
	account, user := id.New(), id.New()
	y.Write(account, func(tx *db.Tx) error {
		hash, _, err := people.Password(tx, y.User)
		if err != nil {
			return err
		}
		for _, row := range []interface{ Add(*db.Tx) error }{
			seed.Account{ID: account, Login: "globex"}, seed.User{ID: user, Login: "bob", Password: hash},
			seed.Member{Account: account, User: user, Role: string(policy.Owner)},
		} {
			if err := row.Add(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Texts that are made to keep the browser busy for hours, or to have it make millions of
// elements, are drawn, and the page goes on.
func TestTextsThatFreeze(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := y.open(1440, 900)
	for name, body := range map[string]string{
		"links that do not end": strings.Repeat("[a](b", 3990),
		"brackets":              strings.Repeat("[", 19_900),
		"a heading":             "# " + strings.Repeat(" ", 9_000) + "\rx" + strings.Repeat(" #", 5_000) + "\rx",
		"a rule of a table":     "|\n-" + strings.Repeat(" ", 19_000) + "x",
		"a wide table":          strings.Repeat("|", 9_000) + "\n-|-\n" + strings.Repeat("|\n", 5_000),
		"ticks":                 strings.Repeat("`", 9_000) + "a" + strings.Repeat("`a", 5_000),
		"stars":                 strings.Repeat("*a**b", 3_900),
		"addresses":             strings.Repeat("https://", 2_400),
		"quotes":                strings.Repeat(strings.Repeat(">", 90)+"a\n> a\n", 200),
	} {
		b.Go("/ui/asks/" + y.ask("Hostile: "+name, body+"\n\nthe end of it"))
		b.See("Hostile: " + name)
		b.See("the end of it")
		if n := browser.Eval[int](b, `document.querySelectorAll(".md *").length`); n > 60_000 {
			t.Errorf("%s: %d elements", name, n)
		}
	}
}

// A link says which host it leads to, whatever its text pretends.
func TestLinksSayWhereTheyLead(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := y.open(1440, 900)
	b.Go("/ui/asks/" + y.ask("Links", strings.Join([]string{
		"[https://github.com/acme?to=evil.example](https://evil.example/1)", "https://github.com@evil.example/2",
		"[evil.example is good](https://user:pass@evil.example/3)", "https://gith\u0443b.example/4", "https://plain.example/5",
		"[https://plain.example](https://plain.example.evil.example/6)", "[a](javascript:alert(1))", "[b](data:text/html,x)",
		"[c](//evil.example/7)", "![d](https://evil.example/8.png)", "[e](vbscript:x)", "[f](/auth/logout)",
		"[g](blob:https://evil.example/x)",
		"the end of it",
	}, "\n\n")))
	b.See("the end of it")
	type anchor struct{ Href, Text string }
	var got []anchor
	for _, a := range browser.Eval[[]map[string]string](b,
		`[...document.querySelectorAll(".md a")].map(a => ({href: a.href, text: a.textContent}))`) {
		got = append(got, anchor{a["href"], a["text"]})
	}
	want := []anchor{
		{"https://evil.example/1", "https://github.com/acme?to=evil.example (evil.example)"},
		{"https://github.com@evil.example/2", "https://github.com@evil.example/2 (evil.example)"},
		{"https://user:pass@evil.example/3", "evil.example is good (evil.example)"},
		{"https://xn--githb-hze.example/4", "https://gith\u0443b.example/4 (xn--githb-hze.example)"},
		{"https://plain.example/5", "https://plain.example/5"},
		{"https://plain.example.evil.example/6", "https://plain.example (plain.example.evil.example)"},
		{"https://evil.example/8.png", "image: d (evil.example)"},
	}
	for i := range max(len(want), len(got)) {
		var w, g anchor
		if i < len(want) {
			w = want[i]
		}
		if i < len(got) {
			g = got[i]
		}
		if w != g {
			t.Errorf("link %d is %+v, not %+v", i, g, w)
		}
	}
	if n := browser.Eval[int](b, `document.querySelectorAll(".md img, .md iframe, .md script").length`); n > 0 {
		t.Errorf("%d elements load something", n)
	}
}

// Files with names that every object of JavaScript has are shown as others are: at once,
// and again once they were closed.
func TestFilesNamedLikeMembers(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"namer": `for f in __proto__ constructor toString src/__proto__; do echo "zz in $f" >"$f"; done
git add -A
git commit -qm "Name files"
echo "Named." >"$YARDMASTER_REPORT"
`})
	pr := s.pull(s.task("namer", "Name files"))
	b := s.enter(1440, 900)
	b.Complaints()
	b.Go("/ui/prs/" + pr)
	b.See("Name files")
	names := []string{"__proto__", "constructor", "toString", "src/__proto__"}
	shown := func() {
		t.Helper()
		for _, name := range names {
			b.Until("the line of "+name, `[...document.querySelectorAll(".changes .add")].some(e => e.innerText.includes(`+quoted("zz in "+name)+`))`)
		}
	}
	shown()
	for _, name := range names {
		button := `[...document.querySelectorAll(".changes .fileline button[aria-expanded]")].find(e => e.innerText.includes(` + quoted(name) + `))`
		for _, is := range []string{"false", "true"} {
			browser.Eval[any](b, button+`.click()`)
			b.Until(name+" is open: "+is, button+`?.getAttribute("aria-expanded") === `+quoted(is))
		}
	}
	shown()
	for _, c := range b.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
}

// After a sign-out nothing of the person is left in the browser, nor comes back with its
// button; whoever signs in next sees their own, in every tab.
func TestSomebodyElseSignsIn(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("Only for acme", "Nothing to do.")
	y.somebody()
	one := y.open(1440, 900)
	two := one.Another()
	for _, b := range []*browser.Tab{one, two} {
		b.Go("/ui/tasks")
		b.See("Only for acme")
		browser.Eval[any](b, `(sessionStorage.setItem("account", "`+y.Account+`"), localStorage.setItem("viewed:x:1", "[]"), null)`)
		b.Go("/ui/tasks")
		b.See("Only for acme")
	}
	one.Button("Sign out")
	one.See("Sign in")
	if left := browser.Eval[string](one, `JSON.stringify([{...localStorage}, {...sessionStorage}])`); strings.Contains(left, "viewed") ||
		strings.Contains(left, y.Account) {
		t.Errorf("left in the browser: %s", left)
	}
	one.Back()
	one.Until("the sign-in page", `location.pathname === "/login" && document.querySelector("input[type=password]")`)
	one.SignIn("bob", rig.Password)
	for _, b := range []*browser.Tab{one, two} {
		b.Until("bob's page", `document.querySelector(".foot") && document.querySelector(".foot").innerText.includes("bob")`)
		b.See("globex")
		b.Gone("Only for acme")
	}
}

// Who signs in over somebody else's open session takes all tabs over, and hears nothing of
// the stream that was open for that session.
func TestSignInOverASession(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.somebody()
	one := y.open(1440, 900)
	one.Go("/ui/tasks")
	one.Until("live", `document.querySelector(".link.live")`)
	two := one.Another()
	two.Go("/ui/tasks") // the sign-in page signs nobody in who is
	browser.Eval[any](two, `fetch("/auth/password", {method: "POST", headers: {"Content-Type": "application/json"},
		body: JSON.stringify({login: "bob", password: "`+rig.Password+`"})}).then(() => null)`)
	two.Go("/ui/tasks")
	two.See("No tasks yet")
	y.task("Only for acme", "Nothing to do.")
	for _, b := range []*browser.Tab{one, two} {
		b.Until("bob's page", `document.querySelector(".foot") && document.querySelector(".foot").innerText.includes("bob")`)
		b.Until("live", `document.querySelector(".link.live")`)
		if text := browser.Eval[string](b, "document.body.innerText"); strings.Contains(text, "Only for acme") {
			t.Errorf("a tab of bob shows a task of acme:\n%s", text)
		}
	}
}
