package ask

import (
	"testing"

	"yardmaster/internal/db"
)

// A filing that is the same trouble once more is counted; any other one is not.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := open(t, e)
			for i, again := range []bool{true, true, false, true, true} {
				var a Ask
				err := y.DB.Write(y.ctx(), func(tx *db.Tx) (err error) {
					a, _, err = y.File(tx, Filing{Title: "t", Body: "b", DedupeKey: "k", Source: FromInbound, Namespace: "inbound:s",
						Again: again})
					return err
				})
				if want := []int64{1, 2, 2, 3, 4}[i]; err != nil || a.Count != want || (a.LastSeenAt != nil) != (want > 1) {
					t.Errorf("filing %d: %d, last seen %v, %v", i, a.Count, a.LastSeenAt, err)
				}
			}
		})
	}
}
