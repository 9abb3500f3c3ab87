package app

import (
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// One task comes of fifty twins, on both databases, and each is told the same.
func TestOneEffectOfManyTwins(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			y := start(t, e)
			y.push("acme/web", map[string]string{"README.md": "web\n"})
			body := `{"repo": "acme/web", "title": "t", "problem": "Something is wrong."}`
			answers := make([]answer, 50)
			var wg sync.WaitGroup
			for i := range answers {
				wg.Go(func() { answers[i] = y.send("POST", "/v1/tasks", y.owner, body, "Idempotency-Key", "once") })
			}
			wg.Wait()
			replayed := 0
			for _, a := range answers {
				if a.want(202); string(a.body) != string(answers[0].body) {
					t.Errorf("two answers: %s and %s", a.body, answers[0].body)
				}
				if a.Header.Get("X-Idempotent-Replayed") == "true" {
					replayed++
				}
			}
			var list struct{ Data []struct{ ID string } }
			decode(t, y.send("GET", "/v1/tasks", y.owner, "").want(200), &list)
			if replayed != 49 || len(list.Data) != 1 {
				t.Errorf("%d answers are replayed, %d tasks were made", replayed, len(list.Data))
			}
			y.send("POST", "/v1/tasks", y.owner, strings.Replace(body, "wrong", "right", 1), "Idempotency-Key", "once").problem(409,
				"idempotency-conflict")
		})
	}
}

// What is shown once is never kept.
func TestSecretsAreNotReplayed(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	tokens := map[string]bool{}
	for range 2 {
		var made struct{ Token string }
		a := y.send("POST", "/v1/tokens", y.owner, `{"name": "ci", "scopes": ["read:tasks"]}`, "Idempotency-Key", "k").want(201)
		decode(t, a, &made)
		tokens[made.Token] = true
		if a.Header.Get("X-Idempotent-Replayed") != "" {
			t.Error("a token is told again")
		}
	}
	if len(tokens) != 2 {
		t.Errorf("%d tokens of two calls", len(tokens))
	}
}
