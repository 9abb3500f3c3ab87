package app

import (
	"strconv"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// What an account has a bounded number of is refused beyond it, by name.
func TestListsEnd(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	for _, c := range []struct {
		method, path, body string // # is the number of the call
		most, status       int
		slug               string
	}{
		{"POST", "/v1/webhooks", `{"name": "n#", "url": "https://93.184.216.34/in"}`, 50, 409, "too-many-webhooks"},
		{"POST", "/v1/me/keys", `{"provider": "scripted", "label": "n#"}`, 50, 422, "too-many-keys"},
		{"POST", "/v1/dashboards", `{"name": "n#", "widgets": []}`, 100, 409, "too-many-dashboards"},
		{"PUT", "/v1/templates/n#", `{}`, 200, 422, "too-many-templates"},
	} {
		n, token := 0, ""
		for ; n <= c.most; n++ {
			if n%100 == 0 { // a credential may write 120 times a minute
				token = y.mint(y.acct, &y.user, policy.Owner.Ceiling(), nil)
			}
			number := strconv.Itoa(n)
			a := y.send(c.method, strings.ReplaceAll(c.path, "#", number), token, strings.ReplaceAll(c.body, "#", number))
			if a.StatusCode >= 400 {
				a.problem(c.status, c.slug)
				break
			}
		}
		if n < c.most-5 || n > c.most { // some are there from the beginning
			t.Errorf("%s %s is refused after %d", c.method, c.path, n)
		}
	}
}
