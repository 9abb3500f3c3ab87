package people

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// AccountByID reads an account. It returns db.ErrNoRows if there is none with that
// id.
func AccountByID(tx *db.Tx, accountID string) (Account, error) { return accountByID.One(tx, accountID) }

// AccountByLogin finds the id of an account by its login.
func AccountByLogin(tx *db.Tx, login string) (accountID string, ok bool, err error) {
	return accountByLogin.Maybe(tx, login)
}

// HasAccount tells whether there is an account with that id.
func HasAccount(tx *db.Tx, accountID string) (bool, error) {
	_, ok, err := loginOf.Maybe(tx, accountID)
	return ok, err
}

// AccountLogin returns the login of an account, which is also the owner of its
// repositories. It returns db.ErrNoRows if there is no such account.
func AccountLogin(tx *db.Tx, accountID string) (string, error) { return loginOf.One(tx, accountID) }

// LockAccount locks an account until the transaction ends. It returns false if there
// is no such account.
func LockAccount(tx *db.Tx, accountID string) (bool, error) {
	_, ok, err := lockAccount.Maybe(tx, accountID)
	return ok, err
}

// Zone returns the name of the time zone of an account. It returns db.ErrNoRows if there
// is no such account.
func Zone(tx *db.Tx, accountID string) (string, error) { return zoneOf.One(tx, accountID) }

// SetZone sets the zone that Zone returns. It returns false if it is that already.
func SetZone(tx *db.Tx, accountID, zone string) (bool, error) {
	n, err := setZone.Exec(tx, accountID, zone)
	if err != nil || n == 0 {
		return false, err
	}
	return true, Placed.Send(tx, accountID)
}

// Placed is sent with the id of an account.
var Placed = event.DeclareSignal[string]("account.placed", "An account was made, or has another time zone.")

// SpendCap returns the operator's cap on the monthly spending of an account, in
// micro-dollars; nil means the default. It returns db.ErrNoRows if there is no such
// account.
func SpendCap(tx *db.Tx, accountID string) (*int64, error) { return spendCapOf.One(tx, accountID) }

// SetSpendCap sets the cap that SpendCap returns.
func SetSpendCap(tx *db.Tx, accountID string, micros *int64) error {
	_, err := setSpendCap.Exec(tx, accountID, micros)
	return err
}

// Seats returns how many AI developers an account has of its own. It returns db.ErrNoRows if
// there is no such account.
func Seats(tx *db.Tx, accountID string) (int64, error) { return seatsOf.One(tx, accountID) }

// SetSeats sets how many AI developers an account pays for.
func SetSeats(tx *db.Tx, accountID string, seats int64) error {
	_, err := setSeats.Exec(tx, accountID, seats)
	return err
}

// SetTier sets the tier of an account. For TierOSS it keeps or sets the time of the
// review as an open-source project; for other tiers it clears that time.
func SetTier(tx *db.Tx, accountID string, tier Tier) error {
	_, err := setTier.Exec(tx, accountID, tier, tx.Micros())
	return err
}

// Role returns the role of a user in an account. ok is false for a user who is not a
// member.
func Role(tx *db.Tx, accountID, userID string) (role policy.Role, ok bool, err error) {
	r, ok, err := roleOf.Maybe(tx, accountID, userID)
	return policy.Role(r), ok, err
}

// Apart is by how much the clocks of nodes may differ: of two times that are closer, no one can tell
// which was first.
const Apart = 10 * time.Minute

// RoleSince is Role for whoever has been a member since a moment: ok is false for others, and for
// whoever was removed and added again more than Apart later. What somebody has set out holds only as
// long as that.
func RoleSince(tx *db.Tx, accountID, userID string, at time.Time) (role policy.Role, ok bool, err error) {
	text, ok, err := roleSince.Maybe(tx, accountID, userID, db.Micros(at.Add(Apart)))
	return policy.Role(text), ok, err
}

// IsMember tells whether a user is a member of tx.Account.
func IsMember(tx *db.Tx, userID string) (bool, error) {
	_, ok, err := roleOf.Maybe(tx, tx.Account, userID)
	return ok, err
}

// MemberAccount finds an account of a member by the account's id or login.
func MemberAccount(tx *db.Tx, userID, idOrLogin string) (accountID string, ok bool, err error) {
	return memberAs.Maybe(tx, userID, idOrLogin)
}

// Memberships lists the accounts of a user by login.
func Memberships(tx *db.Tx, userID string) ([]Membership, error) {
	return membershipsOf.All(tx, userID)
}

// FirstAccount returns the account that a user joined first. ok is false for a user
// without accounts.
func FirstAccount(tx *db.Tx, userID string) (accountID string, ok bool, err error) {
	return firstAccount.Maybe(tx, userID)
}

// OldestOwned returns the account that a user has owned longest. It is empty if there
// is none.
func OldestOwned(tx *db.Tx, userID string) (accountID string, err error) {
	accountID, _, err = oldestOwned.Maybe(tx, userID)
	return accountID, err
}

// BelongsElsewhere tells whether a user is a member of another account as well.
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

// Addressee is a person who can be written to.
type Addressee struct{ ID, Email string }

// Addressees lists the members of an account who have an address and are let through the
// gate.
func Addressees(tx *db.Tx, accountID string) ([]Addressee, error) {
	return addressesOf.All(tx, accountID)
}

// HasMemberMailed tells whether the user with an address, in lower case, is a member
// of an account.
func HasMemberMailed(tx *db.Tx, accountID, email string) (bool, error) {
	_, ok, err := memberMailed.Maybe(tx, accountID, email)
	return ok, err
}

// LockOwners lists the owners of an account and locks their memberships until the
// transaction ends, so that no other transaction decides about owners.
func LockOwners(tx *db.Tx, accountID string) (userIDs []string, err error) {
	return ownersOf.All(tx, accountID)
}

// Join makes a user a member of an account. It returns false if they are a member
// already.
func Join(tx *db.Tx, accountID, userID string, role policy.Role) (bool, error) {
	n, err := join.Exec(tx, joinArgs{AccountID: accountID, UserID: userID, Role: string(role), CreatedAt: tx.Micros()})
	if err != nil || n == 0 {
		return false, err
	}
	_, err = noFormer.Exec(tx, accountID, userID)
	return true, err
}

// SetRole gives a member another role.
func SetRole(tx *db.Tx, accountID, userID string, role policy.Role) error {
	_, err := setRole.Exec(tx, accountID, userID, string(role))
	return err
}

// Remove removes a member from an account, which still knows who they were. The member's
// browser sessions are left to signin.LeaveAccount.
func Remove(tx *db.Tx, accountID, userID string) error {
	n, err := remove.Exec(tx, accountID, userID)
	if err != nil || n == 0 {
		return err
	}
	_, err = setFormer.Exec(tx, accountID, userID)
	return err
}
