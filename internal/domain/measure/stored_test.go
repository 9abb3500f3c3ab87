package measure

import (
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

// What is stored is what all accounts together have, of the time of the oldest measurement, and the
// whole database besides.
func TestStoredNow(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		at := time.Unix(1_800_000_000, 0)
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			if s, err := StoredNow(tx); err != nil || s.Records+s.Git+s.Objects != 0 || s.MeasuredAt != nil || s.Database < 1<<16 {
				t.Errorf("empty: %+v, %v", s, err)
			}
			for i, of := range []string{"a", "b"} {
				if err := seed.Add(tx, seed.Account{ID: of, Seats: 1}); err != nil {
					return err
				}
				if err := seed.Add(tx, seed.Repo{ID: of, Account: of, Name: of}); err != nil {
					return err
				}
				m := seed.Measure{AccountID: of, Objects: 10, Records: 100, MeasuredAt: at.Add(time.Duration(i) * time.Hour)}
				if _, err := seed.Measured.Exec(tx, m); err != nil {
					return err
				}
				if _, err := seed.Sized.Exec(tx, of, 1000); err != nil {
					return err
				}
			}
			s, err := StoredNow(tx)
			if s.Records != 200 || s.Objects != 20 || s.Git != 2000 || s.MeasuredAt == nil || !s.MeasuredAt.Equal(at) {
				t.Errorf("of both: %+v, %v", s, err)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}
