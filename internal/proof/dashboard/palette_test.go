//go:build !race

package dashboard_test

import (
	"testing"

	"yardmaster/internal/proof/browser"
)

// The palette finds pull requests by their number, with and without the repository, and
// pages by what people call them.
func TestPaletteFinds(t *testing.T) {
	t.Parallel()
	s := open(t, asksPolicy, map[string]string{"say": `echo "$(date)" > said.txt; git add -A; git commit -qm 'Say it'; echo Done.`})
	s.pull(s.task("say", "Say it at last"))
	b := s.enter(1440, 900)
	b.Press("Ctrl+k")
	b.Until("the palette", `document.querySelector("dialog.palette[open]")`)
	for _, c := range []struct{ text, want string }{
		{"#1", "Say it at last\nPull request acme/web#1"},
		{"web#1", "Say it at last\nPull request acme/web#1"},
		{"acme/web#1", "Say it at last\nPull request acme/web#1"},
		{"invite", "Members\nGo to, Settings"},
		{"dark", "You\nGo to, Settings"},
		{"decline", "Approvals\nGo to, Pull requests"},
	} {
		browser.Eval[any](b, `document.querySelector("dialog.palette input").select()`)
		b.Type(c.text)
		b.Until(c.text+" finds it first", `document.querySelector("dialog.palette li")?.innerText === `+text(c.want))
	}
	usable(b, "the palette")
	clean(t, b)
}

// What the palette offered the last time is not what it offers before it has asked: Enter
// would do it.
func TestPaletteForgetsWhatItOffered(t *testing.T) {
	t.Parallel()
	y := start(t)
	y.repo()
	y.task("Only one", "Nothing to do.")
	b := y.open(1440, 900)
	b.Complaints()
	b.Go("/ui/tasks")
	b.See("Only one")
	b.Press(".")
	b.Until("the actions", `document.querySelector("dialog.palette[open] [role=option]")`)
	b.Press("Escape")
	b.Until("the page", `!document.querySelector("dialog[open]")`)
	offered := browser.Eval[int](b, `new Promise(done => {
		const box = document.querySelector("dialog.palette"), open = box.showModal;
		box.showModal = function () {
			open.call(box);
			queueMicrotask(() => queueMicrotask(() => done(box.querySelectorAll("[role=option]").length)));
		};
		dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true}));
	})`)
	if offered != 0 {
		t.Errorf("it offers %d things before it has asked", offered)
	}
	b.Until("what there is now", `document.querySelector("dialog.palette[open] [role=option]")`)
	clean(t, b)
}
