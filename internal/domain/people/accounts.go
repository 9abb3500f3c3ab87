package people

import (
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// AccountByID reads an account; db.ErrNoRows if there is none of that id.
func AccountByID(tx *db.Tx, accountID string) (Account, error) { return accountByID.One(tx, accountID) }

// AccountByLogin finds the id of an account.
func AccountByLogin(tx *db.Tx, login string) (accountID string, ok bool, err error) {
	return accountByLogin.Maybe(tx, login)
}

// HasAccount tells whether there is an account of that id.
func HasAccount(tx *db.Tx, accountID string) (bool, error) {
	_, ok, err := loginOf.Maybe(tx, accountID)
	return ok, err
}

// AccountLogin is an account's name, which is also the owner of its
// repositories; db.ErrNoRows if there is no such account.
func AccountLogin(tx *db.Tx, accountID string) (string, error) { return loginOf.One(tx, accountID) }

// LockAccount keeps others from changing or locking an account until the
// transaction ends; false if there is no such account.
func LockAccount(tx *db.Tx, accountID string) (bool, error) {
	_, ok, err := lockAccount.Maybe(tx, accountID)
	return ok, err
}

// SpendCap is the operator's cap on what an account spends in a month, in
// micro-dollars; nil for the default. db.ErrNoRows if there is no such account.
func SpendCap(tx *db.Tx, accountID string) (*int64, error) { return spendCapOf.One(tx, accountID) }

// SetSpendCap sets what SpendCap answers.
func SetSpendCap(tx *db.Tx, accountID string, micros *int64) error {
	_, err := setSpendCap.Exec(tx, accountID, micros)
	return err
}

// SetSeats sets how many AI developers an account pays for.
func SetSeats(tx *db.Tx, accountID string, seats int64) error {
	_, err := setSeats.Exec(tx, accountID, seats)
	return err
}

// SetTier sets the tier of an account and dates its review as an open-source
// project, or forgets the date.
func SetTier(tx *db.Tx, accountID, tier string) error {
	_, err := setTier.Exec(tx, accountID, tier, tx.Micros())
	return err
}

// Role is what a person is in an account; not ok for who does not belong to it.
func Role(tx *db.Tx, accountID, userID string) (role policy.Role, ok bool, err error) {
	r, ok, err := roleOf.Maybe(tx, accountID, userID)
	return policy.Role(r), ok, err
}

// IsMember tells whether a person belongs to the transaction's account.
func IsMember(tx *db.Tx, userID string) (bool, error) {
	_, ok, err := roleOf.Maybe(tx, tx.Account, userID)
	return ok, err
}

// MemberAccount resolves an account's id or login for one of its members.
func MemberAccount(tx *db.Tx, userID, idOrLogin string) (accountID string, ok bool, err error) {
	return memberAs.Maybe(tx, userID, idOrLogin)
}

// Memberships lists the accounts of a person by login.
func Memberships(tx *db.Tx, userID string) ([]Membership, error) {
	return membershipsOf.All(tx, userID)
}

// FirstAccount is the account that a person joined first; not ok for who
// belongs to none.
func FirstAccount(tx *db.Tx, userID string) (accountID string, ok bool, err error) {
	return firstAccount.Maybe(tx, userID)
}

// OldestOwned is the account that a person has owned for longest; empty if
// there is none.
func OldestOwned(tx *db.Tx, userID string) (accountID string, err error) {
	accountID, _, err = oldestOwned.Maybe(tx, userID)
	return accountID, err
}

// BelongsElsewhere tells whether a person belongs to another account, too.
func BelongsElsewhere(tx *db.Tx, userID, accountID string) (bool, error) {
	_, ok, err := elsewhere.Maybe(tx, userID, accountID)
	return ok, err
}

// Roster lists the members of an account by login.
func Roster(tx *db.Tx, accountID string) ([]Member, error) { return rosterOf.All(tx, accountID) }

// MemberByID finds a member of an account.
func MemberByID(tx *db.Tx, accountID, userID string) (Member, bool, error) {
	return memberByID.Maybe(tx, accountID, userID)
}

// HasMemberMailed tells whether the person with an address, in lower case, is
// a member of an account.
func HasMemberMailed(tx *db.Tx, accountID, email string) (bool, error) {
	_, ok, err := memberMailed.Maybe(tx, accountID, email)
	return ok, err
}

// LockOwners lists the owners of an account. Until the transaction ends, no
// other decides about owners.
func LockOwners(tx *db.Tx, accountID string) (userIDs []string, err error) {
	return ownersOf.All(tx, accountID)
}

// Join makes a person a member of an account; false if they are one already.
func Join(tx *db.Tx, accountID, userID string, role policy.Role) (bool, error) {
	n, err := join.Exec(tx, joinArgs{AccountID: accountID, UserID: userID, Role: string(role), CreatedAt: tx.Micros()})
	return n > 0, err
}

// SetRole gives a member another role.
func SetRole(tx *db.Tx, accountID, userID string, role policy.Role) error {
	_, err := setRole.Exec(tx, accountID, userID, string(role))
	return err
}

// Remove takes a member off an account's roster. Their browser sessions are
// signin's to move.
func Remove(tx *db.Tx, accountID, userID string) error {
	_, err := remove.Exec(tx, accountID, userID)
	return err
}
