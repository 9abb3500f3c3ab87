package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull"
)

// asTable holds what was done about pull requests against what the table of package moves
// says. A difference that nobody has decided about is a fault of one of them. At rest tells
// that the loops have passed and nothing is due.
func (m *walk) asTable(atRest bool) {
	var all []pull.Difference
	m.see(func(tx *db.Tx) (err error) {
		all, err = part[*pull.Service](m.nodes[0]).Compare(tx, atRest)
		return err
	})
	for _, d := range all {
		if d.Decided == "" {
			m.fail("pull request %s is unlike the table: %v", d.PRID, d)
		}
		m.seen["unlike the table: "+d.Decided]++
	}
}
