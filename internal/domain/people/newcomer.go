package people

import (
	"strconv"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// Newcomer is a person who has no user yet.
type Newcomer struct {
	Email     string // proved, in lower case
	Name      string
	AvatarURL string
	Login     string // their login elsewhere; they get a free login like it
	Approved  bool   // let through the gate of the closed beta
}

// Meet makes a user of a newcomer. If two newcomers ask for the same login at once,
// one fails with a unique violation; a retry takes another login.
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
	u := User{ID: id.New(), Login: login, Name: n.Name, Email: n.Email, AvatarURL: n.AvatarURL}
	if n.Approved {
		u.ApprovedAt = &tx.Now
	}
	return u.ID, add(tx, u, "")
}

func add(tx *db.Tx, u User, passwordHash string) error {
	_, err := insertUser.Exec(tx, insertUserArgs{User: u, PasswordHash: passwordHash, CreatedAt: tx.Micros()})
	return err
}

// Found makes the first user, whose ID the caller gives and who is let through the
// gate, and an account that the user owns. The account's tier is TierSelfHosted.
func Found(tx *db.Tx, u User, passwordHash, accountID, accountLogin string, seats int) error {
	u.ApprovedAt = &tx.Now
	if err := add(tx, u, passwordHash); err != nil {
		return err
	}
	return open(tx, u.ID, Account{accountID, accountLogin, KindOrganization, TierSelfHosted}, seats)
}

// open makes an account with an owner.
func open(tx *db.Tx, ownerID string, a Account, seats int) error {
	if err := openRow(tx, a, seats); err != nil {
		return err
	}
	_, err := Join(tx, a.ID, ownerID, policy.Owner)
	return err
}

// OwnAccount makes a personal account for a user who has no account. seats is its
// number of AI developers. It returns db.ErrNoRows if there is no such user.
func OwnAccount(tx *db.Tx, userID string, tier Tier, seats int) (accountID string, err error) {
	u, err := userByID.One(tx, userID)
	if err != nil {
		return "", err
	}
	login, err := loginFor(tx, u.Login)
	if err != nil {
		return "", err
	}
	accountID = id.New()
	return accountID, open(tx, userID, Account{accountID, login, KindUser, tier}, seats)
}

// loginFor returns the user's login for their account, or a free login like it if
// another account has it.
func loginFor(tx *db.Tx, login string) (string, error) {
	_, taken, err := accountByLogin.Maybe(tx, login)
	if err != nil || !taken {
		return login, err
	}
	return freeLogin(tx, login)
}

// freeLogin returns a login like wish that no user and no account has.
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

// plainLogin turns a name into a login: characters that a login cannot have become
// hyphens.
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

// OpenAccount makes the account of an organisation that has no members yet, with a
// login like wish that is free. The account's tier is TierSelfHosted; seats is its
// number of AI developers.
func OpenAccount(tx *db.Tx, wish string, seats int) (accountID string, err error) {
	login, err := freeLogin(tx, wish)
	if err != nil {
		return "", err
	}
	accountID = id.New()
	return accountID, openRow(tx, Account{accountID, login, KindOrganization, TierSelfHosted}, seats)
}

func openRow(tx *db.Tx, a Account, seats int) error {
	if _, err := insertAccount.Exec(tx, insertAccountArgs{Account: a, Seats: seats, CreatedAt: tx.Micros()}); err != nil {
		return err
	}
	return Placed.Send(tx, a.ID)
}
