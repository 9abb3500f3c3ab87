//go:build !race

package dashboard_test

import (
	"net/http"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/browser"
	"yardmaster/internal/proof/seed"
)

// Pages name somebody who has left the account wherever they did something. In the audit
// they are found by their name, and chosen.
func TestWhoHasLeftIsNamed(t *testing.T) {
	t.Parallel()
	y, b := begin(t, "--allow-networks", "127.0.0.0/8")
	bob := id.New()
	y.Write(y.Account, func(tx *db.Tx) error {
		return seed.Add(tx, seed.User{ID: bob, Login: "bob"}, seed.Member{Account: y.Account, User: bob, Role: "admin"})
	})
	theirs := y.Mint(policy.PAT, y.Account, bob, policy.Admin.Ceiling(), nil)
	for _, call := range [][4]string{
		{"PUT", "/v1/secrets/DEPLOY_KEY", theirs, `{"value": "x"}`},
		{"POST", "/v1/webhooks", theirs, `{"name": "ours", "url": "http://127.0.0.1:9/x"}`},
		{"DELETE", "/v1/org/members/" + bob, y.Owner, ""},
	} {
		if resp, text := y.Send(call[0], call[1], call[2], call[3]); resp.StatusCode >= http.StatusMultipleChoices {
			t.Fatalf("%s %s: %d %s", call[0], call[1], resp.StatusCode, text)
		}
	}
	visit(b, "/ui/settings/secrets", "Secrets")
	b.See("by bob (left)")
	visit(b, "/ui/settings/webhooks", "Webhooks")
	b.See("made by bob (left)")
	visit(b, "/ui/audit", "Audit")
	b.See("bob (left)")
	browser.Eval[any](b, `(s => { s.value = "user:`+bob+`"; s.dispatchEvent(new Event("change", {bubbles: true})) })(
		document.querySelector("select[aria-label=Who]"))`)
	b.Until("what they did alone", `(rows => rows.length === 2 && rows.every(r => r.innerText.startsWith("bob (left)")))(
		[...document.querySelectorAll("#events .row")])`)
	shoot(b, "audit-left")
	b.Go("/ui/audit?q=bob")
	b.Until("the same by their name", `document.querySelectorAll("#events .row").length === 2`)
	if calls := browser.Eval[int](b, `performance.getEntriesByType("resource").filter(r => r.name.includes("/v1/actors")).length`); calls > 2 {
		t.Errorf("a page asks %d times who its actors are", calls)
	}
	content(b)
}
