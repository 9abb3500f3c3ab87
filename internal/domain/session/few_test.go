package session

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// The sessions of one run or task, and those of some ids, are read by an index of those,
// together with whatever other filters: not all of the account, until so many are found as a
// page has room for.
func TestFewSessionsAreReadByTheirIndex(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		for few, want := range map[string]string{
			"run:R":               "s USING INDEX sessions_run (run_id=? AND account_id=?)",
			"task:T":              "s USING INDEX sessions_task (task_id=? AND account_id=?)",
			"id:" + f.session[:8]: "s USING INDEX sqlite_autoindex_sessions_1 (id=?)",
		} {
			for _, others := range []string{
				"", "&filter=outcome:failed", "&filter=outcome:failed,lost&filter=model:m&filter=state:ended",
				"&filter=cost:unknown&filter=repo:acme/app",
			} {
				plans := dbtest.Plans(t.Context(), t, func(ctx context.Context) {
					req := httptest.NewRequest("GET", "/v1/sessions?filter="+few+others, nil).WithContext(ctx)
					req.Header.Set("X-Caller", "acme")
					rec := httptest.NewRecorder()
					if f.http.ServeHTTP(rec, req); rec.Code != 200 {
						t.Errorf("%d %s", rec.Code, rec.Body)
					}
				})
				if last := plans[len(plans)-1]; !strings.Contains(last, want) {
					t.Errorf("%s%s: not read by %s:\n%s", few, others, want, last)
				}
			}
		}
		plans := dbtest.Plans(t.Context(), t, func(ctx context.Context) {
			if err := f.DB.Read(db.WithAccount(ctx, "acme"), func(tx *db.Tx) error {
				_, err := Rows(tx, []string{"a", "b", "c"}, 100)
				return err
			}); err != nil {
				t.Error(err)
			}
		})
		if want := "s USING INDEX sessions_id (account_id=? AND id=?)"; len(plans) != 1 || !strings.Contains(plans[0], want) {
			t.Errorf("some ids: not read by %s: %s", want, plans)
		}
	})
}
