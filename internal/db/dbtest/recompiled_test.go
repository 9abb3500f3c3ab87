package dbtest

import (
	"testing"

	"yardmaster/internal/db"
)

// TestCompiledAnewIsTold holds that a built statement whose parameter SQLite looks at is told when its
// connection is closed, and that one whose parameter it does not is not.
func TestCompiledAnewIsTold(t *testing.T) {
	again.texts = map[string]runs{}
	db.TellClosing(countAgain)
	t.Run("", func(t *testing.T) {
		d := SQLite(t)
		for range oftenAgain {
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
	for text, want := range map[string]runs{
		"SELECT key FROM meta WHERE key GLOB $1":           {oftenAgain, oftenAgain},
		"SELECT key FROM meta WHERE key = $1 LIMIT $2 + 0": {0, oftenAgain},
	} {
		if got := again.texts[text]; got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if !toldAgain() {
		t.Error("it is no failure")
	}
}
