//go:build !race

package dashboard_test

import (
	"fmt"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/seed"
)

// cardCount is how many cards wait on Home.
const cardCount = `document.querySelectorAll("#waits ~ ul.cards > li[data-id]").length`

// held seeds tasks that wait for a person, and answers their ids.
func (s *shop) held(titles ...string) (ids []string) {
	s.T.Helper()
	var repos struct{ Data []struct{ ID string } }
	s.into(&repos, 200, "GET", "/v1/repos", "")
	s.Write(s.Account, func(tx *db.Tx) error {
		for i, title := range titles {
			ids = append(ids, id.New())
			if err := seed.Add(tx, seed.Task{ID: ids[i], Account: s.Account, Repo: repos.Data[0].ID, Title: title, Status: "held",
				Failure: "agent_error", Why: "It ended in the middle."}); err != nil {
				return err
			}
		}
		return nil
	})
	return ids
}

// Whoever writes a note keeps their place when somebody else decides: the next card does
// not take their letters for decisions.
func TestWriterIsNotInterrupted(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	note := id.New()
	s.Write(s.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Escalation{
			ID: note, Account: s.Account, Title: "Who decides?", Created: time.Now().Add(-2 * time.Hour).UnixMicro(),
		})
	})
	held := s.held("Cannot go on")[0]
	b := s.enter(1440, 900)
	b.Complaints()
	is(b, waits, "2")
	is(b, cardCount, "2")
	browser.Eval[any](b, `[...document.querySelectorAll("li[data-id]")].find(e => e.querySelector("strong").innerText === "Who decides?").focus()`)
	is(b, atCard, "Who decides?")
	b.Press("a")
	b.Until("its field", `document.activeElement?.name === "note"`)
	b.Type("We")
	s.must(200, "POST", "/v1/escalations/"+note+"/resolve", `{}`)
	b.See("What you write about was decided elsewhere.")
	b.Type(" shall")
	b.Until("the field still has the text", `document.activeElement?.name === "note" && document.activeElement.value === "We shall"`)
	usable(b, "a card that somebody types into")
	var task struct{ Status string }
	if s.into(&task, 200, "GET", "/v1/tasks/"+held, ""); task.Status != "held" {
		t.Errorf("the other card was decided: the task is %s", task.Status)
	}
	browser.Eval[any](b, `document.activeElement.blur()`)
	b.Gone("What you write about was decided elsewhere.")
	is(b, cardCount, "1")
	clean(t, b)
}

// A key that is held, or pressed twice, decides about one card.
func TestHeldKeyDecidesOnce(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	s.held("One", "Two", "Three")
	b := s.enter(1440, 900)
	is(b, waits, "3")
	// presses an "a" every 30 ms, by the clock of the page, until some time after a card has left.
	hold := func(repeats bool) {
		browser.Eval[any](b, fmt.Sprintf(`(() => {
			const cards = () => document.querySelectorAll("#waits ~ ul.cards > li[data-id]").length, had = cards();
			let left = 0, times = 0, clock = performance.now();
			performance.now = () => clock;
			window.over = false;
			const tick = setInterval(() => {
				clock += 30;
				document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "a", bubbles: true, repeat: %t}));
				if (cards() < had) left++;
				if (left ? left > 12 : %[1]t && ++times > 20) { clearInterval(tick); delete performance.now; window.over = true; }
			}, 30);
		})()`, repeats))
		b.Until("the key is up", `window.over`)
	}
	is(b, cardCount, "3")
	b.Press("j")
	hold(true)
	is(b, waits, "3")
	hold(false)
	is(b, waits, "2")
	if n := browser.Eval[int](b, `document.querySelectorAll("#waits ~ ul.cards > li[data-id] button[aria-busy=true]").length`); n != 0 {
		t.Errorf("%d more are decided", n)
	}
	b.Press("j", "k", "a") // meant for that one
	is(b, waits, "1")
	clean(t, b)
}

// A page that cannot ask who looks asks again, and comes to life.
func TestFirstAnswerIsRefused(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := y.open(1440, 900)
	b.Before(`{ const real = fetch; let left = 2; window.fetch = (...a) => String(a[0]).startsWith("/v1/me") && left-- > 0
		? Promise.resolve(new Response(JSON.stringify({status: 503, detail: "Not now."}), {status: 503})) : real(...a) }`)
	b.Go("/ui/tasks")
	b.Until("live", `document.querySelector(".link.live")`)
	b.Until("who looks", `document.querySelector("nav").innerText.includes("Sign out")`)
}

// Whom the server refuses to say who they are is told so, and gets in once it does.
func TestWhoLooksIsRefused(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := y.open(1440, 900)
	b.Before(`{ const real = fetch; window.fetch = (...a) => String(a[0]).startsWith("/v1/me") && !window.letIn
		? Promise.resolve(new Response(JSON.stringify({status: 403, detail: "You are in no organisation."}), {status: 403})) : real(...a) }`)
	b.Go("/ui/tasks")
	b.See("You are in no organisation.")
	heads(b, "Not for you")
	browser.Eval[any](b, `window.letIn = true`)
	heads(b, "Tasks")
	b.Until("who looks", `document.querySelector("nav").innerText.includes("Sign out")`)
}

// Enter that comes before anything was found is for what was typed.
func TestPaletteWaitsForWhatWasTyped(t *testing.T) {
	t.Parallel()
	_, b := begin(t)
	visit(b, "/ui/tasks", "Tasks")
	b.Press("Ctrl+k")
	b.Until("what can be done", `document.querySelectorAll(".palette li").length > 3`)
	browser.Eval[any](b, `(async e => {
		e.value = "usage";
		e.dispatchEvent(new Event("input", {bubbles: true}));
		await new Promise(go => requestAnimationFrame(go)); // the letters are drawn, and nothing is asked yet
		e.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
	})(document.querySelector(".palette input"))`)
	heads(b, "Usage and budgets")
}

// Who has gone to a command of the palette keeps it when others are found later.
func TestPaletteKeepsTheMark(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, nil)
	s.held("Greet everyone")
	b := s.enter(1440, 900)
	b.Before(`{ const real = fetch; window.fetch = async (...a) => { if (/\/v1\/tasks\?.*q=greet/.test(String(a[0]))) await new Promise(go => { window.letGo = go }); return real(...a) } }`)
	b.Go("/ui/prs")
	heads(b, "Pull requests")
	b.Until("live", `document.querySelector(".link.live")`)
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open]")`)
	b.Type("greet")
	b.Until("the question is under way", `window.letGo`)
	b.Until("a command", `document.querySelectorAll(".palette li").length > 0`)
	b.Press("ArrowDown", "ArrowUp")
	marked := `document.querySelector(".palette li[aria-selected=true]")?.innerText`
	was := browser.Eval[string](b, marked)
	browser.Eval[any](b, `(letGo(), null)`)
	b.Until("the task is found", `[...document.querySelectorAll(".palette li")].some(e => e.innerText.startsWith("Greet everyone"))`)
	is(b, marked, was)
	clean(t, b)
}
