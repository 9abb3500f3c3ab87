package account

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

type userRow struct {
	ID            string
	Login         string
	Name          string
	Email         string
	AvatarURL     string `db:"avatar_url"`
	PlatformAdmin bool
	ApprovedAt    *time.Time
	TOSVersion    string     `db:"tos_version"`
	TOSAcceptedAt *time.Time `db:"tos_accepted_at"`
}

func (u userRow) user() *User {
	return &User{ID: u.ID, Login: u.Login, Name: u.Name, Email: u.Email, AvatarURL: u.AvatarURL, PlatformAdmin: u.PlatformAdmin}
}

var (
	userByID = db.Q[userRow](`SELECT id, login, name, email, avatar_url, platform_admin, approved_at, tos_version, tos_accepted_at
		FROM users WHERE id = $1`)
	accountByID   = db.Q[struct{ ID, Login, Kind, Tier string }](`SELECT id, login, kind, tier FROM accounts WHERE id = $1`)
	membershipsOf = db.Q[Membership](`SELECT m.account_id, a.login, m.role FROM memberships m
		JOIN accounts a ON a.id = m.account_id WHERE m.user_id = $1 ORDER BY a.login`)
	anyUser    = db.Q[int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM users LIMIT 1) AS u`)
	insertUser = db.S(`INSERT INTO users (id, login, name, email, password_hash, platform_admin, approved_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`)
	insertAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ($1, $2, $3, $4, $5, $6)`)
	insertMember  = db.S(`INSERT INTO memberships (account_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)`)
	acceptTerms   = db.S(`UPDATE users SET tos_version = $2, tos_accepted_at = $3 WHERE id = $1`)
	accountByName = db.Q[string](`SELECT a.id FROM accounts a JOIN memberships m ON m.account_id = a.id
		WHERE m.user_id = $1 AND (a.id = $2 OR a.login = $2)`)
	repoint  = db.Q[string](`UPDATE signins SET account_id = $3 WHERE user_id = $1 AND hash LIKE $2 RETURNING hash`)
	isMember = db.Q[int64](`SELECT COUNT(*) FROM memberships WHERE account_id = $1 AND user_id = $2`)
	loginOf  = db.Q[string](`SELECT login FROM accounts WHERE id = $1`)

	setAvatar      = db.S(`UPDATE users SET avatar_url = $2 WHERE id = $1`)
	accountByLogin = db.Q[string](`SELECT id FROM accounts WHERE login = $1`)
	loginTaken     = db.Q[int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM users WHERE login = $1 UNION ALL SELECT 1 AS one FROM accounts WHERE login = $1) AS taken`)
)

// HasUsers tells whether first boot is behind us.
func HasUsers(tx *db.Tx) (bool, error) {
	n, err := anyUser.One(tx)
	return n > 0, err
}

// MemberAccount resolves an account's id or login for one of its members.
func MemberAccount(tx *db.Tx, userID, idOrLogin string) (accountID string, ok bool, err error) {
	return accountByName.Maybe(tx, userID, idOrLogin)
}

// IsMember tells whether a user belongs to the transaction's account.
func IsMember(tx *db.Tx, userID string) (bool, error) {
	n, err := isMember.One(tx, tx.Account, userID)
	return n > 0, err
}

// Login is the account's name, which is also the owner of its repositories.
func Login(tx *db.Tx, accountID string) (string, error) { return loginOf.One(tx, accountID) }

// create makes a user who owns a new account.
func create(tx *db.Tx, u userRow, passwordHash, accountID, accountLogin string, seats int) error {
	if _, err := insertUser.Exec(tx, u.ID, u.Login, u.Name, u.Email, passwordHash, u.PlatformAdmin, tx.Micros(), tx.Micros()); err != nil {
		return err
	}
	if _, err := insertAccount.Exec(tx, accountID, accountLogin, "organization", TierSelfHosted, seats, tx.Micros()); err != nil {
		return err
	}
	_, err := insertMember.Exec(tx, accountID, u.ID, string(policy.Owner), tx.Micros())
	return err
}
