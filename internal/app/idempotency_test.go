package app

import (
	"database/sql"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
)

// One task comes of fifty twins, on both databases, and each is told the same.
func TestOneEffectOfManyTwins(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
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
			y.send("POST", "/v1/tasks", y.owner, strings.Replace(body, "wrong", "right", 1), "Idempotency-Key", "once").problem(409, "idempotency-conflict")
		})
	}
}

// What is shown once is never kept.
func TestSecretsAreNotReplayed(t *testing.T) {
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

const keyHeader = "Idempotency-Key"

// watchAnswers has the database note the answers that are kept for retries
// after the change that they are of, or in the place of another that went with
// it. SQLite does; the ledger is the same for both.
func (y *yard) watchAnswers() {
	y.t.Helper()
	path, ok := strings.CutPrefix(y.dsn, "sqlite:")
	if !ok {
		return
	}
	raw, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(20000)")
	if err != nil {
		y.t.Fatal(err)
	}
	defer raw.Close()
	_, err = raw.Exec(`CREATE TABLE late_answers (key TEXT NOT NULL);
		CREATE TRIGGER late_answer AFTER UPDATE OF status ON idempotency_keys WHEN NEW.status <> 0 AND (OLD.effect OR OLD.status <> 0)
			BEGIN INSERT INTO late_answers VALUES (NEW.key); END`)
	if err != nil {
		y.t.Fatal(err)
	}
}

// takesKey tells whether a row understands Idempotency-Key.
func takesKey(o op.Op) bool {
	return o.Method != http.MethodGet && strings.HasPrefix(o.Path, "/v1/") && !o.Rule.IsPublic() && !o.NoStore && !o.IsRaw()
}

// keyed gives a call that changes something a key, unless it has one.
func (k *talk) keyed(o op.Op, header []string) []string {
	if !takesKey(o) || slices.Contains(header, keyHeader) {
		return header
	}
	return append(slices.Clone(header), keyHeader, id.New())
}

// keptWithItsChange wants the answer of a successful call to have been kept
// by the very transaction that made the change.
func (k *talk) keptWithItsChange(o op.Op, a answer) {
	k.t.Helper()
	key := a.Request.Header.Get(keyHeader)
	if k.tools || key == "" || a.StatusCode >= 300 || !takesKey(o) || !strings.HasPrefix(k.dsn, "sqlite:") {
		return
	}
	count := func(b *db.Builder) int64 {
		var n []int64
		err := k.db.Read(k.t.Context(), func(tx *db.Tx) (err error) {
			n, err = db.Select[int64](tx, b)
			return err
		})
		if err != nil {
			k.t.Fatal(err)
		}
		return n[0]
	}
	if count(db.Build(`SELECT COUNT(*) AS n FROM idempotency_keys WHERE status = `, a.StatusCode).And("key = ", key)) != 1 {
		k.t.Errorf("the answer of %s is not kept", o.ID)
	}
	if count(db.Build(`SELECT COUNT(*) AS n FROM late_answers WHERE key = `, key)) != 0 {
		k.t.Errorf("the answer of %s is kept after its change: see op.Answers", o.ID)
	}
}
