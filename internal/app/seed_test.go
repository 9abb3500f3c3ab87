package app

import (
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

var (
	addRepo = db.S(`INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled, created_at)
		VALUES ($1, $2, $3, 'seeded', 'builtin', 'main', FALSE, TRUE, 0)`)
	addTask = db.SWith[seedTask](`INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, queued_at, branch,
		template, created_by, created_at, updated_at)
		VALUES (:id, :account_id, :repo_id, 'work', 'queued', 'Seeded', 'Nothing.', 'running', 0, 'svc/seeded', 'default', 'system', 0,
		:updated_at)`)
	addRun = db.SWith[seedRun](`INSERT INTO runs (id, account_id, task_id, repo_id, attempt, box_id, claim_id, state, lease_expires_at,
		agent, template, created_at, progress_at)
		VALUES (:id, :account_id, :task_id, :repo_id, 1, :box_id, :id, 'live', :lease_expires_at, 'builtin', 'default', 0,
		:lease_expires_at)`)
	addPull = db.SWith[seedPull](`INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref, base_ref, head_sha,
		base_sha, author_kind, created_at, updated_at)
		VALUES (:id, :account_id, :repo_id, 1, 'Seeded', '', '', 'open', 'seeded', 'main', :sha, :sha, 'agent', 0, 0)`)
	addBox = db.S(`INSERT INTO boxes (id, account_id, name, owner_target, owner_id, state, nkey, token_hash, token_expires_at, slots,
		created_at)
		VALUES ($1, $2, 'seeded', 'org', $2, 'enrolled', $1, $1, 0, 1, 0)`)
	addKey = db.S(`INSERT INTO provider_keys (id, account_id, provider, label, masked, sealed, kind, created_at)
		VALUES ($1, $2, 'scripted', 'Seeded', '', '', 'metered', 0)`)
	addToken   = db.S(`INSERT INTO tokens (id, account_id, kind, prefix, hash, scopes, created_at) VALUES ($1, $2, 'pat', '', $1, '[]', 0)`)
	addSession = db.S(`INSERT INTO sessions (id, account_id, repo_id, trigger, kind, started_at) VALUES ($1, $2, $3, 'task', 'work', 0)`)
	addInvite  = db.S(`INSERT INTO invitations (id, kind, account_id, email, role, token_hash, created_at, expires_at)
		VALUES ($1, 'org_member', $2, 'seeded@example.com', 'member', $1, 0, $3)`)
	addPlan = db.S(`INSERT INTO plans (id, account_id, repo_id, title, overview, source, revision, hold, created_by, created_at)
		VALUES ($1, $2, $3, 'Seeded', '', 'triage', 1, TRUE, 'system', 0)`)
	addGroup = db.S(`INSERT INTO plan_groups (id, account_id, plan_id, repo_id, place, slug, title, problem, files)
		SELECT $1, account_id, id, repo_id, 0, 'seeded', 'Seeded', 'Nothing.', '[]' FROM plans WHERE id = $2`)
	addProgress = db.S(`INSERT INTO plan_progress (plan_id, account_id, repo_id, status, bucket, last_activity_at)
		VALUES ($1, $2, $3, 'held', 'held', 0)`)
	addFanout  = db.S(`INSERT INTO plan_fanouts (id, account_id, ask, created_by, created_at) VALUES ($1, $2, 'Seeded', 'system', 0)`)
	addBlocker = db.SWith[seedBlocker](`INSERT INTO blockers (id, account_id, repo_id, task_id, run_id, declared, kind, question, state,
		created_at)
		VALUES (:id, :account_id, :repo_id, :task_id, :run_id, '1', 'missing_credential', 'Seeded?', 'open', 0)`)
	addVariable = db.S(`INSERT INTO prompt_vars (account_id, scope, ref, key, value, created_at, updated_at)
		VALUES ($1, 'account', '', $2, 'seeded', 0, 0)`)
	addAsk = db.S(`INSERT INTO asks (id, account_id, repo_id, reach, title, body, source, labels, state, filed_by, scopes, depth,
		due_at, created_at)
		VALUES ($1, $2, $3, '[]', 'Seeded', 'Nothing.', 'api', '{}', 'dropped', 'system', '[]', 0, 0, 0)`)
	addEscalation = db.S(`INSERT INTO escalations (id, account_id, repo_id, category, title, body, reason, created_by, created_at)
		VALUES ($1, $2, $3, 'unclear', 'Seeded', '', '', 'system', 0)`)
	addSchedule = db.S(`INSERT INTO schedules (id, account_id, title, body, labels, cron, zone, when_busy, user_id, scopes, paused_why,
		created_by, created_at, updated_at)
		VALUES ($1, $2, 'Seeded', 'Nothing.', '{}', '0 0 * * *', 'UTC', 'queue', $3, '[]', 'person', 'system', 0, 0)`)
	addDigest = db.S(`INSERT INTO digests (id, account_id, kind, period, zone, from_at, to_at, headline, quiet, content, created_at)
		VALUES ($1, $2, 'daily', '2026-01-01', 'UTC', 0, 0, 'Seeded', TRUE, '{}', 0)`)
	addTemplate = db.S(`INSERT INTO templates (account_id, name, body, created_at, updated_at) VALUES ($1, $2, '{}', 0, 0)`)
)

// What the seeded rows differ in.
type (
	seedTask struct {
		ID, AccountID, RepoID string
		UpdatedAt             int64
	}
	seedRun struct {
		ID, AccountID, TaskID, RepoID, BoxID string
		LeaseExpiresAt                       int64
	}
	seedPull    struct{ ID, AccountID, RepoID, SHA string }
	seedBlocker struct{ ID, AccountID, RepoID, TaskID, RunID string }
)

// head is the commit that the seeded pull request stands at.
var head = strings.Repeat("a", 40)

// seed gives an account one of everything that a path can name, and answers
// the ids by the group of the capabilities, and runId.
func (y *yard) seed(account, login string) map[string]string {
	y.t.Helper()
	at := map[string]string{"owner": login, "repo": "seeded", "name": login + "s", "scope": "account", "key": login + "s"}
	for _, group := range []string{"token", "billing", "project", "task", "runId", "pr", "box", "session", "invitationId", "blockerId",
		"planId", "groupId", "fanoutId", "askId", "escalation", "schedule", "digest"} {
		at[group] = id.Random()
	}
	at["repoId"] = at["project"]
	at["userId"] = y.person("of-"+login, account, policy.Member)
	y.in(account, func(tx *db.Tx) error {
		later := tx.Micros() + 3600e6
		for _, row := range []struct {
			db.Stmt
			args []any
		}{
			{addRepo, []any{at["project"], account, login}},
			{addBox, []any{at["box"], account}},
			{addKey, []any{at["billing"], account}},
			{addToken, []any{at["token"], account}},
			{addSession, []any{at["session"], account, at["project"]}},
			{addInvite, []any{at["invitationId"], account, later}},
			{addPlan, []any{at["planId"], account, at["project"]}},
			{addGroup, []any{at["groupId"], at["planId"]}},
			{addProgress, []any{at["planId"], account, at["project"]}},
			{addFanout, []any{at["fanoutId"], account}},
			{addVariable, []any{account, at["key"]}},
			{addAsk, []any{at["askId"], account, at["project"]}},
			{addEscalation, []any{at["escalation"], account, at["project"]}},
			{addTemplate, []any{account, at["name"]}},
			{addDigest, []any{at["digest"], account}},
			{addSchedule, []any{at["schedule"], account, at["userId"]}},
		} {
			if _, err := row.Exec(tx, row.args...); err != nil {
				return err
			}
		}
		for _, err := range []error{
			ran(addTask.Exec(tx, seedTask{at["task"], account, at["project"], later})),
			ran(addRun.Exec(tx, seedRun{at["runId"], account, at["task"], at["project"], at["box"], later})),
			ran(addPull.Exec(tx, seedPull{at["pr"], account, at["project"], head})),
			ran(addBlocker.Exec(tx, seedBlocker{at["blockerId"], account, at["project"], at["task"], at["runId"]})),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	return at
}

func ran(_ int64, err error) error { return err }
