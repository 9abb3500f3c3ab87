package seed

import "yardmaster/internal/db"

var (
	addAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, spend_cap_micros, created_at)
		VALUES ($1, $2, 'organization', $3, $4, $5, 0)`)
	addUser = db.S(`INSERT INTO users (id, login, name, email, password_hash, approved_at, platform_admin, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`)
	addMember = db.S(`INSERT INTO memberships (account_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)`)
)
