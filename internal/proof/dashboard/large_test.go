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

// answers holds that a page answers each of some keys: something of it changes, scrolls or
// takes the focus. How long that takes is no matter of a test.
func answers(b *browser.Tab, keys ...string) {
	b.T.Helper()
	for _, k := range keys {
		browser.Eval[any](b, `(() => {
			window.answered = false;
			const yes = () => { window.answered = true };
			addEventListener("keydown", () => {
				new MutationObserver(yes).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
				addEventListener("scroll", yes, true);
				addEventListener("focusin", yes, true);
			}, {capture: true, once: true});
		})()`)
		b.Press(k)
		b.Until("the page answers "+k, `window.answered`)
	}
}

// few fails the test if a page draws more elements than a window of it needs.
func few(b *browser.Tab, what, selector string, most int) {
	b.T.Helper()
	n := browser.Eval[int](b, `document.querySelectorAll(`+quoted(selector)+`).length`)
	b.T.(*testing.T).Logf("%s: %d elements are drawn (limit %d)", what, n, most)
	if n > most || n == 0 {
		b.T.Errorf("%s: %d elements are drawn, %d are allowed", what, n, most)
	}
}

// heavy changes 100,000 lines of a file and 2,000 files, and prints a line of a megabyte.
const heavy = `seq 100001 150000 > big.txt
mkdir -p many
seq 1 2000 | while read i; do echo "$i" > "many/file-$i.txt"; done
git add -A
git commit -qm "Change much"
head -c 1000000 /dev/zero | tr '\0' 'x'
echo ' zz-end-of-line'
echo 'Much is changed.' > "$YARDMASTER_REPORT"
`

// What agents make can be very large. Its pages answer a key at once, draw a window of it,
// and lose nothing.
func TestVeryLargeWork(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"heavy": heavy})
	var old strings.Builder
	for i := range 50000 {
		fmt.Fprintln(&old, i+1)
	}
	files := map[string]string{"big.txt": old.String(), ".heavy.sh": heavy, ".svc/policy.yml": asksPolicy}
	if err := s.Push("acme/large", files); err != nil {
		t.Fatal(err)
	}
	var filed struct {
		TaskID string `json:"task_id"`
	}
	s.into(&filed, 202, "POST", "/v1/tasks", `{"repo": "acme/large", "title": "Change much", "problem": "All of it.", "template": "heavy"}`)
	pr := s.pull(filed.TaskID)
	b := s.enter(1440, 900)

	b.Go("/ui/tasks/" + filed.TaskID)
	b.Until("the transcript", `document.querySelectorAll("#transcript .l").length > 10`)
	answers(b, "G", "f")
	few(b, "the transcript", "#transcript .l", 120)
	browser.Eval[any](b, `document.querySelector(".logbox input[type=search]").focus()`)
	b.Type("zz-end-of-line")
	b.See("1 found")
	b.Until("the end of the line is shown", `[...document.querySelectorAll("#transcript .on")].some(e => e.innerText.includes("zz-end-of-line"))`)

	b.Go("/ui/prs/" + pr)
	b.See("0 of 2001 viewed")
	b.See("2001 files, +52000 −50000")
	few(b, "2,001 files", ".changes .l, .changes .dl", 150)
	few(b, "the tree of 2,001 files", ".tree .leaf", 60)
	b.Click(".changes .fileline button[aria-expanded=false]")
	b.Until("100,000 changed lines of a file", `document.querySelector("#diff").innerText.includes("@@ -1,50000")`)
	answers(b, "n", "p")
	few(b, "100,000 changed lines", ".changes .l, .changes .dl", 150)
	b.Until("the last of them", `(e => { e.scrollTop = 49990 * 20; return /50000\s*-\s*50000\s+50000\s*\+\s*150000/.test(e.innerText) })(document.querySelector("#diff"))`)
	answers(b, "v", "v")
	b.Button("Fold all")
	b.Button("Open all")
	b.Until("the last line of the last file", `(e => { e.scrollTop = e.scrollHeight; return e.innerText.includes("file-999.txt") && /\+999\b/.test(e.innerText.replace(/\s/g, "")) })(document.querySelector("#diff"))`)
	if n := browser.Eval[int](b, `performance.getEntriesByType("resource").filter(e => /\/diff\?.*path=/.test(e.name)).length`); n > 100 {
		t.Errorf("%d files are asked for, of which a window is seen", n)
	}
	few(b, "2,001 open files", ".changes .l, .changes .dl", 150)
	content(b)
}

// A description of 200 kB of markdown is drawn whole, and the page beside it answers a key
// at once.
func TestVeryLongMarkdown(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	repo, _ := y.call("GET", "/v1/repos/acme/web", "")["id"].(string)
	var body strings.Builder
	items := 0
	for ; body.Len() < 199_000; items++ {
		fmt.Fprintf(&body, "## Part %d\n\nIt is **bold**, `code` and [a link](https://example.com/%d).\n\n| a | b |\n|---|---|\n| %d | x |\n\n", items, items, items)
	}
	body.WriteString("zz-end-of-text\n")
	pr := id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Pull{ID: pr, Account: y.Account, Repo: repo, Title: "Much to say", Body: body.String()})
	})
	b := y.open(1440, 900)
	b.Go("/ui/prs/" + pr + "?tab=description")
	b.Until("the end of the text", `document.querySelector(".md")?.textContent.includes("zz-end-of-text")`)
	if n := browser.Eval[int](b, `document.querySelectorAll(".md a[href^='https://example.com/']").length`); n != items {
		t.Errorf("the text has %d of its %d links", n, items)
	}
	answers(b, "?", "Escape")
	b.Button("raw")
	b.See("zz-end-of-text")
	b.Button("description")
	b.Until("it is drawn again", `document.querySelector(".md")?.textContent.includes("zz-end-of-text")`)
	content(b)
}

// A list of 10,000 rows is scrolled to its end, has all of them, and draws a window.
func TestListOfTenThousand(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	repo, _ := y.call("GET", "/v1/repos/acme/web", "")["id"].(string)
	const n = 10_000
	y.Write(y.Account, func(tx *db.Tx) error {
		for i := range n {
			if err := seed.Add(tx, seed.Task{
				ID: id.New(), Account: y.Account, Repo: repo, Status: "completed", Title: fmt.Sprintf("Row %d of many", i),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	b := y.open(1440, 900)
	b.Go("/ui/tasks")
	b.Until("rows", `document.querySelector("#tasks [role=row]")`)
	until := `document.querySelector("#tasks").getAttribute("aria-rowcount") === "10000"`
	b.Until("all rows", `(e => { e.scrollTop = e.scrollHeight; return `+until+` })(document.querySelector("#tasks"))`)
	few(b, "the list", "#tasks [role=row]", 60)
	b.Press("End")
	b.See("Row 0 of many")
	answers(b, "k", "j")
	seen := map[string]bool{}
	// In parts: each has its own patience.
	const step = 600
	height := browser.Eval[int](b, `document.querySelector("#tasks").scrollHeight`)
	for from := 0; from <= height; from += 40 * step {
		for _, row := range browser.Eval[[]string](b, fmt.Sprintf(`(async () => {
			const grid = document.querySelector("#tasks"), seen = new Set();
			for (let y = %d; y < %d && y <= grid.scrollHeight; y += %d) {
				grid.scrollTop = y;
				grid.dispatchEvent(new Event("scroll")); // a busy browser takes its time over telling of it
				await new Promise(done => setTimeout(done));
				for (const m of grid.innerText.matchAll(/Row \d+ of many/g)) seen.add(m[0]);
			}
			return [...seen];
		})()`, from, from+40*step, step)) {
			seen[row] = true
		}
	}
	if len(seen) != n {
		t.Errorf("the list shows %d of %d rows", len(seen), n)
	}
}

// A plan of 2,000 groups: the page is walked with keys, draws the groups that are seen,
// and has each of them.
func TestPlanOfTwoThousand(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	filed := s.plan()
	b := s.enter(1440, 900)
	// The server takes 500 groups at once: the answer about this plan is made longer.
	b.Before(`(() => { const ask = fetch; window.fetch = async (...a) => {
		const r = await ask(...a);
		if (!/\/v1\/plans\/[0-9a-f-]{36}$/.test(new URL(a[0], location.href).pathname)) return r;
		const plan = await r.json(), one = plan.groups[0];
		plan.groups = Array.from({length: 2000}, (_, i) => ({...one, id: "g" + i, title: "Group " + i, slug: "g" + i,
			upstream: i < 20 ? [] : [{group_id: "g" + (i - 20), kind: i % 3 ? "code" : "ordering_only"}]}));
		return new Response(JSON.stringify(plan), {status: r.status, headers: r.headers});
	} })()`)
	b.Go("/ui/plans/" + filed)
	b.See("Group 0")
	browser.Eval[any](b, `document.querySelector(".dag .node").focus()`)
	answers(b, "ArrowRight", "ArrowLeft")
	few(b, "the drawing", ".dag .node, .dag path", 400)
	few(b, "the table", "main table tr", 220)
	for range 99 {
		b.Press("ArrowRight")
	}
	b.Until("the last group has the focus", `document.activeElement?.innerText.split("\n")[0].trim() === "Group 1980"`)
	b.Press("Enter")
	b.Until("its row", `document.getElementById("g-g1980")?.getBoundingClientRect().top < innerHeight`)
	b.Until("its row has the focus", `document.activeElement?.closest("tr")?.id === "g-g1980"`)
	b.Button("Show all 2000 groups")
	b.Until("all of them", `document.querySelectorAll("main table tbody tr").length === 2000`)
	content(b)
}
