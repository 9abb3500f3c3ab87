package dbtest

import (
	"strings"
	"testing"

	"yardmaster/internal/db"
)

// TestCompiledAnewIsTold holds that a built statement whose parameter SQLite looks at is told when its
// connection is closed, and that one whose parameter it does not is not.
func TestCompiledAnewIsTold(t *testing.T) {
	again.texts = map[string]string{}
	db.TellClosing(countAgain)
	t.Run("", func(t *testing.T) {
		d := SQLite(t)
		for range 3 * mostAgain {
			if err := d.Read(t.Context(), func(tx *db.Tx) error {
				if _, err := db.Select[string](tx, db.Build(`SELECT key FROM meta WHERE key GLOB `, "a*")); err != nil {
					return err
				}
				_, err := db.Select[string](tx, db.Build(`SELECT key FROM meta WHERE key = `, "a").SQL(` LIMIT `, 3))
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if len(again.texts) != 1 || !strings.Contains(again.texts["SELECT key FROM meta WHERE key GLOB $1"], " of 12 times") {
		t.Errorf("told is %q", again.texts)
	}
	if !toldAgain() {
		t.Error("it is no failure")
	}
}
