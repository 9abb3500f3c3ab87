package member

import "yardmaster/internal/db"

var (
	roster = db.Q[OrgMember](`SELECT m.user_id, u.login, u.name, u.avatar_url, m.role, m.created_at AS joined_at
		FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.account_id = $1 ORDER BY u.login`)
	byUser = db.Q[OrgMember](`SELECT m.user_id, u.login, u.name, u.avatar_url, m.role, m.created_at AS joined_at
		FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.account_id = $1 AND m.user_id = $2`)
	// What is decided about owners is decided by one at a time.
	owners  = db.Q[string](`SELECT user_id FROM memberships WHERE account_id = $1 AND role = 'owner' ORDER BY user_id`).ForUpdate()
	setRole = db.S(`UPDATE memberships SET role = $3 WHERE account_id = $1 AND user_id = $2`)
	remove  = db.S(`DELETE FROM memberships WHERE account_id = $1 AND user_id = $2`)
	// Browsers that stood in the account go on in another one of the user's, if
	// there is one.
	moveSessions = db.S(`UPDATE signins SET account_id = (SELECT m.account_id FROM memberships m WHERE m.user_id = $2 ORDER BY m.created_at, m.account_id LIMIT 1)
		WHERE account_id = $1 AND user_id = $2 AND EXISTS (SELECT 1 FROM memberships m WHERE m.user_id = $2)`)
	dropSessions = db.S(`DELETE FROM signins WHERE account_id = $1 AND user_id = $2`)

	userByLogin = db.Q[struct{ ID, Email string }](`SELECT id, email FROM users WHERE login = $1`)
	elsewhere   = db.Q[string](`SELECT account_id FROM memberships WHERE user_id = $1 AND account_id <> $2 LIMIT 1`)
	ownAccount  = db.Q[string](`SELECT a.id FROM accounts a JOIN memberships m ON m.account_id = a.id WHERE m.user_id = $1 AND (a.id = $2 OR a.login = $2)`)
	memberEmail = db.Q[string](`SELECT u.id FROM users u JOIN memberships m ON m.user_id = u.id WHERE m.account_id = $1 AND u.email = $2`)
	userLogin   = db.Q[string](`SELECT login FROM users WHERE id = $1`)
	tenantLogin = db.Q[string](`SELECT login FROM accounts WHERE id = $1`)
)

// drop takes a member off the roster and out of the account's sessions.
func (s *Service) drop(tx *db.Tx, m OrgMember) error {
	for _, stmt := range []db.Stmt{remove, moveSessions, dropSessions} {
		if _, err := stmt.Exec(tx, tx.Account, m.UserID); err != nil {
			return err
		}
	}
	return s.Invites.Became(tx, tx.Account, m.UserID, m.Role, "")
}
