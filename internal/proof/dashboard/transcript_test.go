//go:build !race

package dashboard_test

import (
	"strings"
	"testing"

	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/patience"
)

// What a person says to a running agent stands in the transcript of its run, with what
// became of it, also once the run is over and the page is opened anew.
func TestMessagesToAnAgent(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.box()
	run := func(title string) (task, run string) {
		task = y.task(title, "Do it.")
		patience.Until(y.T, "it has a run", func() bool {
			run, _ = y.call("GET", "/v1/tasks/"+task, "")["run_id"].(string)
			return run != ""
		})
		return task, run
	}
	_, asks := run("Paint the shed")
	b := y.open(1440, 900)
	b.Go("/ui/runs/" + asks)
	b.See("waits for a person")
	b.Fill("A word to the agent", "Blue, as ever")
	b.Press("Enter")
	line := func(state, text string) string {
		return `[...document.querySelectorAll("#transcript .l.fate")].some(e => e.innerText.includes(` + quoted(state+": "+text) + `) && e.querySelector(".status svg"))`
	}
	b.See("message: Blue, as ever")
	b.Until("it is answered", line("replied", "It is blue now."))
	b.Until("it says so beside the field, too", `document.querySelector("[aria-label=Messages]").innerText.includes("It is blue now.")`)
	b.See("The run is over.")
	b.Go("/ui/runs/" + asks)
	b.See("The run is over.")
	b.See("message: Blue, as ever")
	b.Until("it was answered", line("replied", "It is blue now."))
	usable(b, "a run with a message")
	shots(b, "run-message")

	task, waits := run("Wait until somebody comes")
	b.Go("/ui/runs/" + waits)
	b.See("I wait.")
	b.Fill("A word to the agent", "I am here")
	b.Press("Enter")
	b.See("message: I am here")
	b.Until("it is queued", line("queued", "Held for its next turn."))
	if browser.Eval[bool](b, `document.querySelector("form button.main").disabled`) {
		t.Error("the button waits for what becomes of the message")
	}
	y.call("POST", "/v1/tasks/"+task+"/cancel", `{}`)
	b.Until("it is dropped", line("dropped", "The run ended before it could read it."))
	clean(t, b)
}

// A page that nobody looks at for long reads no more, and goes on after the last event that
// it had. The run and the session are both so; what the run sent can be kept as a file.
func TestTranscriptPauses(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.box()
	task := y.task("Wait until somebody comes", "Do it.")
	b := y.open(1440, 900)
	b.Before(`(() => {
		let hidden = false;
		const timer = window.setTimeout, ask = window.fetch;
		window.asked = [];
		window.setTimeout = (f, ms, ...rest) => timer(f, ms === 30000 ? 0 : ms, ...rest);
		window.fetch = (url, how) => {
			if (/\/events$/.test(url)) window.asked.push(how.headers["Last-Event-ID"] ?? "");
			return ask(url, how);
		};
		Object.defineProperty(document, "hidden", {get: () => hidden});
		window.look = (on) => { hidden = !on; document.dispatchEvent(new Event("visibilitychange")) };
		URL.createObjectURL = (file) => { file.text().then((x) => { window.kept = x }); return "data:," };
	})()`)
	b.Go("/ui/tasks/" + task)
	b.See("I wait.")
	session := ""
	for _, s := range y.call("GET", "/v1/sessions", "")["data"].([]any) {
		if s := s.(map[string]any); s["task_id"] == task {
			session, _ = s["id"].(string)
		}
	}
	for _, at := range []string{"/ui/tasks/" + task, "/ui/sessions/" + session} {
		b.Go(at)
		b.See("I wait.")
		b.Until("the tool is shown", `document.querySelector("#transcript .l.tool")`)
		browser.Eval[any](b, `void look(false)`)
		b.Until(at+" has paused", `document.querySelector(".run .link.paused")`)
		if n := browser.Eval[int](b, "asked.length"); n != 1 {
			t.Errorf("%s has asked %d times before it is seen again", at, n)
		}
		browser.Eval[any](b, `void look(true)`)
		b.Until(at+" goes on", `document.querySelector(".run .link.live")`)
		if asked := browser.Eval[[]string](b, "asked"); len(asked) != 2 || asked[0] != "" || asked[1] == "" {
			t.Errorf("%s asks from the events %q", at, asked)
		}
		browser.Eval[any](b, `void (navigator.clipboard.writeText = async (text) => { window.copied = text })`)
		b.Button("Copy all")
		if text := browser.Eval[string](b, "copied"); strings.Count(text, "I wait.") != 1 {
			t.Errorf("after the pause %s has the transcript\n%s", at, text)
		}
		usable(b, at)
	}
	b.Go("/ui/tasks/" + task)
	b.Until("the tool is shown", `document.querySelector("#transcript .l.tool")`)
	b.Button("Download")
	b.Until("a file", "window.kept")
	kept := strings.Split(strings.TrimSpace(browser.Eval[string](b, "kept")), "\n")
	if len(kept) < 4 || !strings.Contains(kept[0], `"seq":1,`) || !strings.Contains(strings.Join(kept, "\n"), "I wait.") {
		t.Errorf("the file has %d lines: %s", len(kept), kept[0])
	}
	b.Go("/ui/tasks/" + task + "#L3")
	b.Until("the line of the address is marked", `document.querySelector("#transcript .l.on .n")?.innerText === "3"`)
	shots(b, "run")
	clean(t, b)
	y.call("POST", "/v1/tasks/"+task+"/cancel", `{}`)
}

// Of a run or a session that there is none of, nothing is shown but that.
func TestTranscriptThatIsNone(t *testing.T) {
	t.Parallel()
	y := start(t)
	b := y.open(1440, 900)
	for _, path := range []string{"/ui/runs/", "/ui/sessions/"} {
		b.Go(path + "01890000-0000-7000-8000-000000000000")
		b.Until("that there is none", `document.querySelectorAll("main .trouble[role=alert]").length === 1`)
		b.Until("no log and no control of one", `!document.querySelector("main [role=log], main .logbox, main .facts, main section")`)
	}
}
