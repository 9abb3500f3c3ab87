package measure

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// What tasks have cost is read by indexes of their pull requests and of their sessions,
// however many are asked for: the sessions of the account are not read one by one.
func TestTheCostOfTasksIsReadByIndexes(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	for _, n := range []int{1, 2, 8, 64, 256} {
		tasks := make([]string, n)
		for i := range tasks {
			tasks[i] = fmt.Sprint(i)
		}
		plans := dbtest.Plans(t.Context(), t, func(ctx context.Context) {
			if err := d.Read(db.WithAccount(ctx, "acme"), func(tx *db.Tx) error {
				_, err := SpentOn(tx, tasks)
				return err
			}); err != nil {
				t.Error(err)
			}
		})
		if len(plans) != 2 {
			t.Fatalf("%d queries", len(plans))
		}
		for i, want := range []string{
			"p USING INDEX pulls_task (task_id=? AND account_id=?)", "sessions USING INDEX sessions_task (task_id=? AND account_id=?)",
		} {
			if !strings.Contains(plans[i], want) {
				t.Errorf("of %d tasks: not read by %s:\n%s", n, want, plans[i])
			}
		}
	}
}
