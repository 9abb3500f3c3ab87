package app

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"yardmaster/internal/db"
)

// TestOpenStreamEndsWithItsCredential holds that a stream that is open when its
// token is revoked ends, with a word about why.
func TestOpenStreamEndsWithItsCredential(t *testing.T) {
	y := start(t, db.SQLite)
	var minted struct{ ID, Token string }
	decode(t, y.send("POST", "/v1/tokens", y.owner, "{}").want(http.StatusCreated), &minted)
	var revoked time.Time
	a := y.hear("/v1/streams?topics=tasks", minted.Token, nil, func(a answer) bool {
		if revoked.IsZero() && bytes.Contains(a.body, []byte("event: ready")) {
			revoked = time.Now()
			y.send("DELETE", "/v1/tokens/"+minted.ID, y.owner, "").want(http.StatusOK)
		}
		return false // to its end
	})
	if took := time.Since(revoked); took > 10*time.Second || !bytes.Contains(a.body, []byte("event: error")) || !bytes.Contains(a.body, []byte("problems/unauthenticated")) {
		t.Errorf("after %v: %s", took, a.body)
	}
}

// TestPlanIsFollowedThroughItsTasks holds that a plan is told anew when a task
// of it moves: nothing is done to the plan itself.
func TestPlanIsFollowedThroughItsTasks(t *testing.T) {
	y := start(t, db.SQLite)
	y.push("acme/web", map[string]string{"README": "hello\n"})
	var filed struct {
		TaskIDs []string `json:"task_ids"`
	}
	decode(t, y.send("POST", "/v1/plans/file", y.owner, `{"repo": "acme/web", "slug": "hello", "documents": {"overview.md": "# Say hello\n\nNobody is greeted.\n", "01-greet.md": "# Greet\n\nOne line.\n"}}`).want(http.StatusAccepted), &filed)
	cancelled := false
	a := y.hear("/v1/streams?topics=plans", y.owner, nil, func(a answer) bool {
		if !cancelled && bytes.Contains(a.body, []byte(`"topic":"plans"`)) {
			cancelled = true
			y.send("POST", "/v1/tasks/"+filed.TaskIDs[0]+"/cancel", y.owner, "").want(http.StatusOK)
		}
		return bytes.Contains(a.body, []byte(`"bucket":"stalled"`)) || bytes.Contains(a.body, []byte(`"bucket":"done"`))
	})
	if bytes.Count(a.body, []byte(`"topic":"plans"`)) < 2 || !bytes.Contains(a.body, []byte(`"bucket":"active"`)) {
		t.Errorf("heard only %s", a.body)
	}
}
