package app

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
)

// TestEveryPageSaysWhereItsFormsLead asks for everything that answers with a page, as nobody and
// as somebody who is signed in: whatever is a page says where its forms may lead, and frames none.
func TestEveryPageSaysWhereItsFormsLead(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--rate-limits", "off")
	cookie := y.browser()
	kinds := map[string]bool{}
	page := func(what string, a answer) {
		if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") || len(a.body) == 0 {
			return
		}
		kinds[what] = true
		policy := a.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "form-action 'self'") && !strings.Contains(policy, "form-action 'none'") ||
			strings.Contains(policy, "form-action *") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: %d with the policy %q", what, a.StatusCode, policy)
		}
	}
	for _, as := range []string{"", cookie} {
		header := []string{"Accept", "text/html", "Sec-Fetch-Site", "same-origin", "Cookie", as}
		for _, o := range Ops() {
			if o.Method == "GET" && o.Rule.IsPublic() || o.Form && !strings.HasPrefix(o.Path, "/v1/") {
				form := append(header, "Content-Type", "application/x-www-form-urlencoded")
				page(o.ID, y.send(o.Method, filled(o, nil), "", "", form...))
			}
		}
		for _, path := range []string{
			"/", "/nothing", "/ui/", "/ui/tasks", "/ui/docs/security", "/device", "/v1/openapi", "/problems/not-found",
		} {
			page(path, y.send("GET", path, "", "", header...))
		}
	}
	if len(kinds) < 12 {
		t.Errorf("only %d pages: %v", len(kinds), kinds)
	}
}
