package cli

import (
	"strings"
	"testing"
)

// Where there is room a list of tasks has the try, the place in the queue and the box by its name; where there is
// none these are left out before a title is cut. A list of pull requests leaves out the branch.
func TestColumnsThatGiveWay(t *testing.T) {
	t.Parallel()
	const title = "Have the parser keep the last line"
	f := newFake(t, map[string]string{
		"GET /v1/tasks": `{"data": [{"id": "` + someID + `", "status": "running", "kind": "work", "created_at": "2026-05-04T12:00:00Z",
			"repo": "acme/web", "title": "` + title + `", "attempt": 2, "queue_position": null, "box_id": "` + otherID + `", "holds": []},
			{"id": "` + otherID + `", "status": "pending", "kind": "work", "created_at": "2026-05-04T12:00:00Z", "repo": "acme/web",
			"title": "Wait", "attempt": 0, "queue_position": 17, "box_id": null, "holds": []}]}`,
		"GET /v1/actors": `{"data": [{"actor": "box:` + otherID + `", "name": "builder"}]}`,
		"GET /v1/prs": `{"data": [{"id": "` + someID + `", "repo": "acme/web", "number": 3, "state": "open", "checks": "passed",
			"created_at": "2026-05-04T12:00:00Z", "head_ref": "svc/have-the-parser-keep-the-last-line--12345678",
			"size": {"additions": 12, "deletions": 3}, "review": {"state": "off"}, "title": "` + title + `"}]}`,
	})
	p := f.person(t)
	p.holds("task list", 0, "TRY  PLACE  BOX", "2         builder  "+title, "17           Wait", "!"+otherID)
	p.holds("pr list", 0, "BRANCH", "svc/have-the-parser-keep-the-last-line--12345678", title)
	p.cols = 78
	p.holds("task list", 0, "KIND", title, "!PLACE", "!builder")
	p.cols = 80
	p.holds("pr list", 0, "Have the parser", "!BRANCH")
}

// An audit row says what it is about by its name, where what changed has one; an attempt has the name of its box.
func TestNamesInThePlaceOfIDs(t *testing.T) {
	t.Parallel()
	f := newFake(t, map[string]string{
		"GET /v1/audit/events": `{"data": [{"seq": 3, "kind": "task.created", "actor": "system", "object": "` + someID + `", "data": {"title": "Mend it"}},
			{"seq": 2, "kind": "pr.merged", "actor": "system", "object": "` + someID + `", "data": {"repo": "acme/web", "number": 3}},
			{"seq": 1, "kind": "task.claimed", "actor": "system", "object": "` + otherID + `", "data": {}}]}`,
		"GET /v1/tasks/" + someID + "/attempts": `{"data": [
			{"id": "` + someID + `", "attempt": 1, "state": "live", "box_id": "` + otherID + `"},
			{"id": "` + otherID + `", "attempt": 2, "state": "live", "box_id": "` + someID + `"}]}`,
		"GET /v1/actors": `{"data": [{"actor": "box:` + otherID + `", "name": "builder"}]}`,
	})
	p := f.person(t)
	p.holds("audit list", 0, "Mend it (12345678)", "acme/web#3 (12345678)", otherID)
	p.holds("task attempts "+someID, 0, "BOX ", "builder ", "12345678 ")
	p.holds("task attempts "+someID+" --jq .[0].box_id", 0, otherID)
	_, out, _ := yardmasterAt(t, f.URL, "audit", "list")
	if !strings.Contains(out, someID) || strings.Contains(out, "Mend it") {
		t.Errorf("a piped list has another object than the id:\n%s", out)
	}
}
