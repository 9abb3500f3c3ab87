package member

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/signin"
)

// drop takes a member off the roster and out of the account's sessions.
func (s *Service) drop(tx *db.Tx, m OrgMember) error {
	if err := people.Remove(tx, tx.Account, m.UserID); err != nil {
		return err
	}
	if err := signin.LeaveAccount(tx, tx.Account, m.UserID); err != nil {
		return err
	}
	return s.Invites.Became(tx, tx.Account, m.UserID, m.Role, "")
}

// find is a member of an account.
func find(tx *db.Tx, accountID, userID string) (OrgMember, bool, error) {
	m, ok, err := people.MemberByID(tx, accountID, userID)
	return wire(m), ok, err
}

// names are the login of tx.Account and of the person who calls; the latter is
// empty for a machine.
func names(tx *db.Tx, userID string) (account, caller string, err error) {
	if account, err = people.AccountLogin(tx, tx.Account); err != nil || userID == "" {
		return account, "", err
	}
	u, err := people.ReadUser(tx, userID)
	return account, u.Login, err
}
