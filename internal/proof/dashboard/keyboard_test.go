//go:build !race

package dashboard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/rig"
)

// hands are those of a person who has no mouse: they press keys, and nothing else. No
// script of theirs sets the focus, a value or an address; scripts only look.
type hands struct{ *browser.Tab }

// name is an expression for the accessible name of the element e: that of its label, or
// of its content.
const name = `(e.getAttribute("aria-label") || (e.labels && e.labels[0] && e.labels[0].innerText.split("\n")[0]) || e.innerText || "").trim()`

const (
	fields  = "input,select,textarea"
	buttons = "a,button,summary"
)

// reach presses Tab until one of some controls, whose name begins with a text, has the focus.
func (h hands) reach(controls, want string) {
	h.T.Helper()
	fits := `(e => e.matches(` + quoted(controls) + `) && ` + name + `.startsWith(` + quoted(want) + `))`
	h.Until("a control "+want, `[...document.querySelectorAll(`+quoted(controls)+`)].some(e => e.getClientRects().length && !e.disabled && `+
		fits+`(e))`)
	for range 400 {
		if browser.Eval[bool](h.Tab, `(a => !!a && `+fits+`(a))(document.activeElement)`) {
			return
		}
		h.Press("Tab")
	}
	h.T.Fatalf("Tab never reaches %q; it is at %s", want, browser.Eval[string](h.Tab, `document.activeElement?.outerHTML.slice(0, 200)`))
}

// fill types a text into the field of a label, in place of what it holds.
func (h hands) fill(label, text string) {
	h.T.Helper()
	h.reach(fields, label)
	h.Press("Ctrl+a")
	h.Type(text)
}

// do presses the button, or follows the link, of a name.
func (h hands) do(want string) {
	h.T.Helper()
	h.reach(buttons, want)
	h.Press("Enter")
}

// task opens the page of a task from the list of tasks.
func (h hands) task(title string) {
	h.T.Helper()
	h.Press("g", "t")
	h.heading("Tasks")
	h.Until("its row", `[...document.querySelectorAll("#tasks [role=row]")].some(r => r.innerText.includes(`+quoted(title)+`))`)
	// Its review can stand before it.
	for range 5 {
		h.Press("j")
		if browser.Eval[bool](h.Tab, `document.querySelector("#tasks .row.on")?.innerText.includes(`+quoted(title)+`) ?? false`) {
			break
		}
	}
	h.Press("Enter")
	h.heading(title)
}

// heading waits until the page has a heading, which has the focus after a change of page.
func (h hands) heading(text string) {
	h.T.Helper()
	h.Until("the heading "+text, `document.querySelector("main h1")?.innerText.startsWith(`+quoted(text)+`)`)
}

// A first visit, from the address that a new server prints to a merged pull request, by
// keys alone. What happens beside the browser is the line that is pasted on a machine.
func TestFirstVisitByKeyboard(t *testing.T) {
	t.Parallel()
	y := fresh(t)
	h := hands{browser.Open(t, y.URL, 1440, 900)}
	h.Go("/setup/" + y.Setup)
	h.fill("Your login", "ada")
	h.fill("E-mail", "ada@example.com")
	h.fill("Password", rig.Password)
	h.fill("Account", "acme")
	h.Press("Enter")
	h.See("You are ada")
	h.do("Go on in the browser")
	h.heading("Home")

	h.do("Add a repository")
	h.heading("Repositories")
	h.fill("Name", "garden")
	h.Press("Enter")
	h.heading("acme/garden")

	h.Press("g", "h")
	h.heading("Home")
	h.do("Add a model key")
	h.heading("Keys and models")
	h.reach(fields, "Provider")
	h.Type("s")
	h.Until("no field for a key", `!document.querySelector("main form input[type=password]")`)
	h.do("Add it")
	h.See("not used yet")

	h.Press("g", "h")
	h.heading("Home")
	h.do("Connect a box")
	h.heading("Boxes")
	h.do("Make the command")
	h.Until("the command", `document.querySelector(".secret code")?.innerText.includes("dev_enr_")`)
	line := browser.Eval[string](h.Tab, `document.querySelector(".secret code").innerText`)
	y.Box(strings.FieldsFunc(line[strings.Index(line, "dev_enr_"):], func(r rune) bool { return strings.ContainsRune(" '\"", r) })[0])
	h.See("is here")
	h.Press("Escape")
	h.Gone("is here")

	h.Press("c")
	h.fill("Title", "Greet everybody")
	h.fill("What to do", "Say hello in hello.txt.")
	h.do("File the task")
	h.heading("Greet everybody")
	h.See("I write the greeting.")
	h.See("It says **hello** now.")
	h.Until("its pull request", `[...document.querySelectorAll(".facts dt")].some(e => e.innerText === "Pull request")`)

	h.Press("g", "r")
	h.heading("Pull requests")
	h.Until("its row", `document.querySelector("#prs [role=row]")?.innerText.includes("Greet everybody")`)
	h.Press("j", "k", "Enter")
	h.heading("Greet everybody")
	h.See("hello.txt")
	h.Until("the question", `document.querySelector("#decision .acts button.main:not(:disabled)")`)
	h.Press("a")
	h.Until("it is merged", `[...document.querySelectorAll("h1 ~ .status")].some(e => e.innerText === "merged")`)
	h.Press("g", "t")
	h.Until("the task, too", `[...document.querySelectorAll("#tasks [role=row]")].some(e => /merged/.test(e.innerText) && /Greet everybody/.test(e.innerText))`)
}

// enter opens a window in which ada is signed in, by keys alone.
func enter(t *testing.T, url string) hands {
	t.Helper()
	h := hands{browser.Open(t, url, 1440, 900)}
	h.Go("/login?return_to=/ui/")
	h.fill("Login or e-mail", "ada")
	h.fill("Password", rig.Password)
	h.Press("Enter")
	h.heading("Home")
	return h
}

// What an agent could not do alone is tried again with a word of guidance, which the agent
// of the next attempt reads.
func TestRedispatchByKeyboard(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"keeper": `if grep -q 'Mind the cat' "$YARDMASTER_PROMPT"; then
		echo fed >cat.txt; git add -A; git commit -qm "Feed the cat"; echo 'The cat is fed.' >"$YARDMASTER_REPORT"; exit
	fi
	echo '{"kind":"decision","question":"Which animals?"}' >"$YARDMASTER_OUTBOX/blocker-which.json"
`})
	task := s.task("keeper", "Feed the animals")
	h := enter(t, s.URL)
	patience.Until(s.T, "it is held", func() bool {
		var now struct{ Status string }
		s.into(&now, 200, "GET", "/v1/tasks/"+task, "")
		return now.Status == "held"
	})
	h.task("Feed the animals")
	h.See("Which animals?")
	h.do("Redispatch")
	h.fill("Guidance", "Mind the cat.")
	h.do("Queue it again")
	h.See("Queued again.")
	h.do("Report")
	h.See("The cat is fed.")
	clean(t, h.Tab)
}

// A task that has spent its budget is held; a raised cap, which the hold leads to, frees it.
func TestRaisedBudgetByKeyboard(t *testing.T) {
	t.Parallel()
	prices := filepath.Join(t.TempDir(), "prices.yml")
	if err := os.WriteFile(prices, []byte("as_of: \"2026-01-01\"\nprices:\n"+
		"  - {provider: scripted, family: \"*\", input: 0, output: 100, max_output: 2000}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	y := start(t, "--prices", prices)
	y.repo()
	y.box()
	y.call("POST", "/v1/tasks", `{"repo": "acme/web", "title": "Count the beans", "problem": "Count the beans.", "budget_usd": 0.5}`)
	h := enter(t, y.URL)
	h.task("Count the beans")
	h.See("waits for money")
	h.do("Raise the budget")
	h.fill("Budget", "5")
	h.do("Set the budget")
	h.Gone("waits for money")
	h.do("Run")
	h.See("They are counted.")
	if bad := h.Complaints(); len(bad) > 0 {
		t.Errorf("the browser complains: %q", bad)
	}
}

// An answer to what an agent asks wakes the run that waits for it.
func TestBlockerByKeyboard(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.box()
	task := y.task("Paint the shed", "Paint the shed in a good colour.")
	h := enter(t, y.URL)
	h.See("Which colour?")
	run := y.call("GET", "/v1/tasks/"+task, "")["run_id"]
	h.fill("Answer", "Blue, as ever.")
	h.do("Answer")
	h.See("Nothing waits for you.")
	h.task("Paint the shed")
	h.See("It is blue now.")
	if got := y.call("GET", "/v1/tasks/"+task, "")["run_id"]; got != run || run == nil {
		t.Errorf("the task went on in the run %v, it was asked in %v", got, run)
	}
}
