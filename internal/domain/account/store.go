package account

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
)

// UserOf returns a person as clients see them.
func UserOf(u people.User) User {
	return User{ID: u.ID, Login: u.Login, Name: u.Name, Email: u.Email, AvatarURL: u.AvatarURL, PlatformAdmin: u.PlatformAdmin}
}

// memberships lists the accounts of a user by login.
func memberships(tx *db.Tx, userID string) (out []Membership, err error) {
	rows, err := people.Memberships(tx, userID)
	for _, m := range rows {
		out = append(out, Membership{AccountID: m.AccountID, Login: m.Login, Role: m.Role})
	}
	return out, err
}
