//go:build !race

package dashboard_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

// late presses a button of a name right after somebody else has called the API, before the
// page can hear of it.
func late(b *browser.Tab, method, path, body, name string) {
	b.T.Helper()
	button := `[...document.querySelectorAll("main button")].find(e => !e.disabled && e.innerText.trim() === ` + quoted(name) + `)`
	b.Until("a button "+name, button)
	status := browser.Eval[int](b, `(() => {
		const call = new XMLHttpRequest();
		call.open(`+quoted(method)+`, `+quoted(path)+`, false);
		call.setRequestHeader("Content-Type", "application/json");
		call.send(`+quoted(body)+`);
		(`+button+`).click();
		return call.status;
	})()`)
	if status >= http.StatusMultipleChoices {
		b.T.Fatalf("%s %s answers %d", method, path, status)
	}
}

// wrong waits until the field of a label is refused with a text, and has the focus.
func wrong(b *browser.Tab, label, want string) {
	b.T.Helper()
	b.Until("a word at the field "+label, `(e => e?.getAttribute("aria-invalid") === "true" && `+
		`document.getElementById(e.getAttribute("aria-describedby"))?.innerText.includes(`+quoted(want)+`) && document.activeElement === e)(`+
		`[...document.querySelectorAll("label")].filter(l => l.innerText.startsWith(`+quoted(label)+`)).map(l => l.control).findLast(Boolean))`)
}

// stubborn gets its check right at the fifth go: once the rounds of its repair are spent.
const stubborn = `echo go >> tries
[ $(wc -l < tries) -lt 5 ] || echo good > word
git add -A
git commit -qm "Try"
echo 'I tried.' > "$YARDMASTER_REPORT"
`

// A pull request whose repair is spent cannot be merged by hand while its check fails. It
// is armed again, with a reason, and merged by hand once the check has passed.
func TestRearmAndMergeByHand(t *testing.T) {
	t.Parallel()
	s := open(t, "{version: 1, merge: {mode: never}, review: {mode: off}, checks: {command: test -e word}}\n",
		map[string]string{"stubborn": stubborn})
	task := s.task("stubborn", "Get it right")
	var pr struct {
		ID      string
		State   string
		Checks  string
		HeadSHA string `json:"head_sha"`
		Babysit struct {
			State    string
			Forgiven int
		}
	}
	read := func() bool {
		var t struct {
			PRID string `json:"pr_id"`
		}
		s.into(&t, 200, "GET", "/v1/tasks/"+task, "")
		if t.PRID != "" {
			s.into(&pr, 200, "GET", "/v1/prs/"+t.PRID, "")
		}
		return pr.ID != ""
	}
	patience.Until(s.T, "the repair is spent", func() bool { return read() && pr.Babysit.State == "spent" })
	b := s.enter(1440, 900)
	// Home has it once, with a form and what was asked about it.
	is(b, deck, "Get it right")
	b.See("needs a person: the check exited with 1")
	is(b, `String(document.getElementById("wrong"))`, "null")
	is(b, amiss, "0")
	is(b, waits, "1")
	is(b, `document.querySelector("nav .n")?.innerText`, "1")
	b.Press("j", "a")
	b.Until("the field of the form", `document.activeElement?.name === "reason"`)
	b.Go("/ui/prs/" + pr.ID)
	heads(b, "Get it right")
	b.See("checks 3/3")
	b.Button("Merge " + pr.HeadSHA[:7])
	b.See("Merge " + pr.HeadSHA[:10] + " into main?")
	b.Yes()
	b.See("The checks of this head are failed.")
	if read(); pr.State != "open" {
		t.Fatalf("a pull request whose check failed is %s", pr.State)
	}
	b.Button("Re-arm repair")
	b.See("Let agents repair it again")
	b.Press("Enter")
	wrong(b, "Reason", "must not be empty")
	b.Fill("Reason", "It was nearly right. "+hostile)
	b.Press("Enter")
	b.See("Armed again. The next round begins soon.")
	b.Gone("Let agents repair it again")
	b.Until("the check of the next head passes", `[...document.querySelectorAll(".facts div")].some(e => /^Checks\s+passed/.test(e.innerText))`)
	if read(); pr.Babysit.Forgiven != 3 || pr.Checks != "passed" {
		t.Errorf("the pull request is %+v", pr)
	}
	if audit := string(s.must(200, "GET", "/v1/audit/events?per_page=200", "")); !strings.Contains(audit, "It was nearly right.") {
		t.Errorf("the audit log does not have the reason: %s", audit)
	}
	b.Button("Merge " + pr.HeadSHA[:7])
	b.Yes()
	b.See("It is merged as soon as it can be.")
	b.Until("it is merged", `[...document.querySelectorAll("h1 ~ .status")].some(e => e.innerText === "merged")`)
	if read(); pr.State != "merged" {
		t.Errorf("the pull request is %s", pr.State)
	}
	b.Until("nothing is left to press", `![...document.querySelectorAll("main header button")].length`)
	var statement struct {
		PublicKey string `json:"public_key"`
	}
	s.into(&statement, 200, "GET", "/v1/prs/"+pr.ID+"/provenance", "")
	proven(t, b, statement.PublicKey)
	content(b)
	clean(t, b)
}

// A task that waits before its next try is hurried. Whoever presses when somebody else was
// faster is told so.
func TestRetryNow(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"breaks": "exit 1\n"})
	b := s.enter(1440, 900)
	type state struct {
		Attempt int
		Status  string
		Holds   []struct{ Reason string }
	}
	for _, first := range []bool{true, false} {
		task := s.task("breaks", map[bool]string{true: "Hurry", false: "Hurry, too"}[first])
		read := func() (t state) {
			s.into(&t, 200, "GET", "/v1/tasks/"+task, "")
			return t
		}
		waits := func(attempt int) func() bool {
			return func() bool {
				t := read()
				return t.Attempt == attempt && len(t.Holds) == 1 && t.Holds[0].Reason == "retry_backoff"
			}
		}
		patience.Until(s.T, "it waits for its second try", waits(1))
		s.Send("POST", "/v1/tasks/"+task+"/retry-now", s.Owner, "{}") // it may have waited long enough
		patience.Until(s.T, "it waits for its third try, for minutes", waits(2))
		b.Go("/ui/tasks/" + task)
		b.See("waits before its next try")
		if first { // where no box takes it yet, the wait is over all the same
			var boxes struct{ Data []made }
			s.into(&boxes, 200, "GET", "/v1/runners", "")
			drain := "/v1/runners/" + boxes.Data[0].ID + "/drain"
			s.must(200, "POST", drain, "{}")
			b.Button("Retry now")
			b.See("It goes on at once.")
			b.Gone("Retry now")
			b.See("waits for a box that takes work")
			s.must(200, "POST", drain, `{"resume": true}`)
		} else {
			late(b, "POST", "/v1/tasks/"+task+"/retry-now", "{}", "Retry now")
			b.See("does not wait before its next try.")
		}
		b.See("3 of 3")
		b.Gone("Retry now")
		patience.Until(s.T, "its tries are over", func() bool { t := read(); return t.Attempt == 3 && t.Status == "failed" })
		b.Until("the page says so", `document.querySelector("main h1 ~ .status")?.innerText === "failed"`)
	}
	content(b)
}

// An issue is handed to a system that a webhook names, and the system hears of it.
func TestHandOff(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		heard <- string(body)
	}))
	t.Cleanup(receiver.Close)
	y, b := begin(t, "--allow-networks", "127.0.0.0/8")
	if err := y.Push("acme/web", map[string]string{"README.md": "# Web\n"}); err != nil {
		t.Fatal(err)
	}
	issue, repo := id.New(), call[struct{ Data []made }](y, http.MethodGet, "/v1/repos", "").Data[0].ID
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Issue{ID: issue, Account: y.Account, Repo: repo, Title: "It fails", Number: 7})
	})
	call[any](y, http.MethodPost, "/v1/webhooks", `{"name": "coder", "url": "`+receiver.URL+`", "events": ["issue.handoff"]}`)

	visit(b, "/ui/repos/acme/web/issues/"+issue, "It fails")
	b.Button("Hand off")
	wrong(b, "Reason", "must not be empty")
	b.Fill("Reason", "Your agent knows this code. "+hostile)
	b.Button("Hand off")
	wrong(b, "Webhook", "the policy file names no webhook")
	b.Fill("Webhook", "nobody")
	b.Button("Hand off")
	wrong(b, "Webhook", "is the name of no webhook")
	b.Fill("Webhook", "coder")
	b.Button("Hand off")
	b.See("The delivery is queued.")
	b.Until("what became of it", `[...document.querySelectorAll(".facts div")].some(e => /^Triage\s+handed off/.test(e.innerText))`)
	if triage := call[struct{ Triage string }](y, http.MethodGet, "/v1/issues/"+issue, "").Triage; triage != "handed_off" {
		t.Errorf("the issue is %s", triage)
	}
	var body string
	patience.Until(y.T, "the receiver hears of it", func() bool {
		select {
		case body = <-heard:
		default:
		}
		return body != ""
	})
	if !json.Valid([]byte(body)) || !strings.Contains(body, "Your agent knows this code.") || !strings.Contains(body, "It fails") {
		t.Errorf("the receiver hears %s", body)
	}
	content(b)
}

// Tasks take the place of a group of a plan, also those that were chosen before others
// were looked for; and a group stops waiting for another. Each refusal is said where it
// belongs.
func TestRegroupAndUnlink(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	filed := s.plan()
	for _, title := range []string{"Name it otherwise", "Spell it out", "Of another matter"} {
		s.must(202, "POST", "/v1/tasks", `{"repo": "acme/web", "title": `+text(title)+`, "problem": "It is wrong."}`)
	}
	type group struct {
		ID, Title, Status string
		Upstream          []struct {
			ID string `json:"group_id"`
		}
	}
	groups := func() map[string]group {
		var plan struct{ Groups []group }
		s.into(&plan, 200, "GET", "/v1/plans/"+filed, "")
		out := map[string]group{}
		for _, g := range plan.Groups {
			out[g.Title] = g
		}
		return out
	}
	b := s.enter(1440, 900)
	b.Go("/ui/plans/" + filed)
	tick := func(label string) {
		t.Helper()
		box := `[...document.querySelectorAll("dialog label.check")].find(e => e.innerText.trim().startsWith(` + text(label) + `))?.querySelector("input:not(:disabled)")`
		b.Until("a box "+label, box)
		browser.Eval[any](b, box+".click()")
	}
	submit := func() {
		t.Helper()
		b.Click("dialog[open] form button.main")
	}

	b.Button("Regroup")
	b.See("Groups that are replaced")
	submit()
	b.See("must name a group")
	tick("Add a name")
	tick("Name it otherwise")
	submit()
	b.See("The plan is held: approve it, then regroup it.")
	usable(b, "the dialog that regroups")
	b.Press("Escape")
	b.Gone("Groups that are replaced")
	b.Button("Approve")
	b.See("Approved.")

	b.Button("Regroup")
	tick("Add a name")
	tick("Name it otherwise")
	browser.Eval[any](b, `document.querySelector("dialog input[type=search]").focus()`)
	b.Type("Spell")
	b.Until("what fits alone", `!document.querySelector("dialog").innerText.includes("Of another matter")`)
	tick("Spell it out")
	submit()
	b.See("1 group was replaced by 2.")
	all := groups()
	if all["Add a name"].Status != "superseded" || all["Name it otherwise"].ID == "" || all["Spell it out"].ID == "" {
		t.Fatalf("the groups are %+v", all)
	}
	if n := len(all["Use the name"].Upstream); n != 2 {
		t.Errorf("what waited for the old group waits for %d", n)
	}
	b.Until("the page has them", `["Name it otherwise", "Spell it out"].every(s => [...document.querySelectorAll("table a[href^='/ui/tasks/']")].some(a => a.innerText === s))`)

	b.Button("Unlink")
	b.See("It shall not wait any more for")
	b.Fill("Reason", "They do not meet.")
	submit()
	b.Until("a word at the groups", `document.querySelector("dialog fieldset em")?.innerText`)
	before := browser.Eval[string](b, `/Before: (.*?)\. After/.exec(document.querySelector("dialog").innerText)[1]`)
	b.Click("dialog fieldset input[type=checkbox]:not(:disabled)")
	after := browser.Eval[string](b, `/After: (.*?)\.$/m.exec(document.querySelector("dialog").innerText)[1]`)
	if n, m := len(strings.Split(before, "; ")), len(strings.Split(after, "; ")); n != m+1 {
		t.Errorf("before %q, after %q", before, after)
	}
	b.Fill("Reason", "")
	b.Press("Ctrl+a", "Backspace")
	submit()
	wrong(b, "Reason", "must not be empty")
	b.Fill("Reason", "They do not meet.")
	submit()
	b.See("Removed. It waits for ")
	if n := len(groups()["Say so"].Upstream); n != len(strings.Split(after, "; ")) {
		t.Errorf("it waits for %d groups, and the page said %q", n, after)
	}
	content(b)
	clean(t, b)
}
