//go:build !race

package dashboard_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
)

// lax is a repository whose reviews find something, and whose check prints something.
var lax = map[string]string{
	"README.md": "# Lax\n",
	".svc/policy.yml": "{version: 1, merge: {mode: ask}, review: {mode: auto, block: never}, " +
		"checks: {command: \"cat hello.txt; printf '<b data-owned>zz-log</b> %s\\\\n' done\"}}\n",
}

// harmless waits until nothing of a hostile text has become more than text.
func harmless(b *browser.Tab) {
	b.T.Helper()
	if browser.Eval[bool](b, `!!document.querySelector("[data-owned], main img, main script, [href^='javascript:']") || "owned" in window`) {
		b.T.Errorf("hostile text is more than text at %s", browser.Eval[string](b, `location.href`))
	}
}

// reviewed files a task whose pull request has a review with a finding, and a question, and
// returns the id of the pull request.
func (y *yard) reviewed() (pr string) {
	y.T.Helper()
	if err := y.Push("acme/lax", lax); err != nil {
		y.T.Fatal(err)
	}
	y.call("POST", "/v1/billing/keys", `{"provider": "scripted", "label": "tests"}`)
	y.box()
	y.call("POST", "/v1/tasks", `{"repo": "acme/lax", "title": "Greet", "problem": "Say hello."}`)
	patience.Until(y.T, "a question about a reviewed head", func() bool {
		all, _ := y.call("GET", "/v1/prs/pending-approvals", "")["data"].([]any)
		if len(all) == 0 {
			return false
		}
		q, _ := all[0].(map[string]any)
		pr, _ = q["pr_id"].(string)
		review, _ := q["review"].(map[string]any)
		return review["state"] == "reviewed"
	})
	return pr
}

// A review that found something: its rows, the finding as text, the log of the check, what
// the question says of both, and the control that dismisses a finding.
func TestReviewWithAFinding(t *testing.T) {
	t.Parallel()
	y := start(t)
	pr := y.reviewed()
	b := y.open(1440, 900)
	b.Complaints()
	visit(b, "/ui/approvals", "Approvals")
	b.Until("what the card says", `document.querySelector("main .item")?.innerText.replace(/\s+/g, " ").includes("checks passed · reviewed · +1 −0")`)
	content(b)
	visit(b, "/ui/prs", "Pull requests")
	b.Resize(1700, 900) // in less room they leave, before what became of the review does
	b.Until("its lines", `document.querySelector("#prs .pm")?.innerText === "+1 −0"`)
	b.Resize(1440, 900)
	visit(b, "/ui/repos/acme/lax/reviews", "Reviews of acme/lax")
	b.See("Greet")
	content(b)

	b.Go("/ui/prs/" + pr + "?tab=review")
	b.See("It says <b data-owned>you</b> to all.")
	b.See("‹U+202E›")
	b.See("hello.txt:1")
	b.See("posted")
	harmless(b)
	shots(b, "pr-review")
	b.Button("Dismiss")
	b.Fill("Reason", "It is meant so.")
	b.Press("Enter")
	b.See("Dismissed.")
	b.Until("it is dismissed", `document.querySelector(".finding")?.innerText.includes("dismissed")`)

	b.Go("/ui/prs/" + pr + "?tab=checks")
	b.Until("its check", `document.querySelector("#checks [role=row]")?.innerText.includes("passed")`)
	b.Press("j", "Enter")
	b.See("<b data-owned>zz-log</b> done")
	b.See("hello")
	harmless(b)
	shots(b, "ci-log")
	content(b)
}

// What scouts found in two repositories, claims that both make once.
func TestSurvey(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	if err := y.Push("acme/api", map[string]string{"README.md": "# API\n"}); err != nil {
		t.Fatal(err)
	}
	y.box()
	var made struct {
		ID string `json:"fanout_id"`
	}
	patience.Until(y.T, "a box that takes scouts", func() bool {
		resp, text := y.Send("POST", "/v1/plans", y.Owner,
			`{"repos": ["acme/web", "acme/api"], "ask": "Survey the greeting. <b data-owned>zz</b>", "return_context": true}`)
		return resp.StatusCode == http.StatusAccepted && json.Unmarshal(text, &made) == nil
	})
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/plans/fanouts/" + made.ID)
	b.Until("all scouts are back", `document.querySelector("main h1 ~ .status")?.innerText === "done"`)
	b.See("The greeting is <script>owned=1</script> written out")
	b.See("acme/web, acme/api")
	b.See("acme/api:README.md:1")
	b.See("It greets <b data-owned>by hand</b>.")
	harmless(b)
	shots(b, "survey")
	content(b)
}

// A merge queue at work: the batch that is tried, its members, and the way to each.
func TestMergeQueueAtWork(t *testing.T) {
	t.Parallel()
	y := start(t)
	if err := y.Push("acme/lane", map[string]string{
		"README.md": "# Lane\n",
		".svc/policy.yml": "{version: 1, merge: {mode: ask, queue: batch, batch: 2}, review: {mode: off}, " +
			// Only what is tried together has both files.
			"checks: {command: \"if [ -e hello.txt ] && [ -e colour.txt ]; then sleep 600; fi\"}}\n",
	}); err != nil {
		t.Fatal(err)
	}
	y.call("POST", "/v1/billing/keys", `{"provider": "scripted", "label": "tests"}`)
	y.box()
	y.call("POST", "/v1/tasks", `{"repo": "acme/lane", "title": "Greet", "problem": "Say hello."}`)
	y.call("POST", "/v1/tasks", `{"repo": "acme/lane", "title": "Paint", "problem": "Blue, as ever."}`)
	b := y.open(1440, 900)
	b.Complaints()
	visit(b, "/ui/approvals", "Approvals")
	for _, title := range []string{"Greet", "Paint"} {
		card := `[...document.querySelectorAll("main .item")].find(e => e.innerText.includes("Merge: ` + title + `"))`
		b.Until("the question about "+title, `(`+card+`)?.querySelector(".pm")`)
		browser.Eval[any](b, `(`+card+`).querySelector(".acts .main").click()`)
		b.Until("it is answered", `!(`+card+`)`)
	}
	patience.Until(y.T, "both changes are tried together", func() bool {
		var q struct {
			Batches []struct{ Members []struct{} }
		}
		var merged struct{ Data []struct{} }
		_, text := y.Send("GET", "/v1/repos/acme/lane/merge-queue", y.Owner, "")
		_, prs := y.Send("GET", "/v1/prs?filter=state:merged", y.Owner, "")
		if json.Unmarshal(text, &q) != nil || json.Unmarshal(prs, &merged) != nil || len(q.Batches) != 1 {
			return false
		}
		return len(q.Batches[0].Members)+len(merged.Data) == 2
	})
	visit(b, "/ui/repos/acme/lane/merge-queue", "Merge queue of acme/lane")
	b.Until("what is tried with both changes", `document.querySelector("main table a[href^='/ui/prs/']")`)
	b.See("Batch into main")
	shots(b, "queue-at-work")
	b.Click("main table a[href^='/ui/prs/']")
	b.See("Merge queue")
	content(b)
}
