package gateway

import (
	"cmp"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/modelkey"
)

// keysFor lists the keys for the calls of an attempt, and tells which model a call over one
// of them asks for; empty: the one that the call names. An attempt that began by what its
// person likes best goes on by it while the work is that person's alone and there is a key
// for it. After that it goes as its template says, and to a model of whoever is asked then:
// the agent still names the one that it began with.
func keysFor(tx *db.Tx, a Attempt, wish modelkey.Wish) ([]modelkey.Candidate, func(modelkey.Candidate) string, error) {
	if liked, ok := a.Prefer.Of(wish); ok {
		if keys, err := modelkey.Candidates(tx, a.AccountID, liked); err != nil || len(keys) > 0 {
			return keys, func(modelkey.Candidate) string { return liked.Model }, err
		}
	}
	keys, err := modelkey.Candidates(tx, a.AccountID, wish)
	return keys, func(c modelkey.Candidate) string {
		if a.Prefer.Provider == "" {
			return a.Model
		}
		return cmp.Or(a.Model, c.Provider.DefaultModel())
	}, err
}
