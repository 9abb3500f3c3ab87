//go:build !race

package dashboard_test

import (
	"net/http"
	"testing"

	"yardmaster/internal/proof/browser"
)

// The page of the fleet says what boxes do and which program they run; updates are begun and
// spoken about there, and what was said is there after a reload.
func TestFleet(t *testing.T) {
	t.Parallel()
	y, b := beginAs(t, "v9.9.9")
	y.Box(call[made](y, http.MethodPost, "/v1/runners/enrollments", `{}`).Token)
	visit(b, "/ui/boxes", "Boxes")
	b.See("newest: v9.9.9")
	shoot(b, "boxes-newest")
	b.Button("Use and updates")
	heads(b, "The fleet")
	b.Until("the door of the boxes is marked", `document.querySelector(".side [aria-current=page]")?.innerText.trim() === "Fleet"`)
	b.See("No update was ever begun here.")
	b.See("1 box runs test")
	b.Until("its use", `[...document.querySelectorAll("main tr")].some(e => /bench/.test(e.innerText) && /0 of 2/.test(e.innerText) && /newest: v9.9.9/.test(e.innerText))`)
	b.Until("the program", `[...document.querySelectorAll("main tr")].some(e => /v9\.9\.9\s+the server's own/.test(e.innerText))`)
	both(b, "the fleet")
	shoot(b, "fleet")
	b.Button("Update the boxes")
	b.See("It halts itself when a box does not come up")
	b.Fill("Watch the first box for", "3")
	b.See("is watched for 3 minutes")
	both(b, "the dialog of an update")
	b.Click("dialog form button.main")
	b.See("No box takes part:")
	b.Button("Say something about updates")
	b.Fill("Why", "audited until June")
	b.Button("Say so")
	b.See("Every box takes no updates")
	b.Go("/ui/fleet")
	b.See("Every box takes no updates")
	b.See("audited until June")
	both(b, "what was said of updates")
	b.Button("Take back")
	b.Yes()
	b.See("Nothing is said")
	b.Resize(900, 800)
	shootAt(b, "fleet-900")
	content(b)
}

// under is a rollout under way, as the API answers it.
const under = `{"id": "0199d3a4-5b6c-7d8e-9f01-23456789abcd", "channel": "builtin", "version": "v9.9.9", "state": "rolling", "wave": 2, "waves": 4,
	"soak_until": null, "why": null, "started_by": "system", "created_at": "2026-01-02T03:04:05Z", "changed_at": "2026-01-02T03:04:05Z",
	"ended_at": null, "more_boxes": 0, "runs": {"runs": 12, "failed": 1, "runs_before": 120, "failed_before": 9},
	"counts": {"waits": 2, "told": 1, "good": 3, "failed": 1, "lost": 0, "current": 0, "pinned": 1, "other_channel": 0, "away": 0, "unbuilt": 0, "unreachable": 0, "unable": 0},
	"boxes": [{"id": "0199d3a4-5b6c-7d8e-9f01-23456789abce", "name": "build-3", "wave": 1, "state": "failed", "why": "test_run_failed",
		"from_version": "v9.9.8", "step": "v9.9.9", "says": ""}]}`

// A rollout under way stands on the page of boxes in one line and on that of the fleet with each
// box, in words, and is ended there.
func TestRolloutIsShown(t *testing.T) {
	t.Parallel()
	_, b := begin(t)
	b.Before(`{ const real = fetch, is = ` + under + `; window.fetch = async (...a) => {
		const path = new URL(a[0], location.href).pathname;
		if (path.endsWith("/rollout/cancel")) Object.assign(is, {state: "cancelled", ended_at: "2026-01-02T04:04:05Z"});
		else if (!path.endsWith("/runners/rollout")) return real(...a);
		return new Response(JSON.stringify(path.endsWith("/cancel") ? is : {rollout: is}), {status: 200}) } }`)
	visit(b, "/ui/boxes", "Boxes")
	b.See("wave 2 of 4")
	b.See("3 of 7 of the boxes that take part run it. In all: 3 run it, 1 takes it now, 2 wait for their turn, " +
		"1 went back to the program of before, 1 takes no updates.")
	shoot(b, "boxes-rollout")
	b.Button("See it")
	heads(b, "The fleet")
	b.See("1 of 12 with the new program, 9 of 120 in the week before")
	b.See("went back to the program of before · test run failed")
	if found := browser.Eval[string](b, `document.querySelector(".rollout").innerText.match(/undefined|NaN|[a-z]+_[a-z]+/)?.[0] ?? ""`); found != "" {
		t.Errorf("it says %q", found)
	}
	both(b, "a rollout")
	b.Resize(390, 844)
	b.Until("each cell says what it is", `[...document.querySelectorAll(".rollout td")].map(e => getComputedStyle(e, "::before").content).join() ===
		'none,"Wave: ",none,"Had: ","Was told: "'`)
	b.Resize(1440, 900)
	shoot(b, "fleet-rollout")
	b.Button("Cancel the update")
	b.Yes()
	b.See("It is ended.")
	b.Until("no way to end it twice", `![...document.querySelectorAll("main button")].some(e => e.innerText === "Cancel the update")`)
}
