package people

import (
	"yardmaster/internal/db"
)

// HasUsers tells whether there is any user, that is, whether first boot is over.
func HasUsers(tx *db.Tx) (bool, error) {
	n, err := anyUser.One(tx)
	return n > 0, err
}

// ReadUser reads a user. It returns db.ErrNoRows if there is none with that id.
func ReadUser(tx *db.Tx, userID string) (User, error) { return userByID.One(tx, userID) }

// UserByID finds a user.
func UserByID(tx *db.Tx, userID string) (User, bool, error) { return userByID.Maybe(tx, userID) }

// UserByLogin finds a user by login.
func UserByLogin(tx *db.Tx, login string) (User, bool, error) { return userByLogin.Maybe(tx, login) }

// HasUser tells whether there is a user with that id.
func HasUser(tx *db.Tx, userID string) (bool, error) {
	_, ok, err := userByID.Maybe(tx, userID)
	return ok, err
}

// UserByEmail finds the id of the user with an address, in lower case.
func UserByEmail(tx *db.Tx, email string) (userID string, ok bool, err error) {
	return userByEmail.Maybe(tx, email)
}

// LockByEmail is UserByEmail and locks the user until the transaction ends, so that
// one transaction at a time decides about grants to the user.
func LockByEmail(tx *db.Tx, email string) (userID string, ok bool, err error) {
	return userByEmail.ForUpdate().Maybe(tx, email)
}

// Lock locks a user until the transaction ends and returns the user's address. It
// returns db.ErrNoRows if there is no such user.
func Lock(tx *db.Tx, userID string) (email string, err error) {
	return emailOf.ForUpdate().One(tx, userID)
}

// Email returns the address of a user. It returns db.ErrNoRows if there is no such
// user.
func Email(tx *db.Tx, userID string) (string, error) { return emailOf.One(tx, userID) }

// Standing tells whether a user is an operator and whether they are let through the
// gate. It returns db.ErrNoRows if there is no such user.
func Standing(tx *db.Tx, userID string) (admin, approved bool, err error) {
	u, err := standingOf.One(tx, userID)
	return u.PlatformAdmin, u.ApprovedAt != nil, err
}

// Hears tells whether a user may be told what happens in tx.Account: they are a member, and
// let through the gate.
func Hears(tx *db.Tx, userID string) (bool, error) {
	if _, member, err := Role(tx, tx.Account, userID); err != nil || !member {
		return false, err
	}
	_, approved, err := Standing(tx, userID)
	return approved, err
}

// Password returns the hash of a user's password and the user's address. It returns
// db.ErrNoRows if there is no such user.
func Password(tx *db.Tx, userID string) (hash, email string, err error) {
	u, err := passwordOf.One(tx, userID)
	return u.PasswordHash, u.Email, err
}

// SetPassword replaces the hash of a user's password. It returns false if the user does
// not have a password, or has one, otherwise than had tells.
func SetPassword(tx *db.Tx, userID, hash string, had bool) (bool, error) {
	n, err := setPassword.Exec(tx, userID, hash, had)
	return n > 0, err
}

// ReplacePassword replaces the hash of a user's password, whether or not there was one, and
// returns the user's address. It returns db.ErrNoRows if there is no such user.
func ReplacePassword(tx *db.Tx, userID, hash string) (email string, err error) {
	return replacePassword.One(tx, userID, hash)
}

// Appoint makes a user an operator, and lets them through the gate. It returns false if they
// are both.
func Appoint(tx *db.Tx, userID string) (bool, error) {
	n, err := appoint.Exec(tx, userID, tx.Micros())
	return n > 0, err
}

// Dismiss makes a user no longer an operator. It returns false if they are none.
func Dismiss(tx *db.Tx, userID string) (bool, error) {
	n, err := dismiss.Exec(tx, userID)
	return n > 0, err
}

// CredentialsOf finds a user by login or address, both in lower case.
func CredentialsOf(tx *db.Tx, loginOrEmail string) (Credentials, bool, error) {
	return credentialsOf.Maybe(tx, loginOrEmail)
}

// Names returns the logins of a user and of an account. ok is false unless both
// exist.
func Names(tx *db.Tx, userID, accountID string) (login, account string, ok bool, err error) {
	n, ok, err := namesOf.Maybe(tx, userID, accountID)
	return n.Login, n.Account, ok, err
}

// AcceptTerms records that a user has accepted a version of the terms of service at
// the transaction's time.
func AcceptTerms(tx *db.Tx, userID, version string) error {
	_, err := acceptTerms.Exec(tx, userID, version, tx.Now)
	return err
}

// AddedAtOnce tells whether a user allows accounts to make them a member without asking. It
// returns false if there is no such user.
func AddedAtOnce(tx *db.Tx, userID string) (bool, error) {
	allowed, _, err := addedAtOnce.Maybe(tx, userID)
	return allowed, err
}

// SetAddedAtOnce sets what AddedAtOnce tells. It returns false if nothing changes.
func SetAddedAtOnce(tx *db.Tx, userID string, allowed bool) (bool, error) {
	n, err := setAtOnce.Exec(tx, userID, allowed)
	return n > 0, err
}

// NoteSignIn records that a user has signed in at the transaction's time.
func NoteSignIn(tx *db.Tx, userID string) error {
	_, err := noteSignIn.Exec(tx, userID, tx.Micros())
	return err
}

// Approve lets a user through the gate of the closed beta. It returns false if there
// is no such user, or if they had been let through before.
func Approve(tx *db.Tx, userID string) (bool, error) {
	n, err := approve.Exec(tx, userID, tx.Micros())
	return n > 0, err
}

// Suspend sends a user back to the waitlist. It returns false if there is no such
// user, or if they are on the waitlist already.
func Suspend(tx *db.Tx, userID string) (bool, error) {
	n, err := suspend.Exec(tx, userID)
	return n > 0, err
}

// LockOperators lists the approved operators and locks them until the transaction
// ends, so that no other transaction decides about operators.
func LockOperators(tx *db.Tx) (userIDs []string, err error) { return operators.All(tx) }
