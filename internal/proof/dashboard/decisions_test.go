//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

const asksPolicy = "{version: 1, merge: {mode: ask}, review: {mode: off}}\n"

// visit loads a page, waits for its heading and a text of it, looks at it in both themes
// and on a phone, and holds what every page must.
func (s *shop) visit(b, phone *browser.Tab, path, heading, want, shot string) {
	s.t.Helper()
	for _, tab := range []*browser.Tab{b, phone} {
		tab.Go(path)
		tab.Until("the heading "+heading, `(h => h.length === 1 && h[0].innerText.startsWith(`+text(heading)+
			`))(document.querySelectorAll("main h1"))`)
		tab.See(want)
		clean(s.t, tab)
		narrow(s.t, tab)
	}
	shots(b, shot)
	shots(phone, shot+"-phone")
	b.Theme("dark")
	shots(b, shot+"-dark")
	b.Theme("light")
}

func TestAsksAndEscalations(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	var ask struct{ AskID string }
	s.into(&ask, 202, "POST", "/v1/asks", `{"title": `+text("Greet everybody "+hostile)+
		`, "body": `+text("By **name**, please. "+hostile)+`, "repo": "acme/web"}`)
	escalation := id.New()
	s.Write(s.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Escalation{
			ID: escalation, Account: s.Account, Title: "Who decides? " + hostile, Ask: ask.AskID, Created: 1,
		})
	})
	b, phone := s.enter(1440, 900), s.enter(320, 700)
	patience.Until(s.T, "triage hands the ask to a person, for want of a judge", func() bool {
		var a struct{ State string }
		s.into(&a, 200, "GET", "/v1/asks/"+ask.AskID, "")
		return a.State == "escalated"
	})
	s.visit(b, phone, "/ui/asks", "Asks", "Greet everybody", "asks")
	s.visit(b, phone, "/ui/asks/"+ask.AskID, "Greet everybody", "What became of it", "ask")
	b.Button("As data")
	b.See("yardmaster call ask.get askId=" + ask.AskID)
	clean(t, b)
	s.visit(b, phone, "/ui/escalations/"+escalation, "Who decides?", "unclear", "escalation")
	s.visit(b, phone, "/ui/escalations", "Escalations", "Who decides?", "escalations")
	b.Until("the judge is asked again only where none answered", `(all => all.length === 1 && all[0].innerText.includes("judge unavailable"))`+
		`([...document.querySelectorAll("main li.item")].filter(e => e.innerText.includes("Ask the judge again")))`)
	b.Press("j")
	b.Until("the first card has the focus", `document.activeElement?.dataset.id && document.activeElement.dataset.id !== `+text(escalation))
	b.Fill("Note", "We do. <b>Really</b>")
	b.Press("Enter")
	b.Until("the next card has the focus", `document.activeElement?.dataset.id === `+text(escalation))
	b.Fill("Note", "They do.")
	b.Press("Enter")
	b.See("Nothing waits for a decision.")
	b.Button("resolved")
	b.See("We do. <b>Really</b>")
	clean(t, b)

	// What is asked elsewhere comes by the stream.
	b.Go("/ui/asks")
	b.See("Greet everybody")
	s.must(202, "POST", "/v1/asks", `{"title": "A second one", "body": "Now."}`)
	b.See("A second one")
}

// An ask that work covers names the tasks: those that it was linked to, or the one for which
// it was dropped.
func TestAskThatTasksCover(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	var one, two struct {
		TaskID string `json:"task_id"`
	}
	s.into(&one, 202, "POST", "/v1/tasks", `{"repo": "acme/web", "title": "The first of them", "problem": "Do it."}`)
	s.into(&two, 202, "POST", "/v1/tasks", `{"repo": "acme/web", "title": "The other one", "problem": "Do it."}`)
	b := s.enter(1440, 900)
	for _, verdict := range []string{
		`{"kind":"cross_linked","reason":"r","task_ids":["` + one.TaskID + `","` + two.TaskID + `"]}`,
		`{"kind":"dropped","reason":"r","task_ids":[],"covering_task_id":"` + two.TaskID + `"}`,
	} {
		askID := id.New()
		s.Write(s.Account, func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Ask{ID: askID, Account: s.Account}); err != nil {
				return err
			}
			_, err := setVerdict.Exec(tx, askID, verdict)
			return err
		})
		b.Go("/ui/asks/" + askID)
		b.See("The other one")
		clean(t, b)
	}
}

var setVerdict = db.S(`UPDATE asks SET verdict = $2 WHERE id = $1`)

// unread tells whether so many notifications of the owner are unread.
func (s *shop) unread(want int) func() bool {
	return func() bool {
		var counts struct{ Unread int }
		s.into(&counts, 200, "GET", "/v1/notifications/counts", "")
		return counts.Unread == want
	}
}

// What somebody does to a row of the inbox is not undone by an answer that was asked for
// before, and a second key does the opposite of what is seen.
func TestMarkOutlivesOlderAnswers(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	s.Block(s.task("default", "Deploy it"), "missing_credential", map[string]string{"DEPLOY_TOKEN": "env_secret"})
	patience.Until(s.T, "somebody is told", s.unread(1))
	b := s.enter(1440, 900)
	b.Before(`{ // the answer of a list is kept, and calls that mark a row are
		const real = fetch; window.kept = {}; window.fetchOf = real;
		const keep = (name, answer) => new Promise(go => { kept[name] = () => go(answer) });
		window.fetch = async (url, init) => {
			if (String(url).startsWith("/v1/notifications?") && String(url).includes("unread")) {
				const text = (await (await real(url, init)).text()).replace("A run needs you", "It was so");
				return keep("list", new Response(text, {headers: {"Content-Type": "application/json"}}));
			}
			if (init?.method !== "POST") return real(url, init);
			const name = String(url).split("/").pop();
			await keep(name);
			const answer = await real(url, init);
			setTimeout(() => requestAnimationFrame(() => { window.shown = name })); // it has been taken in by then
			return answer;
		} }`)
	b.Go("/ui/notifications")
	b.Until("a row", `document.querySelector("#inbox .unread")`)
	b.Until("live", `document.querySelector(".link.live")`)
	b.Button("unread") // shows the rows that are known until the answer comes
	b.Until("the answer is under way", `kept.list && document.querySelector("#inbox .unread")`)
	b.Press("m")
	b.Until("it is read", `kept.read && !document.querySelector("#inbox .unread")`)
	browser.Eval[any](b, `(kept.list(), null)`)
	b.Until("the older answer is taken in", `document.querySelector("#inbox .row").innerText.includes("It was so")`)
	marked := func(want bool) {
		t.Helper()
		if browser.Eval[bool](b, `!!document.querySelector("#inbox .unread")`) != want {
			t.Fatalf("it is shown as unread: %v, want %v", !want, want)
		}
	}
	marked(false)
	b.Press("m")
	b.Until("it is unread", `kept.unread && document.querySelector("#inbox .unread")`)
	browser.Eval[any](b, `(kept.read(), null)`)
	b.Until("the first answer is taken in", `window.shown === "read"`)
	marked(true)
	patience.Until(s.T, "the server knows that it was read", s.unread(0))
	browser.Eval[any](b, `(kept.unread(), null)`)
	b.Until("the second answer is taken in", `window.shown === "unread"`)
	marked(true)
	patience.Until(s.T, "the server knows that it is not", s.unread(1))

	// What the server refuses is shown as it was.
	browser.Eval[any](b, `{ window.fetch = (url, init) => init?.method === "POST"
		? Promise.resolve(new Response(JSON.stringify({status: 403, detail: "Not you."}), {status: 403})) : fetchOf(url, init) }`)
	b.Press("m")
	b.See("Not you.")
	marked(true)
}

func TestBlockersAndNotifications(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	var filed struct {
		TaskID string `json:"task_id"`
	}
	s.into(&filed, 202, "POST", "/v1/tasks", `{"repo": "acme/web", "title": "Deploy it", "problem": "It is not there."}`)
	s.Block(filed.TaskID, "missing_credential", map[string]string{"DEPLOY_TOKEN": "env_secret"})
	var all struct{ Data []struct{ ID string } }
	s.into(&all, 200, "GET", "/v1/blockers?open=true", "")
	if len(all.Data) != 1 {
		t.Fatalf("%d blockers", len(all.Data))
	}
	b, phone := s.enter(1440, 900), s.enter(320, 700)
	s.visit(b, phone, "/ui/blockers/"+all.Data[0].ID, "Blocker: missing credential", "How do I get <b>in</b>?", "blocker")
	s.visit(b, phone, "/ui/blockers", "Blockers", "Written by a program", "blockers")

	patience.Until(s.T, "somebody is told", func() bool {
		var counts struct{ Unread int }
		s.into(&counts, 200, "GET", "/v1/notifications/counts", "")
		return counts.Unread > 0
	})
	s.visit(b, phone, "/ui/notifications", "Inbox", "blocker", "notifications")
	// The buttons of a row are within it, on a phone and where rows are compact.
	inside := func(tab *browser.Tab, where string) {
		t.Helper()
		tab.Until("a row of the inbox", `document.querySelector("#inbox .row")`)
		if wrong := browser.Eval[[]string](tab, `[...document.querySelectorAll("#inbox .row button")].filter(e => e.checkVisibility()).filter(e => {
			const a = e.getBoundingClientRect(), r = e.closest(".row").getBoundingClientRect(), s = e.closest("[role=gridcell]").getBoundingClientRect();
			return a.top < r.top + 2 || a.bottom > r.bottom - 2 || a.height < 24 || a.right > s.right || a.top < s.top || a.bottom > s.bottom;
		}).map(e => e.innerText + " " + JSON.stringify(e.getBoundingClientRect()))`); len(wrong) > 0 {
			t.Errorf("%s: buttons do not fit their row: %s", where, wrong)
		}
	}
	inside(b, "a row")
	inside(phone, "a row of a phone")
	phone.Until("a row of a phone has its age and what archives it", `[...document.querySelectorAll("#inbox .row time, #inbox .row button")].filter(e => e.checkVisibility()).map(e => e.tagName + e.innerText).join().match(/TIME.*,BUTTONArchive$/)`)
	if browser.Eval[bool](phone, `[...document.querySelectorAll("main kbd")].some(e => e.checkVisibility())`) {
		t.Error("a phone tells of keys")
	}
	b.Go("/ui/settings")
	b.Choose("rows", "compact")
	b.Press("g", "n")
	inside(b, "a compact row")
	shots(b, "notifications-compact")
	b.Go("/ui/settings")
	b.See("Single letters do something; ? says what")
	b.Choose("rows", "roomy")
	b.Go("/ui/notifications")
	b.Until("a row", `document.querySelector("#inbox .unread")`)
	b.Press("j", "k", "m")
	b.Until("it is read", `!document.querySelector("#inbox .unread")`)
	patience.Until(s.T, "the server knows that it is read", s.unread(0))
	b.Press("m")
	b.Until("it is unread", `document.querySelector("#inbox .unread")`)
	patience.Until(s.T, "the server knows that it is not", s.unread(1))
	b.Press("e")
	b.See("Archived.")
	b.Button("archived")
	b.Until("it is among what is archived", `document.querySelector("#inbox [role=row]")`)
	clean(t, b)

	b.Go("/ui/blockers")
	b.See("Written by a program")
	b.Fill("DEPLOY_TOKEN", "a-secret-of-ours")
	b.Press("Enter")
	b.See("No agent waits for an answer.")
	b.Until("the secret is nowhere on the page", `!document.documentElement.outerHTML.includes("a-secret-of-ours")`)
	phone.Go("/ui/blockers?show=all")
	phone.See("submitted")
	// What is settled asks for nobody, whether it was read or not.
	var told struct{ Data []struct{ ID string } }
	s.into(&told, 200, "GET", "/v1/notifications?filter=state:archived", "")
	s.must(200, "POST", "/v1/notifications/"+told.Data[0].ID+"/unread", "")
	for _, tab := range []*browser.Tab{b, phone} {
		tab.Go("/ui/notifications")
		tab.Until("it is over", `/^over .+ ago/.test(document.querySelector("#inbox .row")?.lastChild.innerText)`)
		tab.Until("and not bold", `!document.querySelector("#inbox .unread") && document.querySelectorAll("#inbox .row time").length === 1`)
		narrow(t, tab)
	}
	inside(phone, "a settled row of a phone")
	shots(b, "notifications-settled")
	shots(phone, "notifications-settled-phone")
	clean(t, b)
}

func TestDigests(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	digest := id.New()
	s.Write(s.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Digest{ID: digest, Account: s.Account, Period: "2026-01-02"})
	})
	b, phone := s.enter(1440, 900), s.enter(320, 700)
	s.visit(b, phone, "/ui/digests", "Digests", "Nothing happened.", "digests")
	b.Button("2026-01-02")
	b.See("Waits for somebody")
	s.visit(b, phone, "/ui/digests/"+digest, "Digest of the day 2026-01-02", "Nothing happened.", "digest")
}

const planned = `{"repo": "acme/web", "slug": "hello", "dry_run": true, "documents": {
 "overview.md": "# Say hello <script>1</script>\n\nNobody is **greeted**.\n",
 "01-add-a-name.md": "---\nfiles: [name.txt]\n---\n# Add a name\n\nOne line.\n",
 "02-use-it.md": "---\ndepends_on: [01-add-a-name]\n---\n# Use the name\n\nIn the README.\n",
 "03-say-so.md": "---\ndepends_on: [02-use-it, {unit: 01-add-a-name, kind: ordering_only}]\n---\n# Say so\n\nIn a changelog.\n"},
 "scouts": [{"citations": ["README.md:1"]}]}`

// plan files a plan of four groups, which is held, and returns its id.
func (s *shop) plan() string {
	s.t.Helper()
	s.must(200, "PUT", "/v1/plans/file-switch", `{"enabled": true}`)
	var filed struct {
		PlanID string `json:"plan_id"`
	}
	s.into(&filed, 202, "POST", "/v1/plans/file", planned)
	return filed.PlanID
}

func TestPlans(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	filed := s.plan()
	var plan struct{ Title string }
	s.into(&plan, 200, "GET", "/v1/plans/"+filed, "")
	b, phone := s.enter(1440, 900), s.enter(320, 700)
	s.visit(b, phone, "/ui/plans", "Plans", plan.Title, "plans")
	b.Button(plan.Title)
	b.See("It waits for approval.")
	b.Until("the drawing", `document.querySelectorAll(".dag .node").length === 4 && document.querySelectorAll(".dag path.order").length >= 1`)
	s.visit(b, phone, "/ui/plans/"+filed, plan.Title, "It waits for approval.", "plan")
	if browser.Eval[bool](phone, `!!document.querySelector(".dag")?.getClientRects().length`) {
		t.Error("a phone shows the drawing instead of the table")
	}
	if browser.Eval[bool](phone, `document.querySelector("main").innerText.includes("Solid: ")`) {
		t.Error("a phone explains the drawing that it does not show")
	}
	if browser.Eval[bool](b, `document.querySelector(".dag").innerText.includes(" of ")`) {
		t.Error("a group without tasks counts them")
	}
	if !browser.Eval[bool](b, `[...document.querySelectorAll("td button.plain")].every(e => getComputedStyle(e).textDecorationLine === "underline" &&
		getComputedStyle(e).color === getComputedStyle(document.querySelector("td a")).color &&
		e.getBoundingClientRect().left === e.parentElement.getBoundingClientRect().left && getComputedStyle(e).paddingLeft === "0px")`) {
		t.Error("what opens the text of a group does not look like a link")
	}
	b.Button("Read")
	b.See("One line.")
	b.Press("Escape")
	b.Gone("One line.")
	browser.Eval[any](b, `document.querySelector(".dag .node").focus()`)
	b.Press("ArrowRight")
	b.Until("what waits for the first has the focus", `document.activeElement?.matches(".node") && document.activeElement.innerText.startsWith("Use the name")`)
	b.Press("ArrowLeft")
	b.Until("what it waits for has the focus", `document.activeElement?.matches(".node") && document.activeElement.innerText.startsWith("Add a name")`)

	b.Button("Use the name") // what it starts is read before it is approved
	b.See("In the README.")
	usable(b, "the text of a group")
	b.Button("Next")
	b.See("In a changelog.")
	b.Gone("In the README.")
	b.Press("Escape")
	b.Gone("In a changelog.")

	b.Button("Approve")
	b.See("Approved.")
	b.Until("tasks in the table", `document.querySelectorAll("table a[href^='/ui/tasks/']").length > 2`)
	b.Button("Unlink")
	b.See("It shall not wait any more for")
	b.Click("dialog input[type=checkbox]:not(:disabled)")
	b.See("After: Use the name.")
	shots(b, "plan-unlink")
	b.Fill("Reason", "They do not meet.")
	b.Press("Enter")
	b.Gone("It shall not wait any more for")
	b.See("Removed.")
	b.Button("Cancel")
	b.See("Cancel the plan, and every task of it that is not over?")
	b.Yes()
	b.Until("the plan is cancelled", `document.querySelector("main h1 ~ .status")?.innerText === "cancelled"`)
	phone.Until("and elsewhere, too", `document.querySelector("main h1 ~ .status")?.innerText === "cancelled"`)
	clean(t, b)
}

func TestPagesOfARepository(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	var repos struct {
		Data []struct{ ID string }
	}
	s.into(&repos, 200, "GET", "/v1/repos", "")
	issue := id.New()
	s.Write(s.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Issue{ID: issue, Account: s.Account, Repo: repos.Data[0].ID, Title: "It fails " + hostile, Number: 7})
	})
	b, phone := s.enter(1440, 900), s.enter(320, 700)
	s.visit(b, phone, "/ui/repos/acme/web/merge-queue", "Merge queue of acme/web", "Nothing waits to be merged.", "queue")
	s.visit(b, phone, "/ui/repos/acme/web/flakes", "Flakes of acme/web", "No failure came and went", "flakes")
	s.visit(b, phone, "/ui/repos/acme/web/reviews", "Reviews of acme/web", "Nothing was reviewed yet.", "reviews")
	s.visit(b, phone, "/ui/repos/acme/web/issues", "Issues of acme/web", "It fails", "issues")
	s.visit(b, phone, "/ui/repos/acme/web/issues/"+issue, "It fails", "Ask a person", "issue")
	b.Fill("Why", "Legal has to say.")
	b.Click("main form button.main")
	b.See("A person is asked.")
	b.Until("the issue names its escalation", `document.querySelector("main a[href^='/ui/escalations/']")`)
	phone.Go("/ui/escalations")
	phone.See("Legal has to say.")
	clean(t, b)
}
