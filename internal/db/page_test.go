package db_test

import (
	"errors"
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// page is a page of two rows behind a row, or a fault.
type page struct {
	at    int64
	id    string
	fault error
}

func (p page) AfterTime() (int64, string, bool, error) { return p.at, p.id, p.id != "", p.fault }

func (p page) Size() int { return 2 }

// TestNewestFirst holds that the pages of a list follow each other by time and then
// by id, and that a fault of the cursor is returned.
func TestNewestFirst(t *testing.T) {
	type row struct {
		CreatedAt int64
		ID        string
	}
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		bad := errors.New("no cursor")
		err := d.Read(t.Context(), func(tx *db.Tx) error {
			var all []string
			for p := (page{}); ; {
				rows, err := db.NewestFirst[row](tx, db.Build(`SELECT created_at, id FROM (SELECT 1 AS created_at, 'a' AS id
					UNION ALL SELECT 2, 'b' UNION ALL SELECT 2, 'c' UNION ALL SELECT 2, 'd' UNION ALL SELECT 3, 'e') AS v WHERE TRUE`), p)
				if err != nil || len(rows) == 0 {
					if !slices.Equal(all, []string{"e", "d", "c", "b", "a"}) {
						t.Errorf("the pages have %v", all)
					}
					_, failed := db.NewestFirst[row](tx, db.Build(`SELECT 1`), page{fault: bad})
					if !errors.Is(failed, bad) {
						t.Errorf("a bad cursor: %v", failed)
					}
					return err
				}
				for _, r := range rows {
					all = append(all, r.ID)
				}
				p = page{at: rows[len(rows)-1].CreatedAt, id: rows[len(rows)-1].ID}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
