package kb

import (
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
)

// The pages that a question leads to come with the files that they were written from.
func TestNear(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w wiki) {
		near := func(text string) (out []NearPage) {
			t.Helper()
			if err := w.d.Read(t.Context(), func(tx *db.Tx) (err error) {
				out, err = Near(tx, "web", text)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return out
		}
		if got := near("Which port?"); len(got) > 0 {
			t.Errorf("of no page: %+v", got)
		}
		w.want(201, "acme", "PUT", "/v1/kb/web/pages/port", put("# The port\n\n"+strings.Repeat("It is open.\n", 4000)), nil)
		w.want(201, "acme", "PUT", "/v1/kb/web/pages/cake", put("# Cake\n\nButter and sugar."), nil)
		got := near("Which port is it?")
		if len(got) != 1 || got[0].Slug != "port" || got[0].Stale || !strings.HasPrefix(got[0].Text, "# The port\n") ||
			tokensOf(got[0].Text) > nearTokens/2 {
			t.Errorf("%.300v", got)
		}
		if all := near("port butter sugar"); len(all) != 2 || !slices.ContainsFunc(all, func(p NearPage) bool { return p.Slug == "cake" }) {
			t.Errorf("%.300v", all)
		}
		if none := near(strings.Repeat("?", 500)); len(none) > 0 {
			t.Errorf("of no word: %+v", none)
		}
	})
}
