package app

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event/hashchain"
)

// exported walks the pages of the audit feed.
func (y *yard) exported() (lines []string) {
	y.t.Helper()
	for path := "/v1/audit/events?per_page=2"; path != ""; {
		var page struct {
			Data       []json.RawMessage
			NextCursor *string `json:"next_cursor"`
		}
		decode(y.t, y.send("GET", path, y.owner, "").want(200), &page)
		for _, row := range page.Data {
			lines = append(lines, string(row))
		}
		if path = ""; page.NextCursor != nil {
			path = "/v1/audit/events?per_page=2&cursor=" + url.QueryEscape(*page.NextCursor)
		}
	}
	return lines
}

// What the API shows of the record is what its hashes were made of.
func TestExportVerifies(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			y := start(t, e)
			y.push("acme/web", map[string]string{"README": "hello\n"})
			y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/web", "title": "<b> & \u2028 caf\u00e9 \ud83d\ude80", "problem": "p", "labels": {"b": "1", "a": "2"}}`).want(202)
			y.send("PUT", "/v1/templates/odd", y.owner, `{"agent": "builtin", "model": "m<>&"}`).want(200)
			lines := y.exported()
			spans, err := hashchain.Verify(strings.NewReader(strings.Join(lines, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			if len(spans) != 1 || spans[0].Rows < 5 || spans[0].First.Seq != 1 || spans[0].AccountID != y.acct {
				t.Errorf("%+v", spans)
			}
		})
	}
}
