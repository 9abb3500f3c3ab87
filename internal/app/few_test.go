package app

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// few are the filters that leave few rows of an account, however many it has.
var few = []string{"id", "run", "task", "ask", "pr", "number"}

// small are steps that read few rows: none of a table (w is the one row of package fleet), an
// account's floors, which are one row, the boxes that people have brought into it, those that are
// lent, and the repositories that take gifts.
var small = regexp.MustCompile(`^SCAN (CONSTANT ROW|w)$|autoindex_account_floors_1|box_consents_account|donations_box|repos_taking`)

// whole is a step of a plan that reads all rows of an account, or all before a time.
var whole = regexp.MustCompile(`(?m)^SEARCH .*\(account_id=\?( AND \(?(created_at|started_at|requested_at|last_activity_at)\b.*)?\)$|^SCAN .*$`)

// TestFewRowsAreReadByTheirIndex holds of every list that a filter that leaves few rows finds
// them by an index, on each page and beside whatever other filters. SQLite would rather read
// all of the account in the order of the list.
func TestFewRowsAreReadByTheirIndex(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	ids := y.seed(y.acct, "acme")
	h, tried := y.handler(), 0
	look := func(what, path string) {
		plans := dbtest.Plans(t.Context(), t, func(ctx context.Context) {
			req := httptest.NewRequest("GET", path, nil).WithContext(ctx)
			req.Header.Set("Authorization", "Bearer "+y.owner)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, req); w.Code != 200 {
				t.Errorf("%s: %d %s", what, w.Code, w.Body)
			}
		})
		tried++
		for _, plan := range plans {
			for _, step := range whole.FindAllString(plan, -1) {
				if !small.MatchString(step) {
					t.Errorf("%s: %s\n%s", what, step, plan)
				}
			}
		}
	}
	look("plan.list", "/v1/plans?id="+ids["planId"])
	for _, o := range y.parts.ops("") {
		if o.Paging == nil || o.Method != "GET" {
			continue
		}
		for _, key := range few {
			if _, ok := o.Paging.Filters[key]; !ok {
				continue
			}
			filters := []string{key + ":" + cmp.Or(ids[named[o.Path+"?filter="+key+":"]], ids["task"])}
			if key == "number" {
				filters[0] = "number:1"
			}
			if _, all := o.Paging.Filters["repo"]; all && key == "number" {
				filters = append(filters, "repo:acme/seeded")
			}
			for beside := range 3 {
				some := slices.Clone(filters)
				for _, other := range slices.Sorted(maps.Keys(o.Paging.Filters)) {
					if values := o.Paging.Filters[other]; beside > 0 && len(values) > 0 && !slices.Contains(few, other) {
						some = append(some, other+":"+values[0])
					}
				}
				q := url.Values{"filter": some}
				if beside == 2 {
					if o.Paging.Bounded || o.Paging.Uncursored {
						continue
					}
					q = url.Values{"cursor": {cursorOf(o.ID, some)}}
					if o.ID == "audit.tail" {
						continue // its order is another
					}
				}
				path := strings.NewReplacer("{owner}", "acme", "{repo}", "seeded").Replace(o.Path) + "?" + q.Encode()
				look(fmt.Sprintf("%s %q", o.ID, some), path)
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d lists were tried", tried)
	}
}

// cursorOf is the cursor of a page of a list that is ordered by a time and an id.
func cursorOf(rowID string, filters []string) string {
	mark := fnv.New32a()
	mark.Write([]byte(rowID))
	slices.Sort(filters)
	b, err := json.Marshal(map[string]any{"m": mark.Sum32(), "f": filters, "k": []string{"1", "x"}})
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}
