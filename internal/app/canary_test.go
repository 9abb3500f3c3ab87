package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

// inTheClear stands in the text of a task, which is kept as it is: the search finds it.
const inTheClear = "canary-in-the-clear-0000"

// TestCanaries: nothing of a key, a secret or a token stands in any byte that the server has
// stored, in its log, or in what it tells: the database, its files, the record, the answers
// that are kept for a repetition.
func TestCanaries(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			log, data := &journal{}, t.TempDir()
			y := enter(bootWith(t, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), e, "--data", data))
			canaries := y.letOut()
			var told bytes.Buffer
			for _, path := range []string{
				"/v1/billing/keys", "/v1/me/keys", "/v1/tokens", "/v1/repos/acme/web/secrets", "/v1/webhooks", "/v1/billing/usage",
				"/v1/notifications", "/v1/audit/export",
			} {
				told.Write(y.send("GET", path, y.owner, "").body)
			}
			told.WriteString(strings.Join(y.exported(), "\n"))
			places := map[string][]byte{"what is told": told.Bytes()}
			if e == db.Postgres {
				places["the database"] = dump(t, y.dsn)
			}
			y.stop()
			places["the log"] = log.all.Bytes() // nobody writes it any more
			files(t, places, data)
			if e == db.SQLite {
				files(t, places, filepath.Dir(strings.TrimPrefix(y.dsn, "sqlite:")))
			}
			found := false
			for where, stored := range places {
				found = found || bytes.Contains(stored, []byte(inTheClear))
				for _, canary := range canaries {
					for _, form := range []string{
						canary, hex.EncodeToString([]byte(canary)), base64.RawStdEncoding.EncodeToString([]byte(canary)),
					} {
						if bytes.Contains(stored, []byte(form)) {
							t.Errorf("%s holds %s", where, form)
						}
					}
				}
			}
			if !found || !bytes.Contains(places["the log"], []byte("/v1/billing/keys")) {
				t.Error("the search does not find what is kept in the clear")
			}
		})
	}
}

// letOut has the server get keys, secrets and tokens, in calls that succeed, that are repeated and
// that are refused, and use them. It returns them.
func (y *yard) letOut() (canaries []string) {
	y.t.Helper()
	canary := func(what string) string {
		one := fmt.Sprintf("canary-%s-%04d", what, len(canaries)+1)
		canaries = append(canaries, one)
		return one
	}
	// The provider says each key that it is asked with.
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s.","code":"invalid_api_key"}}`, key)
	}))
	y.t.Cleanup(far.Close)
	twice := func(method, path, body string, statuses ...int) (out answer) {
		y.t.Helper()
		once := fmt.Sprint("once-", len(canaries), path)
		for range 2 {
			out = y.send(method, path, y.owner, body, "Idempotency-Key", once)
		}
		for _, status := range statuses {
			if out.StatusCode == status {
				return out
			}
		}
		y.t.Fatalf("%s %s: %d %s", method, path, out.StatusCode, out.body)
		return out
	}
	at := `{"provider":"compatible","base_url":"` + far.URL + `/v1","model":"m","key":"`
	var key struct{ ID string }
	decode(y.t, twice("POST", "/v1/billing/keys", at+canary("account-key")+`"}`, 201), &key)
	twice("POST", "/v1/billing/keys/"+key.ID+"/verify", "", 200)
	twice("POST", "/v1/billing/keys/"+key.ID+"/rotate", `{"key":"`+canary("rotated-key")+`"}`, 200)
	twice("POST", "/v1/billing/keys/"+key.ID+"/verify", "", 200)
	twice("POST", "/v1/me/keys", `{"provider":"openai","key":"`+canary("own-key")+`"}`, 201)
	twice("POST", "/v1/billing/keys", `{"provider":"nobody","key":"`+canary("refused-key")+`"}`, 400)
	twice("POST", "/v1/billing/providers/models", `{"provider":"compatible","base_url":"`+far.URL+`/v1","key":"`+canary("asked-key")+`"}`,
		200, 403, 409, 422, 502, 503)
	y.push("acme/web", map[string]string{"README": "hello\n"})
	twice("PUT", "/v1/repos/acme/web/secrets/CANARY", `{"value":"`+canary("secret")+`"}`, 200)
	var token struct{ Token string }
	decode(y.t, y.send("POST", "/v1/tokens", y.owner, `{"name":"c","scopes":["read:tasks"],"expires_in_days":3}`).want(201), &token)
	if token.Token == "" {
		y.t.Fatal("no token")
	}
	y.send("GET", "/v1/tasks", token.Token, "").want(200)
	canaries = append(canaries, token.Token, password, y.owner)

	// A call over a key of the account: its provider refuses it, and says it.
	y.send("POST", "/v1/tasks", y.owner, `{"repo":"acme/web","title":"`+inTheClear+`","problem":"p"}`).want(202)
	y.send("POST", "/v1/asks", y.owner, `{"repo":"acme/web","title":"An ask","body":"To be judged."}`).want(202)
	patience.Until(y.t, "a provider has refused a key", func() bool {
		return strings.Contains(strings.Join(y.exported(), " "), "key_refused")
	})
	return canaries
}

// files adds the files below a folder to the places.
func files(t *testing.T, places map[string][]byte, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		places[path] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dump is every row of every table, as text.
func dump(t *testing.T, dsn string) []byte {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, table := range tables {
		if _, err := conn.PgConn().CopyTo(ctx, &out, "COPY "+pgx.Identifier{table}.Sanitize()+" TO STDOUT"); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}
