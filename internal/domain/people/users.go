package people

import (
	"yardmaster/internal/db"
)

// HasUsers tells whether there is a person at all: whether first boot is over.
func HasUsers(tx *db.Tx) (bool, error) {
	n, err := anyUser.One(tx)
	return n > 0, err
}

// ReadUser reads a person; db.ErrNoRows if there is none of that id.
func ReadUser(tx *db.Tx, userID string) (User, error) { return userByID.One(tx, userID) }

// UserByID finds a person.
func UserByID(tx *db.Tx, userID string) (User, bool, error) { return userByID.Maybe(tx, userID) }

// UserByLogin finds a person by login.
func UserByLogin(tx *db.Tx, login string) (User, bool, error) { return userByLogin.Maybe(tx, login) }

// HasUser tells whether there is a person of that id.
func HasUser(tx *db.Tx, userID string) (bool, error) {
	_, ok, err := userByID.Maybe(tx, userID)
	return ok, err
}

// UserByEmail finds the id of the person with an address in lower case.
func UserByEmail(tx *db.Tx, email string) (userID string, ok bool, err error) {
	return userByEmail.Maybe(tx, email)
}

// LockByEmail is UserByEmail that keeps others from changing or locking the
// person until the transaction ends: what a person is given is decided by one
// at a time.
func LockByEmail(tx *db.Tx, email string) (userID string, ok bool, err error) {
	return userByEmail.ForUpdate().Maybe(tx, email)
}

// Lock keeps others from changing or locking a person until the transaction
// ends, and answers the person's address; db.ErrNoRows if there is no such
// person.
func Lock(tx *db.Tx, userID string) (email string, err error) {
	return emailOf.ForUpdate().One(tx, userID)
}

// Email is the address of a person; db.ErrNoRows if there is no such person.
func Email(tx *db.Tx, userID string) (string, error) { return emailOf.One(tx, userID) }

// Standing tells whether a person runs the platform and whether they are
// through the gate; db.ErrNoRows if there is no such person.
func Standing(tx *db.Tx, userID string) (admin, approved bool, err error) {
	u, err := standingOf.One(tx, userID)
	return u.PlatformAdmin, u.ApprovedAt != nil, err
}

// Password is the hash of a person's password, with the person's address;
// db.ErrNoRows if there is no such person.
func Password(tx *db.Tx, userID string) (hash, email string, err error) {
	u, err := passwordOf.One(tx, userID)
	return u.PasswordHash, u.Email, err
}

// CredentialsOf finds a person by login or address, both in lower case.
func CredentialsOf(tx *db.Tx, loginOrEmail string) (Credentials, bool, error) {
	return credentialsOf.Maybe(tx, loginOrEmail)
}

// Names are the logins of a person and of an account; not ok if there is not
// both.
func Names(tx *db.Tx, userID, accountID string) (login, account string, ok bool, err error) {
	n, ok, err := namesOf.Maybe(tx, userID, accountID)
	return n.Login, n.Account, ok, err
}

// AcceptTerms notes that a person has accepted a version of the terms of
// service at the transaction's time.
func AcceptTerms(tx *db.Tx, userID, version string) error {
	_, err := acceptTerms.Exec(tx, userID, version, tx.Now)
	return err
}

// NoteSignIn notes that a person has signed in at the transaction's time.
func NoteSignIn(tx *db.Tx, userID string) error {
	_, err := noteSignIn.Exec(tx, userID, tx.Micros())
	return err
}

// Approve lets a person through the gate of the closed beta; false if there is
// no such person, or they were through.
func Approve(tx *db.Tx, userID string) (bool, error) {
	n, err := approve.Exec(tx, userID, tx.Micros())
	return n > 0, err
}

// Suspend sends a person back behind the gate; false if there is no such
// person, or they were behind it.
func Suspend(tx *db.Tx, userID string) (bool, error) {
	n, err := suspend.Exec(tx, userID)
	return n > 0, err
}

// LockOperators lists the persons who run the platform and may act. Until the
// transaction ends, no other decides about operators.
func LockOperators(tx *db.Tx) (userIDs []string, err error) { return operators.All(tx) }
