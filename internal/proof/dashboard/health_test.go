//go:build !race

package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/seed"
)

// The page of a repository grades it: each objective with n of d, in words and in a form as
// well as by colour, and the worst one with what to do about it.
func TestHealthOfARepository(t *testing.T) {
	t.Parallel()
	y, b := begin(t)
	work(y)
	repo := call[struct{ ID string }](y, http.MethodGet, "/v1/repos/acme/web", "").ID
	y.Write(y.Account, func(tx *db.Tx) error {
		var rows []seed.Row
		for range 6 {
			rows = append(rows, seed.Check{
				ID: id.New(), Account: y.Account, Repo: repo, Status: "failed", Finished: tx.Now.Add(-time.Minute).UnixMicro(),
			})
		}
		return seed.Add(tx, rows...)
	})
	visit(b, "/ui/repos/acme/web", "acme/web")
	b.See("Checks pass:")
	b.See("Look for tests that fail now and then")
	for state, says := range map[string]string{
		"bad":  "Checks pass\n0 of 6 · goal 80 %",
		"good": "Runs succeed\n1 of 1 · goal 85 %",
		"off":  "Pull requests are merged\nno data · goal 80 %",
	} {
		b.Until(says, `[...document.querySelectorAll(".health li")].some(e => e.querySelector(".status.`+state+` svg.mark") &&
			e.innerText.replaceAll(/\n+/g, "\n").startsWith(`+quoted(says)+`))`)
	}
	if first := browser.Eval[string](b, `document.querySelector(".health li .status").innerText`); first != "Checks pass" {
		t.Errorf("%s stands first, not the worst", first)
	}
	both(b, "the health of a repository")
	shoot(b, "health")
	b.Resize(900, 800)
	shootAt(b, "health-900")
	b.Resize(1440, 900)
	b.Button("30 days")
	b.Until("the window in the address", `location.search === "?days=30"`)
	b.Button("See the tests that come and go")
	b.Until("the page of flakes", `location.pathname.endsWith("/flakes")`)
	content(b)
}
