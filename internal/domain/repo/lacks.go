package repo

import "yardmaster/internal/db"

// Lack records that the code host of a repository of tx.Account demands a permission for git
// that its owner has yet to grant, as the host calls it. Lack tells whether that is news.
func Lack(tx *db.Tx, repoID, permission string) (news bool, err error) {
	n, err := setLacks.Exec(tx, setLacksArgs{AccountID: tx.Account, ID: repoID, Lacks: permission, Now: tx.Micros()})
	return n > 0, err
}

// Grant forgets the permissions that repositories of an installation lack, of those that
// are granted now. It answers whether there were any.
func Grant(tx *db.Tx, host, installation string, granted func(permission string) bool) (any bool, err error) {
	rows, err := ofInstallation.All(tx, host, installation)
	if err != nil {
		return false, err
	}
	for _, r := range rows {
		if r.Lacks == "" || !granted(r.Lacks) {
			continue
		}
		if _, err := setLacks.Exec(tx, setLacksArgs{AccountID: r.AccountID, ID: r.ID, Now: tx.Micros()}); err != nil {
			return false, err
		}
		any = true
	}
	return any, nil
}

// InstallationOf answers the installation through which the server works in a repository of
// tx.Account; empty: it needs none, or there is no such repository.
func InstallationOf(tx *db.Tx, repoID string) (string, error) {
	r, _, err := byID.Maybe(tx, tx.Account, repoID)
	return r.InstallationID, err
}
