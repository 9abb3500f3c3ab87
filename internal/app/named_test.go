package app

import (
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
)

// named are the lists that find an object by a part of its id, with the name of that object
// in what seed makes.
var named = map[string]string{
	"/v1/tasks?filter=id:":       "task",
	"/v1/prs?filter=id:":         "pr",
	"/v1/asks?filter=id:":        "askId",
	"/v1/plans?id=":              "planId",
	"/v1/blockers?filter=id:":    "blockerId",
	"/v1/escalations?filter=id:": "escalation",
	"/v1/runners?filter=id:":     "box",
	"/v1/sessions?filter=id:":    "session",
}

// TestNamed holds that lists find an object by the beginning and the end of its id, none of
// a neighbour, and refuse what is no part of an id.
func TestNamed(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			ours := y.seed(y.acct, "acme")
			rival := y.tenant("rival")
			theirs := y.mint(rival, nil, policy.Scopes(policy.ReadTasks, policy.ReadPRs, policy.ReadRunners, policy.ReadSessions), nil)
			for list, what := range named {
				id := ours[what]
				if len(id) != 36 {
					t.Fatalf("seed makes no %s: %v", what, ours)
				}
				for _, part := range []string{id, id[:13], id[:19], id[28:], id[32:], id[24:]} {
					var page struct{ Data []map[string]any }
					decode(t, y.send("GET", list+part, y.owner, "").want(http.StatusOK), &page)
					found := false
					for _, r := range page.Data {
						its, _ := r["id"].(string)
						found = found || its == id
						if !strings.HasPrefix(its, part) && !strings.HasSuffix(its, part) {
							t.Errorf("%s%s answers %s", list, part, its)
						}
					}
					if !found {
						t.Errorf("%s%s does not find %s", list, part, id)
					}
					decode(t, y.send("GET", list+part, theirs, "").want(http.StatusOK), &page)
					if len(page.Data) != 0 {
						t.Errorf("a neighbour finds %s%s: %v", list, part, page.Data)
					}
				}
				for _, bad := range []string{"abc", "ABCD", "abcd%25", "abcd_", strings.Repeat("a", 37)} {
					y.send("GET", list+bad, y.owner, "").problem(http.StatusBadRequest, "invalid")
				}
			}
		})
	}
}
