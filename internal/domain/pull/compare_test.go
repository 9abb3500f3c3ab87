package pull

import "yardmaster/internal/db"

// asTable holds what was done about the pull requests of a yard against what the table of
// package moves says.
func (y *yard) asTable() {
	y.t.Helper()
	if err := y.DB.Read(y.ctx(), func(tx *db.Tx) error {
		all, err := y.Compare(tx)
		for _, d := range all {
			y.t.Errorf("not moved on: %v", d)
		}
		return err
	}); err != nil {
		y.t.Error(err)
	}
}
