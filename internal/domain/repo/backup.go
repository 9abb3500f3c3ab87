package repo

import (
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// Pushed lists the repositories of the built-in host, of every account, that have a folder.
func Pushed(tx *db.Tx) ([]codehost.Repo, error) {
	rows, err := allAt.All(tx, codehost.BuiltIn)
	return pushed(rows), err
}

// pushed are those that somebody pushed to: the others have no folder.
func pushed(rows []row) (out []codehost.Repo) {
	for _, r := range rows {
		if r.LastActivityAt != nil {
			out = append(out, r.ref().HostRepo())
		}
	}
	return out
}
