package seed

import "yardmaster/internal/db"

var (
	addAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, spend_cap_micros, created_at)
		VALUES ($1, $2, 'organization', $3, $4, $5, 0)`)
	addUser = db.S(`INSERT INTO users (id, login, name, email, password_hash, approved_at, platform_admin, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`)
	addMember = db.S(`INSERT INTO memberships (account_id, user_id, role, created_at) VALUES ($1, $2, $3, $4)`)
	addRepo   = db.S(`INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, policy_yml, created_at)
		VALUES ($1, $2, $3, $4, $5, 'main', $6, $7, $8, 0)`)
	addBox = db.S(`INSERT INTO boxes (id, account_id, name, owner_target, owner_id, state, nkey, token_hash, token_expires_at, slots, agents,
		isolation, presence, created_at) VALUES ($1, $2, $1, 'org', $2, 'enrolled', '', $1, 0, $3, $4, '["landlock"]', 'online', 0)`)
	addTask = db.S(`INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, queued_at, branch, template, pr_id,
		budget_micros, created_by, requested_by, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, 'default', $10, $11, 'system', $12, 0, 0)`)
	addRun = db.S(`INSERT INTO runs (id, account_id, task_id, repo_id, attempt, box_id, claim_id, state, lease_expires_at, agent, template,
		created_at, progress_at) VALUES ($1, $2, $3, $4, 1, $5, $1, 'live', 0, 'builtin', 'default', 0, 0)`)
	addPull = db.S(`INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref, base_ref, head_sha, base_sha,
		task_id, author_kind, created_at, updated_at, merged_at)
		VALUES ($1, $2, $3, $4, 't', '', '', $5, $6, 'main', $7, 'base', $8, 'agent', 0, 0, $9)`)
	addAction = db.S(`INSERT INTO pull_actions (id, account_id, pr_id, kind, head_sha, state, decided_by, requested_at, decided_at,
		expires_at, due_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, 9, 0)`)
	addPlan = db.S(`INSERT INTO plans (id, account_id, repo_id, title, overview, source, revision, hold, created_by, created_at)
		VALUES ($1, $2, $3, 't', '', 'file', 1, FALSE, 'system', 0)`)
	addSession = db.S(`INSERT INTO sessions (id, account_id, repo_id, run_id, task_id, trigger, kind, requested_by, started_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`)
)

// Changes to rows of a domain that a test is not of. Their parameters are the
// id of the row, or the account and the user, and then the new values.
var (
	SetAdmin    = db.S(`UPDATE users SET platform_admin = TRUE WHERE id = $1`)
	SetRole     = db.S(`UPDATE memberships SET role = $3 WHERE account_id = $1 AND user_id = $2`)
	DropMember  = db.S(`DELETE FROM memberships WHERE account_id = $1 AND user_id = $2`)
	SetEnabled  = db.S(`UPDATE repos SET enabled = $2 WHERE id = $1`)
	SetPolicy   = db.S(`UPDATE repos SET policy_yml = $2 WHERE id = $1`)
	SetPresence = db.S(`UPDATE boxes SET presence = $2 WHERE id = $1`)
	SetState    = db.S(`UPDATE boxes SET state = $2 WHERE id = $1`)
	SetUnfit    = db.S(`UPDATE boxes SET unfit = $2 WHERE id = $1`)
	SetTarget   = db.S(`UPDATE boxes SET owner_target = $2, owner_id = $3 WHERE id = $1`)
	SetLevels   = db.S(`UPDATE boxes SET isolation = $2, isolation_holds = $3 WHERE id = $1`)
	CancelTask  = db.S(`UPDATE tasks SET status = 'cancelled' WHERE id = $1`)
	TouchTask   = db.S(`UPDATE tasks SET updated_at = updated_at + 1 WHERE id = $1`)
	SetPull     = db.S(`UPDATE tasks SET pr_id = $2 WHERE id = $1`)
	SetReview   = db.S(`UPDATE tasks SET kind = 'review', pr_id = $2 WHERE id = $1`)
	SetPlan     = db.S(`UPDATE tasks SET pr_id = $2, plan_id = $3 WHERE id = $1`)
	SetNeeds    = db.S(`UPDATE pulls SET needs = $2 WHERE id = $1`)
	EndRun      = db.S(`UPDATE runs SET ended_at = 1, state = 'ended' WHERE id = $1`)

	RevokeTokens = db.S(`UPDATE tokens SET revoked_at = $1`) // of every account
	PutTemplate  = db.S(`INSERT INTO templates (account_id, name, body, created_at, updated_at) VALUES ($1, $2, $3, 0, 0)
		ON CONFLICT (account_id, name) DO UPDATE SET body = excluded.body`)
	PutFloors = db.S(`INSERT INTO account_floors (account_id, floors, updated_at, updated_by) VALUES ($1, $2, 0, 'user:ada')
		ON CONFLICT (account_id) DO UPDATE SET floors = excluded.floors`)
	DeleteTemplate = db.S(`DELETE FROM templates WHERE account_id = $1 AND name = $2`)
)
