// Package seed puts rows into a test's database without the domains that own
// them: the accounts, people, repositories, boxes and tasks that a test is not
// about. A column that must have a value gets one here, in one place, and a
// test names only what it is about. It imports no domain, so that the tests
// inside of every domain may use it.
package seed

import (
	"cmp"

	"yardmaster/internal/db"
)

// Row is something that can be put into the database.
type Row interface {
	// Add inserts the row. It returns the fault of the database.
	Add(tx *db.Tx) error
}

// Add inserts rows in their order. It returns the first fault of the database.
func Add(tx *db.Tx, rows ...Row) error {
	for _, r := range rows {
		if err := r.Add(tx); err != nil {
			return err
		}
	}
	return nil
}

// Account is an organization. Login, Tier and Seats are the ID, self_hosted
// and 2 unless they are said.
type Account struct {
	ID, Login, Tier string
	Seats           int
	Cap             *int64 // spend cap in micro-dollars; nil: none
}

// Add inserts the account. It returns the fault of the database.
func (a Account) Add(tx *db.Tx) error {
	return done(addAccount.Exec(tx, a.ID, cmp.Or(a.Login, a.ID), cmp.Or(a.Tier, "self_hosted"), cmp.Or(a.Seats, 2), a.Cap))
}

// User is a person, approved at time 0 unless Waiting. Login, Name and Email
// are the ID, the login and the login at example.com unless they are said.
type User struct {
	ID, Login, Name, Email string
	Password               string // hash
	Waiting                bool   // for approval
	Operator               bool
}

// Add inserts the user. It returns the fault of the database.
func (u User) Add(tx *db.Tx) error {
	login := cmp.Or(u.Login, u.ID)
	approved := new(int64)
	if u.Waiting {
		approved = nil
	}
	return done(addUser.Exec(tx, u.ID, login, cmp.Or(u.Name, login), cmp.Or(u.Email, login+"@example.com"), u.Password, approved, u.Operator))
}

// Member is a person's place in an account, a member's unless Role is said.
type Member struct {
	Account, User, Role string
	Since               int64 // microseconds
}

// Add inserts the membership. It returns the fault of the database.
func (m Member) Add(tx *db.Tx) error {
	return done(addMember.Exec(tx, m.Account, m.User, cmp.Or(m.Role, "member"), m.Since))
}

func done(_ int64, err error) error { return err }
