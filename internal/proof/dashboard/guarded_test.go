//go:build !race

package dashboard_test

import (
	"fmt"
	"testing"

	"yardmaster/internal/proof/browser"
)

// Whoever decides about a merge that changes the policy sees each field that would get
// weaker, with both values, wherever the question stands.
func TestWeakerPolicyIsNamed(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{
		"weaken": `printf '{version: 1, merge: {mode: auto}, review: {mode: off}}\n' > .svc/policy.yml; git commit -qam 'Weaken it'; echo Done.`,
	})
	pr := s.pull(s.task("weaken", "Merge by itself"))
	b := s.enter(1440, 900)
	for _, path := range []string{"/ui/", "/ui/approvals", "/ui/prs/" + pr} {
		b.Go(path)
		b.See("It changes what protects the repository: .svc/policy.yml.")
		b.Until("the field with both values", `[...document.querySelectorAll("main li[data-pr] .hold li")].some(e =>
			e.innerText.startsWith("merge.mode from \"ask\" to \"auto\": "))`)
		usable(b, path)
		narrow(t, b)
	}
	clean(t, b)
}

// What failed with the task that it depends on is not offered to be tried again, which the
// server refuses, but leads to what it depends on.
func TestFailedDependentLeadsToItsUpstream(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	var up, down struct {
		TaskID string `json:"task_id"`
	}
	s.into(&up, 202, "POST", "/v1/tasks", `{"repo": "acme/web", "title": "The first", "problem": "Do it."}`)
	s.into(&down, 202, "POST", "/v1/tasks",
		fmt.Sprintf(`{"repo": "acme/web", "title": "The second", "problem": "Do it.", "depends_on": [%q]}`, up.TaskID))
	s.must(200, "POST", "/v1/tasks/"+up.TaskID+"/cancel", `{}`)
	b := s.enter(1440, 900)
	b.See("The second")
	if browser.Eval[bool](b, `[...document.querySelectorAll("main button")].some(e => e.innerText === "Try again")`) {
		t.Error("Home offers to try it again")
	}
	b.Button("See what it depends on")
	heads(b, "The second")
	b.See("file this one anew")
	b.Until("what it depends on", `[...document.querySelectorAll("main a")].some(e => e.innerText.includes("The first"))`)
	clean(t, b)
}

// A double click decides about one pull request: the card that takes the place of the first
// is not meant.
func TestDoubleClickDecidesOnce(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{
		"say": `echo "$(date +%s%N)" > said-$(cat /proc/sys/kernel/random/uuid).txt; git add -A; git commit -qm 'Say it'; echo Done.`,
	})
	for _, title := range []string{"One", "Two"} {
		s.pull(s.task("say", title))
	}
	b := s.enter(1440, 900)
	b.Go("/ui/approvals")
	cards := `document.querySelectorAll("main li[data-pr]").length`
	b.Until("both", cards+" === 2")
	// A click where the first button was, as the second one of a pair.
	click := func(n int) {
		browser.Eval[any](b, fmt.Sprintf(`document.querySelector("main li[data-pr] button.main").dispatchEvent(new MouseEvent("click", {bubbles: true, detail: %d}))`, n))
	}
	click(1)
	b.Until("one is left", cards+" === 1")
	click(2)
	b.Press("?")
	b.Press("Escape")
	if n := browser.Eval[int](b, cards); n != 1 {
		t.Fatalf("%d questions are left, not 1", n)
	}
	if busy := browser.Eval[bool](b, `document.querySelector("main li[data-pr] button.main").ariaBusy === "true"`); busy {
		t.Error("the second is decided as well")
	}
	click(1)
	b.Until("none is left", cards+" === 0")
	clean(t, b)
}

// What no stream keeps fresh is asked for once, although the stream opens after it.
func TestListIsAskedForOnce(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := y.open(1440, 900)
	b.Before(`window.asked = []; { const real = fetch; window.fetch = (...a) => { asked.push(String(a[0])); return real(...a) } }`)
	b.Go("/ui/settings/tokens")
	b.Until("the rows", `asked.some(a => a.includes("/v1/tokens")) && document.querySelector("main li, main .empty:not([aria-busy])")`)
	b.Until("live", `document.querySelector(".link.live")`)
	b.Press("g", "t")
	b.See("No task")
	if n := browser.Eval[int](b, `asked.filter(a => a.includes("/v1/tokens")).length`); n != 1 {
		t.Errorf("the tokens were asked for %d times: %s", n, browser.Eval[string](b, `asked.join(" ")`))
	}
}

// Whoever may not save a form cannot fill it in, and reads what is lacking.
func TestFormOfAnother(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	bob := s.viewer(1440, 900)
	bob.Go("/ui/settings/members")
	bob.See("Needs the scope write:members.")
	bob.Until("its fields are shut", `document.querySelector("main form input").matches(":disabled")`)
	usable(bob, "a form that one may not send")
	clean(t, bob)
}

// Whoever sets a cap reads first what it does to models without a price.
func TestCapSaysWhatItHolds(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	b := s.enter(1440, 900)
	b.Go("/ui/usage")
	b.See("While there is a budget, a call of a model without a known price is refused, and its task is held.")
	clean(t, b)
}

// From a question one opens the pull request with a key, and goes up to the questions again.
func TestUpToTheQuestions(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"say": `echo "$(date)" > said.txt; git add -A; git commit -qm 'Say it'; echo Done.`})
	s.pull(s.task("say", "Say it"))
	b := s.enter(1440, 900)
	for path, name := range map[string]string{"/ui/approvals": "Approvals", "/ui/": "Home"} {
		b.Go(path)
		b.Until("the question", `document.querySelector("main li[data-pr]")`)
		browser.Eval[any](b, `document.querySelector("main li[data-pr]").focus()`)
		b.Press("Enter")
		heads(b, "Say it")
		b.Press("u")
		heads(b, name)
	}
	clean(t, b)
}

// Who may only read asks for nothing that they may not read, wherever they go, also when the
// answer to who they are comes late.
func TestViewerAsksForWhatTheyMayRead(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"worker": worker})
	task := s.task("worker", "Fix the year")
	b := s.viewer(1440, 900)
	b.Before(`window.refused = []; { const real = fetch; window.fetch = async (...a) => {
		const r = await real(...a);
		if (String(a[0]) === "/v1/me") {
			await new Promise(go => setTimeout(go, 250));
			setTimeout(() => { window.told = true });
		}
		if (r.status === 403) refused.push(String(a[0]));
		return r;
	} }`)
	for _, path := range addresses(t) {
		at := example(path, task)
		b.Go(at)
		b.Until("the page "+at, `document.querySelector("#app main h1")?.innerText && !document.querySelector("[aria-busy=true]") && window.told`)
		if got := browser.Eval[string](b, `refused.join(" ")`); got != "" {
			t.Errorf("%s asks for %s", at, got)
		}
	}
}
