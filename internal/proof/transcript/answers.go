package transcript

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
)

const keyHeader = "Idempotency-Key"

// watchAnswers makes the database note the answers for retries that are stored after
// their change, or in place of another answer that was stored with the change. It
// watches SQLite only; the ledger is the same on both databases.
func (y *yard) watchAnswers() {
	y.T.Helper()
	path, ok := strings.CutPrefix(y.DSN, "sqlite:")
	if !ok {
		return
	}
	raw, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(20000)")
	if err != nil {
		y.T.Fatal(err)
	}
	defer raw.Close()
	_, err = raw.Exec(`CREATE TABLE late_answers (key TEXT NOT NULL);
		CREATE TRIGGER late_answer AFTER UPDATE OF status ON idempotency_keys WHEN NEW.status <> 0 AND (OLD.effect OR OLD.status <> 0)
			BEGIN INSERT INTO late_answers VALUES (NEW.key); END`)
	if err != nil {
		y.T.Fatal(err)
	}
}

// takesKey tells whether a row takes the header Idempotency-Key.
func takesKey(o op.Op) bool {
	return o.Method != http.MethodGet && strings.HasPrefix(o.Path, "/v1/") && !o.Rule.IsPublic() && !o.NoStore && !o.IsRaw()
}

// keyed adds an Idempotency-Key to a call that changes something, unless it has one.
func (k *talk) keyed(o op.Op, header []string) []string {
	if !takesKey(o) || slices.Contains(header, keyHeader) {
		return header
	}
	return append(slices.Clone(header), keyHeader, id.New())
}

// keptWithItsChange returns an error unless the answer of a successful call was
// stored by the transaction that made the change.
func (k *talk) keptWithItsChange(o op.Op, a answer) error {
	key := a.Request.Header.Get(keyHeader)
	if k.tools || key == "" || a.StatusCode >= 300 || !takesKey(o) || !strings.HasPrefix(k.DSN, "sqlite:") {
		return nil
	}
	count := func(b *db.Builder) (n int64, err error) {
		err = k.DB.Read(k.T.Context(), func(tx *db.Tx) error {
			rows, err := db.Select[int64](tx, b)
			if err == nil {
				n = rows[0]
			}
			return err
		})
		return n, err
	}
	kept, err := count(db.Build(`SELECT COUNT(*) AS n FROM idempotency_keys WHERE status = `, a.StatusCode).And("key = ", key))
	if err != nil {
		return err
	}
	late, err := count(db.Build(`SELECT COUNT(*) AS n FROM late_answers WHERE key = `, key))
	switch {
	case err != nil:
		return err
	case kept != 1:
		return fmt.Errorf("the answer of %s is not kept for retries: wrap its context for Write in op.Answers", o.ID)
	case late != 0:
		return fmt.Errorf("the answer of %s is kept after its change: see op.Answers", o.ID)
	}
	return nil
}
