package repo

import (
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// Stored is a repository of the built-in host.
type Stored struct {
	ID, AccountID, Owner, Name string
	Pushed                     bool // so that there is a folder of it
}

// AllStored lists the repositories of the built-in host, of every account.
func AllStored(tx *db.Tx) (out []Stored, err error) {
	rows, err := allAt.All(tx, codehost.BuiltIn)
	for _, r := range rows {
		out = append(out, Stored{ID: r.ID, AccountID: r.AccountID, Owner: r.Owner, Name: r.Name, Pushed: r.LastActivityAt != nil})
	}
	return out, err
}
