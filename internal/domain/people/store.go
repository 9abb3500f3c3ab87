package people

import (
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
)

const userColumns = `id, login, name, email, avatar_url, platform_admin, approved_at, tos_version, tos_accepted_at, created_at`

type standing struct {
	PlatformAdmin bool
	ApprovedAt    *time.Time
}

var (
	anyUser     = db.Q[int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM users LIMIT 1) AS u`)
	userByID    = db.Q[User](`SELECT ` + userColumns + ` FROM users WHERE id = $1`)
	userByLogin = db.Q[User](`SELECT ` + userColumns + ` FROM users WHERE login = $1`)
	userByEmail = db.Q[string](`SELECT id FROM users WHERE email = $1`)
	emailOf     = db.Q[string](`SELECT email FROM users WHERE id = $1`)
	insertUser  = db.SWith[insertUserArgs](`INSERT INTO users (id, login, name, email, avatar_url, password_hash, platform_admin,
		approved_at, created_at)
		VALUES (:id, :login, :name, :email, :avatar_url, :password_hash, :platform_admin, :approved_at, :created_at)`)
	acceptTerms = db.S(`UPDATE users SET tos_version = $2, tos_accepted_at = $3 WHERE id = $1`)
	addedAtOnce = db.Q[bool](`SELECT added_at_once FROM users WHERE id = $1`)
	setAtOnce   = db.S(`UPDATE users SET added_at_once = $2 WHERE id = $1 AND added_at_once <> $2`)
	approve     = db.S(`UPDATE users SET approved_at = $2 WHERE id = $1 AND approved_at IS NULL`)
	suspend     = db.S(`UPDATE users SET approved_at = NULL WHERE id = $1 AND approved_at IS NOT NULL`)
	operators   = db.Q[string](`SELECT id FROM users WHERE platform_admin = TRUE AND approved_at IS NOT NULL ORDER BY id`).ForUpdate()
	// The time of a sign-in outlives its session, which is deleted when the user
	// signs out.
	noteSignIn      = db.S(`UPDATE users SET last_signed_in_at = $2 WHERE id = $1`)
	standingOf      = db.Q[standing](`SELECT platform_admin, approved_at FROM users WHERE id = $1`)
	passwordOf      = db.Q[struct{ PasswordHash, Email string }](`SELECT password_hash, email FROM users WHERE id = $1`)
	setPassword     = db.S(`UPDATE users SET password_hash = $2 WHERE id = $1 AND (password_hash <> '') = $3`)
	replacePassword = db.Q[string](`UPDATE users SET password_hash = $2 WHERE id = $1 RETURNING email`)
	dismiss         = db.S(`UPDATE users SET platform_admin = FALSE WHERE id = $1 AND platform_admin = TRUE`)
	appoint         = db.S(`UPDATE users SET platform_admin = TRUE, approved_at = COALESCE(approved_at, $2)
		WHERE id = $1 AND (platform_admin = FALSE OR approved_at IS NULL)`)
	credentialsOf = db.Q[Credentials](`SELECT u.id, u.email, u.password_hash,
			COALESCE((SELECT m.account_id FROM memberships m WHERE m.user_id = u.id ORDER BY m.created_at LIMIT 1), '') AS account_id
		FROM users u WHERE u.login = $1 OR u.email = $1`)
	namesOf = db.Q[struct{ Login, Account string }](`SELECT u.login, a.login AS account
		FROM users u JOIN accounts a ON a.id = $2 WHERE u.id = $1`)
	loginTaken = db.Q[int64](`SELECT COUNT(*) FROM (SELECT 1 AS one FROM users WHERE login = $1
		UNION ALL SELECT 1 AS one FROM accounts WHERE login = $1) AS taken`)

	accountByID    = db.Q[Account](`SELECT id, login, kind, tier FROM accounts WHERE id = $1`)
	accountByLogin = db.Q[string](`SELECT id FROM accounts WHERE login = $1`)
	loginOf        = db.Q[string](`SELECT login FROM accounts WHERE id = $1`)
	zoneOf         = db.Q[string](`SELECT zone FROM accounts WHERE id = $1`)
	setZone        = db.S(`UPDATE accounts SET zone = $2 WHERE id = $1 AND zone <> $2`)
	spendCapOf     = db.Q[*int64](`SELECT spend_cap_micros FROM accounts WHERE id = $1`)
	lockAccount    = db.Q[string](`SELECT id FROM accounts WHERE id = $1`).ForUpdate()
	insertAccount  = db.SWith[insertAccountArgs](`INSERT INTO accounts (id, login, kind, tier, seats, created_at)
		VALUES (:id, :login, :kind, :tier, :seats, :created_at)`)
	seatsOf     = db.Q[int64](`SELECT seats FROM accounts WHERE id = $1`)
	setSeats    = db.S(`UPDATE accounts SET seats = $2 WHERE id = $1`)
	setSpendCap = db.S(`UPDATE accounts SET spend_cap_micros = $2 WHERE id = $1`)
	// The time of the review is kept while the account is verified.
	setTier = db.S(`UPDATE accounts SET tier = $2, tier_at = CASE WHEN tier = $2 THEN tier_at ELSE $3 END,
		oss_reviewed_at = CASE WHEN $2 = 'oss_verified' THEN COALESCE(oss_reviewed_at, $3) END WHERE id = $1`)

	roleOf = db.Q[string](`SELECT role FROM memberships WHERE account_id = $1 AND user_id = $2`)
	// roleSince is roleOf for whoever has been a member since a moment, without a break.
	roleSince = db.Q[string](`SELECT role FROM memberships WHERE account_id = $1 AND user_id = $2 AND created_at <= $3`)
	memberAs  = db.Q[string](`SELECT a.id FROM accounts a JOIN memberships m ON m.account_id = a.id
		WHERE m.user_id = $1 AND (a.id = $2 OR a.login = $2)`)
	membershipsOf = db.Q[Membership](`SELECT m.account_id, a.login, a.kind, m.role FROM memberships m
		JOIN accounts a ON a.id = m.account_id WHERE m.user_id = $1 ORDER BY a.login`)
	firstAccount = db.Q[string](`SELECT account_id FROM memberships WHERE user_id = $1 ORDER BY created_at, account_id LIMIT 1`)
	oldestOwned  = db.Q[string](`SELECT account_id FROM memberships WHERE user_id = $1 AND role = 'owner'
		ORDER BY created_at, account_id LIMIT 1`)
	elsewhere    = db.Q[string](`SELECT account_id FROM memberships WHERE user_id = $1 AND account_id <> $2 LIMIT 1`)
	rosterOf     = db.Q[Member](rosterColumns + ` WHERE m.account_id = $1 ORDER BY u.login`)
	memberByID   = db.Q[Member](rosterColumns + ` WHERE m.account_id = $1 AND m.user_id = $2`)
	memberMailed = db.Q[string](`SELECT u.id FROM users u JOIN memberships m ON m.user_id = u.id WHERE m.account_id = $1 AND u.email = $2`)
	addressesOf  = db.Q[Addressee](`SELECT u.id, u.email FROM users u JOIN memberships m ON m.user_id = u.id
		WHERE m.account_id = $1 AND u.email <> '' AND u.approved_at IS NOT NULL ORDER BY u.id`)
	ownersOf = db.Q[string](`SELECT user_id FROM memberships WHERE account_id = $1 AND role = 'owner' ORDER BY user_id`).ForUpdate()
	join     = db.SWith[joinArgs](`INSERT INTO memberships (account_id, user_id, role, created_at)
		VALUES (:account_id, :user_id, :role, :created_at)
		ON CONFLICT DO NOTHING`)
	setRole = db.S(`UPDATE memberships SET role = $3 WHERE account_id = $1 AND user_id = $2`)
	remove  = db.S(`DELETE FROM memberships WHERE account_id = $1 AND user_id = $2`)
	// A person is in one of the two tables: a member, or somebody who was one.
	setFormer = db.S(`INSERT INTO former_members (account_id, user_id) VALUES ($1, $2)`)
	noFormer  = db.S(`DELETE FROM former_members WHERE account_id = $1 AND user_id = $2`)
)

// joinArgs are the parameters of join.
type joinArgs struct {
	AccountID, UserID, Role string
	CreatedAt               int64
}

// insertAccountArgs are the parameters of insertAccount.
type insertAccountArgs struct {
	Account
	Seats     int
	CreatedAt int64
}

// insertUserArgs are the parameters of insertUser.
type insertUserArgs struct {
	User
	PasswordHash string
	CreatedAt    int64
}

const rosterColumns = `SELECT m.user_id, u.login, u.name, u.avatar_url, m.role, m.created_at AS joined_at
		FROM memberships m JOIN users u ON u.id = m.user_id`

// Users reads a page of all users, newest first, searched by login. If approved is
// given, only users who are let through the gate, or only those who are not.
func Users(tx *db.Tx, p op.PageIn, approved *bool) ([]User, error) {
	b := db.Build(`SELECT ` + userColumns + ` FROM users WHERE TRUE`)
	switch {
	case approved == nil:
	case *approved:
		b.SQL(" AND approved_at IS NOT NULL")
	default:
		b.SQL(" AND approved_at IS NULL")
	}
	if p.Q != "" {
		b.Contains("login", p.Q)
	}
	return db.NewestFirst[User](tx, b, p)
}
