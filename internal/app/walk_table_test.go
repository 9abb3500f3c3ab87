package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull"
)

// asTable holds that every pull request was moved on after its facts have changed.
func (m *walk) asTable() {
	var all []pull.Difference
	m.see(func(tx *db.Tx) (err error) {
		all, err = part[*pull.Service](m.nodes[0]).Compare(tx)
		return err
	})
	for _, d := range all {
		m.fail("not moved on: %v", d)
	}
}
