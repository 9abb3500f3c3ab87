//go:build !race

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

const (
	// deck are the titles of what waits, in order.
	deck = `[...document.querySelectorAll("#waits ~ ul.cards > li[data-id] strong")].map(e => e.innerText).join("; ")`
	// waits is the first figure, and amiss the third.
	waits = `document.querySelectorAll(".figures b")[0]?.innerText`
	amiss = `document.querySelectorAll(".figures b")[2]?.innerText`
	// atCard is the title of the card that has the focus.
	atCard = `(document.activeElement?.closest("li[data-id]")?.querySelector("strong")?.innerText ?? document.activeElement?.tagName)`
)

// is waits until an expression has a value.
func is(b *browser.Tab, expression, want string) {
	b.T.Helper()
	b.Until(expression+" is "+want, `String(`+expression+`) === `+text(want))
}

// offers are the actions that the key "." lists.
func offers(b *browser.Tab) string {
	b.T.Helper()
	b.Press(".")
	b.Until("the actions", `document.querySelector("dialog.palette[open] [role=option]")`)
	got := browser.Eval[string](b, `[...document.querySelectorAll(".palette li > span")].map(e => e.innerText).join("; ")`)
	b.Press("Escape")
	b.Until("the page again", `!document.querySelector("dialog[open]")`)
	return got
}

// What waits is one list, what is due first comes first, and one works through it by keys:
// what is done leaves, and the next has the focus. A question that was declined still
// waits.
func TestHomeIsWorkedThrough(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"worker": worker})
	pr := s.pull(s.task("worker", "Fix the year"))
	s.Write(s.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Escalation{
			ID: id.New(), Account: s.Account, Title: "Who decides?", Created: time.Now().Add(-2 * time.Hour).UnixMicro(),
		})
	})
	s.must(202, "POST", "/v1/tasks", `{"repo": "acme/web", "title": "Tidy up", "problem": "Somewhere.", "confidence": 0.2}`)
	b := s.enter(1440, 900)
	b.Complaints()
	b.See("Merge: Fix the year")
	b.Until("three cards", `document.querySelectorAll("li[data-id]").length === 3`)
	titles := strings.Split(browser.Eval[string](b, deck), "; ")
	if titles[0] != "Who decides?" || titles[1] != "Merge: Fix the year" {
		t.Fatalf("in this order: %s", titles)
	}
	last := titles[2]
	is(b, waits, "3")
	b.See("cost –")
	usable(b, "Home with cards")
	if got := offers(b); got != "New" {
		t.Errorf("the page offers %s", got)
	}
	b.Press("j")
	is(b, atCard, "Who decides?")
	b.Press("s")
	b.See("Only a question about a pull request can be skipped.")
	b.Press("a")
	b.Until("its field", `document.activeElement?.name === "note"`)
	b.Type("We do.")
	b.Press("Enter")
	is(b, atCard, "Merge: Fix the year")
	if got := offers(b); !strings.HasPrefix(got, "Skip; Approve ") || strings.Count(got, ";") != 1 {
		t.Errorf("the card offers %s", got)
	}
	b.Press("s")
	b.See("You have not opened what it changes.")
	b.Yes()
	b.See("declined: Fix the year")
	is(b, atCard, last)
	is(b, deck, last+"; Fix the year")
	is(b, waits, "2")
	clean(t, b)
	usable(b, "Home with a question that was declined")
	narrow(t, b)
	b.Press("j")
	is(b, atCard, "Fix the year")
	b.Press("a") // puts the question again
	b.See("Merge: Fix the year")
	b.Gone("declined: Fix the year")
	b.Go("/ui/prs/" + pr)
	b.Until("the question", `document.querySelector("#decision .acts button.main:not(:disabled)")`)
	b.Until("its changes", `document.querySelector(".changes .add")`)
	b.Press("g", "h")
	b.See("Merge: Fix the year")
	b.Press("j", "j", "a") // its changes were opened
	b.Until("it was merged", `document.querySelector("#merged")?.innerText.includes("Fix the year")`)
	b.Until("counted by repository", `[...document.querySelectorAll("#since + table tr")].some(r => /acme.web\s+1\s+1/.test(r.innerText))`)
	is(b, `document.querySelectorAll(".figures b")[4].innerText`, "1")
	if got := browser.Eval[string](b, `document.querySelectorAll(".figures a")[4].hash`); got != "#since" {
		t.Errorf("what was merged is at %s", got)
	}
	is(b, deck, last)
	clean(t, b)
}

// More waits than is shown at first: the figure counts it, it can be shown, and it comes
// up as what is shown is done.
func TestHomeHasAllThatWaits(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("A beginning", "Nothing to do.")
	var ids []string
	y.Write(y.Account, func(tx *db.Tx) error {
		ids = nil
		for i := range 60 {
			ids = append(ids, id.New())
			if err := seed.Add(tx, seed.Escalation{
				ID: ids[i], Account: y.Account, Title: fmt.Sprint("Question ", i),
				Created: time.Now().Add(time.Duration(i-99) * time.Minute).UnixMicro(),
			}); err != nil {
				return err
			}
		}
		return nil
	})
	b := y.open(1440, 900)
	b.See("Question 49")
	is(b, waits, "60")
	is(b, `document.querySelectorAll("li[data-id]").length`, "50")
	is(b, `document.querySelector("li[data-id] strong").innerText`, "Question 0")
	for _, e := range ids[:50] {
		y.call("POST", "/v1/escalations/"+e+"/resolve", `{}`)
	}
	is(b, `document.querySelectorAll("li[data-id]").length`, "10")
	is(b, waits, "10")
	b.See("Question 59")
	y.Write(y.Account, func(tx *db.Tx) error {
		for i := range 45 {
			e := seed.Escalation{ID: id.New(), Account: y.Account, Title: fmt.Sprint("Later ", i), Created: time.Now().UnixMicro()}
			if err := seed.Add(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	b.Go("/ui/")
	is(b, waits, "55")
	is(b, `document.querySelectorAll("li[data-id]").length`, "50")
	b.Button("Show more")
	is(b, `document.querySelectorAll("li[data-id]").length`, "55")
	b.Go("/ui/escalations")
	is(b, `document.querySelector("main .head .num")?.innerText`, "50+")
}

// A new account has its first steps on Home and nothing else. They change under the eyes
// of who looks, open the dialogs they tell of, and do not come back once there is work.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := y.open(1440, 900)
	b.Complaints()
	const steps = `[...document.querySelectorAll("#steps + ol > li")].map(e =>
		e.querySelector(".status").innerText + " " + e.querySelector("strong").innerText).join("; ")`
	is(b, steps, "to do Add a repository; to do Add a model key; to do Connect a box; to do File your first task")
	b.See("yardmaster repo add PATH")
	if browser.Eval[bool](b, `!!document.querySelector(".figures, #waits")`) {
		t.Error("the rest of Home is there as well")
	}
	usable(b, "the first steps")
	for _, c := range []struct{ step, dialog string }{
		{"Add a repository", "Add a repository"}, {"Connect a box", "Add a box"}, {"File your first task", "New"},
	} {
		b.Click(`#steps + ol [aria-label="` + c.step + `"]`)
		b.Until("the dialog of "+c.step, `document.querySelector("dialog[open]")?.innerText.startsWith(`+text(c.dialog)+`)`)
		b.Go("/ui/")
		b.See("First steps")
	}
	y.repo()
	is(b, steps, "done Add a repository; done Add a model key; to do Connect a box; to do File your first task")
	y.task("The very first", "Nothing to do.")
	b.Gone("First steps")
	b.Until("why it waits", `document.querySelector("#stalls")?.innerText.includes("waits for a box, 1 task")`)
	is(b, `document.querySelector("#stalls li a[href^='/ui/tasks/']")?.innerText`, "The very first")
	b.Until("what ends it, in a sentence",
		`/since \d+ (s|min), until a box that serves this account comes online/.test(document.querySelector("#stalls").innerText)`)
	y.box()
	b.Gone("Why it waits")
	b.Go("/ui/")
	b.See("Nothing waits for you.")
	if browser.Eval[bool](b, `!!document.querySelector("#steps")`) {
		t.Error("the first steps are back")
	}
	clean(t, b)
}

// What went wrong is told with its reason and what can be done, and the figure counts what
// is told: an old task that failed today, and not those that failed long ago.
func TestHomeSaysWhatWentWrong(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	repos := call[struct{ Data []struct{ ID string } }](y.Yard, "GET", "/v1/repos", "")
	repo, task := repos.Data[0].ID, id.New()
	hour, days := time.Now().Add(-time.Hour).UnixMicro(), time.Now().Add(-50*time.Hour).UnixMicro()
	y.Write(y.Account, func(tx *db.Tx) error {
		rows := []seed.Row{
			seed.Task{ID: task, Account: y.Account, Repo: repo, Title: "Old and broken", Status: "failed", Finished: &hour,
				Failure: "tests_failed", Why: "Two of them."},
			seed.Webhook{ID: id.New(), Account: y.Account, Name: "chat", Unhealthy: hour},
			seed.Box{ID: id.New(), Account: y.Account}, // was never here
		}
		for range 60 {
			rows = append(rows, seed.Task{
				ID: id.New(), Account: y.Account, Repo: repo, Title: "Long ago", Status: "failed", Finished: &days,
			})
		}
		return seed.Add(tx, rows...)
	})
	box := id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Box{ID: box, Account: y.Account}); err != nil {
			return err
		}
		_, err := seed.SetGone.Exec(tx, box, hour)
		return err
	})
	b := y.open(1440, 900)
	b.Complaints()
	const cards = `[...document.querySelectorAll("#wrong + ul.cards > li strong")].map(e => e.innerText).join("; ")`
	is(b, cards, box+"; chat; Old and broken")
	is(b, amiss, "3")
	if all := browser.Eval[[]string](b, `performance.getEntriesByType("resource").map(e => e.name)
		.filter(url => /\/v1\/runners(\?|$)/.test(url) && !url.includes("presence%3Aoffline"))`); len(all) > 0 {
		t.Errorf("the boxes that are gone are looked for among the first of all: %s", all)
	}
	b.See("It was heard last 1 h ago.")
	b.See("Its receiver has refused every try.")
	b.See("Two of them.")
	usable(b, "what went wrong")
	if got := browser.Eval[string](b, `document.querySelectorAll(".figures a")[2].hash`); got != "#wrong" {
		t.Errorf("what went wrong is at %s", got)
	}
	b.Button("Send again")
	is(b, cards, box+"; Old and broken")
	is(b, amiss, "2")
	b.Button("Try again")
	b.Until("it is queued", `!`+cards+`.includes("Old and broken")`)
	b.Go("/ui/tasks?show=failed&filter=finished:24h")
	b.See("No task fits")
	clean(t, b)
}

// What runs says on which box and what it does, and that it waits for an answer.
func TestHomeSaysWhatRuns(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.box()
	y.task("A long one", "Wait until somebody comes.")
	b := y.open(1440, 900)
	b.Until("its box and what it does", `/on \S+ · .*sleep/.test(document.querySelector("#runs li")?.innerText)`)
	b.Until("its time", `/\d+ (s|min)/.test(document.querySelector("#runs li .acts").innerText)`)
}

// Who may not decide is told the scope, and is not asked whether they are sure.
func TestKeysWithoutTheScope(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"worker": worker})
	s.pull(s.task("worker", "Fix the year"))
	s.Write(s.Account, func(tx *db.Tx) error {
		hash, _, err := people.Password(tx, s.User)
		if err != nil {
			return err
		}
		bob := id.New()
		return seed.Add(tx, seed.User{ID: bob, Login: "bob", Password: hash},
			seed.Member{Account: s.Account, User: bob, Role: string(policy.Viewer)})
	})
	b := browser.Open(t, s.URL, 1440, 900)
	b.SignIn("bob", rig.Password)
	b.Go("/ui/approvals")
	b.See("Merge: Fix the year")
	b.Press("j", "a")
	b.See("Needs the scope write:prs")
	if browser.Eval[bool](b, `!!document.querySelector("dialog[open]")`) {
		t.Error("it is asked about all the same")
	}
}
