package member

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/signin"
)

// drop removes a member from the roster, the account from their sessions, and what invites
// them to it.
func (s *Service) drop(tx *db.Tx, m OrgMember) error {
	if err := people.Remove(tx, tx.Account, m.UserID); err != nil {
		return err
	}
	if err := signin.LeaveAccount(tx, tx.Account, m.UserID); err != nil {
		return err
	}
	if err := invitation.WithdrawFrom(tx, m.UserID); err != nil {
		return err
	}
	return s.Invites.SendOwnersChanged(tx, tx.Account, m.UserID, m.Role, "")
}

// find finds a member of an account.
func find(tx *db.Tx, accountID, userID string) (OrgMember, bool, error) {
	m, ok, err := people.MemberByID(tx, accountID, userID)
	return wire(m), ok, err
}

// names returns the logins of tx.Account and of the caller; the latter is empty for a
// machine.
func names(tx *db.Tx, userID string) (account, caller string, err error) {
	if account, err = people.AccountLogin(tx, tx.Account); err != nil || userID == "" {
		return account, "", err
	}
	u, err := people.ReadUser(tx, userID)
	return account, u.Login, err
}
