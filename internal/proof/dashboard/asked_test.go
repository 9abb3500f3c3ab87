//go:build !race

package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/rig"
	"yardmaster/internal/proof/seed"
)

// counted has a page count in asked how often it asks for each path, and in whole for each
// address with what it asks of it.
const counted = `(() => { window.asked = {}; window.whole = {}; const ask = window.fetch; window.fetch = (url, how) => {
	const path = new URL(url, location.href).pathname;
	asked[path] = (asked[path] ?? 0) + 1;
	whole[url] = (whole[url] ?? 0) + 1;
	return ask(url, how);
} })()`

// The stream tells at first what is there. A page does not take that for changes: it asks
// for its counts once, and once more after a gap.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	c := newCable(t)
	url := "http://127.0.0.1:" + c.port()
	y := start(t, "--base-url", url)
	y.repo()
	repo := y.repoID()
	y.Block(y.task("Needs a key", "Nothing to do."), "missing_credential", map[string]string{"KEY": "env_secret"})
	task, pull := id.New(), id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.Task{ID: task, Account: y.Account, Repo: repo, Title: "Alpha", Status: "completed"},
			seed.Pull{ID: pull, Account: y.Account, Repo: repo, Title: "Gamma", Number: 1, State: "closed", Task: &task})
	})
	c.plug(hostOf(y.URL))
	b := browser.Open(t, url, 1440, 900)
	b.SignIn("ada", rig.Password)
	b.Before(counted)
	once := func(b *browser.Tab, when string, asks ...string) {
		t.Helper()
		asks = append(asks, "/v1/overview/counts", "/v1/notifications/counts")
		b.Until("live, and all is asked", `document.querySelector(".link.live") &&
			`+text(strings.Join(asks, " "))+`.split(" ").every(a => asked[a])`)
		// Longer than anything waits for more changes before it asks again.
		asked := browser.Eval[map[string]int](b, `new Promise(go => setTimeout(() => go(asked), 1400))`)
		for _, a := range asks {
			if asked[a] != 1 {
				t.Errorf("%s asks %d times for %s", when, asked[a], a)
			}
		}
	}
	gap := func(b *browser.Tab) {
		t.Helper()
		c.plug("")
		b.See("Reconnecting")
		browser.Eval[any](b, `void (asked = {})`)
		c.plug(hostOf(y.URL))
	}
	const web = "/v1/repos/acme/web"
	for _, p := range []struct {
		path string
		asks []string
	}{
		{"/ui/", []string{"/v1/next-steps", "/v1/overview/burn"}},
		{"/ui/repos/acme/web", []string{web, web + "/overview"}},
		{"/ui/repos/acme/web/merge-queue", []string{web + "/merge-queue"}},
		{"/ui/repos/acme/web/reviews", []string{web + "/reviews"}},
		{"/ui/plans", []string{"/v1/plans"}},
		{"/ui/prs/" + pull + "?tab=review", []string{"/v1/prs/" + pull + "/review-runs"}},
	} {
		b.Go(p.path)
		once(b, p.path+" at first", p.asks...)
		// A list is asked for once more when the stream that tells of its rows has opened.
		if more := browser.Eval[[]string](b, `Object.keys(whole).filter(url => whole[url] > 2)`); len(more) > 0 {
			t.Errorf("%s asks more than twice for %s", p.path, more)
		}
		gap(b)
		once(b, p.path+" after a gap", p.asks...)
	}
	other := b.Another() // hears from the first what it reads
	other.Before(counted)
	other.Go("/ui/")
	once(other, "another tab", "/v1/next-steps")
	gap(other)
	once(other, "another tab after a gap", "/v1/next-steps")
}

// A list that no topic tells of is asked for again while somebody looks, and keeps the rows
// beyond the first that they have asked for.
func TestMoreRowsStay(t *testing.T) {
	t.Parallel()
	y := start(t)
	hook := func(name string) seed.Row {
		return seed.Webhook{ID: id.New(), Account: y.Account, Name: name, Unhealthy: time.Now().UnixMicro()}
	}
	y.Write(y.Account, func(tx *db.Tx) error {
		var rows []seed.Row
		for n := range 60 {
			rows = append(rows, hook(fmt.Sprint("hook ", n)))
		}
		return seed.Add(tx, rows...)
	})
	b := y.open(1440, 900)
	b.Before(counted)
	b.Go("/ui/settings/webhooks")
	shows := func(n int) {
		t.Helper()
		b.Until(fmt.Sprint(n, " webhooks"), `document.querySelectorAll("ul[aria-label=Webhooks] > li").length === `+fmt.Sprint(n))
	}
	shows(50)
	b.Button("Show more")
	shows(60)
	y.Write(y.Account, func(tx *db.Tx) error { return seed.Add(tx, hook("the newest")) })
	b.See("the newest")
	shows(61)
	b.Until("it is asked for once more", `asked["/v1/webhooks"] > 4`)
	shows(61)
}
