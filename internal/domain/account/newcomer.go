package account

import (
	"strconv"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// kindUser is the kind of an account that is one person's own.
const kindUser = "user"

// Newcomer is a person whom the platform does not know yet.
type Newcomer struct {
	Email     string // proved, in lower case
	Name      string
	AvatarURL string
	Login     string // what they are called elsewhere; they get a free login like it
	Approved  bool   // through the gate of the closed beta
}

// Meet makes a user of a newcomer. Two who come at once and want one login
// fail with a unique violation, of which the second try knows.
func Meet(tx *db.Tx, n Newcomer) (userID string, err error) {
	wish := n.Login
	if wish == "" {
		wish, _, _ = strings.Cut(n.Email, "@")
	}
	login, err := freeLogin(tx, wish)
	if err != nil {
		return "", err
	}
	if n.Name == "" {
		n.Name = login
	}
	var approved *int64
	if n.Approved {
		now := tx.Micros()
		approved = &now
	}
	userID = id.New()
	if _, err := insertUser.Exec(tx, userID, login, n.Name, n.Email, "", false, approved, tx.Micros()); err != nil {
		return "", err
	}
	_, err = setAvatar.Exec(tx, userID, n.AvatarURL)
	return userID, err
}

// Home makes an account of a user's own, for who belongs to no other.
func Home(tx *db.Tx, userID, tier string, seats int) (accountID string, err error) {
	u, err := userByID.One(tx, userID)
	if err != nil {
		return "", err
	}
	login, err := loginFor(tx, u.Login)
	if err != nil {
		return "", err
	}
	accountID = id.New()
	if _, err := insertAccount.Exec(tx, accountID, login, kindUser, tier, seats, tx.Micros()); err != nil {
		return "", err
	}
	_, err = insertMember.Exec(tx, accountID, userID, string(policy.Owner), tx.Micros())
	return accountID, err
}

// loginFor is the user's own login for their account, unless another account
// took it in the meantime.
func loginFor(tx *db.Tx, login string) (string, error) {
	_, taken, err := accountByLogin.Maybe(tx, login)
	if err != nil || !taken {
		return login, err
	}
	return freeLogin(tx, login)
}

// freeLogin is a login like the one wished for that no user and no account
// has.
func freeLogin(tx *db.Tx, wish string) (string, error) {
	base := plainLogin(wish)
	login := base
	for n := 2; ; n++ {
		taken, err := loginTaken.One(tx, login)
		if err != nil || taken == 0 {
			return login, err
		}
		suffix := "-" + strconv.Itoa(n)
		if n > 20 {
			suffix = "-" + id.Random()[:8]
		}
		login = strings.TrimRight(base[:min(len(base), 39-len(suffix))], "-") + suffix
	}
}

// plainLogin keeps of a name what may be part of a login.
func plainLogin(name string) string {
	login := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, strings.ToLower(name))
	login = strings.Trim(login[:min(len(login), 39)], "-")
	if login == "" {
		return "user"
	}
	return login
}
