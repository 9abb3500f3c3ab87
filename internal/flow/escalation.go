package flow

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/pull"
)

// ResolveSeenTo resolves what was escalated about a pull request that somebody
// has seen to.
func ResolveSeenTo(tx *db.Tx, n pull.Note) error { return escalation.ResolveOfPull(tx, n.PRID, n.Text) }
