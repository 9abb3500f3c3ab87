package seed

import (
	"time"

	"yardmaster/internal/db"
)

var (
	addAccount = db.SWith[addAccountArgs](`INSERT INTO accounts (id, login, kind, tier, seats, spend_cap_micros, created_at)
		VALUES (:id, :login, 'organization', :tier, :seats, :spend_cap_micros, 0)`)
	addUser = db.SWith[addUserArgs](`INSERT INTO users (id, login, name, email, password_hash, approved_at, platform_admin, created_at)
		VALUES (:id, :login, :name, :email, :password_hash, :approved_at, :platform_admin, 0)`)
	addMember = db.SWith[addMemberArgs](`INSERT INTO memberships (account_id, user_id, role, created_at)
		VALUES (:account_id, :user_id, :role, :created_at)`)
	addRepo = db.SWith[addRepoArgs](`INSERT INTO repos (id, account_id, owner, name, host, default_branch, private, enabled,
		policy_yml, created_at)
		VALUES (:id, :account_id, :owner, :name, :host, 'main', :private, :enabled, :policy_yml, 0)`)
	addBox = db.SWith[addBoxArgs](`INSERT INTO boxes (id, account_id, name, owner_target, owner_id, state, nkey, token_hash,
		token_expires_at, slots, agents, isolation, presence, created_at)
		VALUES (:id, :account_id, :id, 'org', :account_id, 'enrolled', '', :id, 0, :slots, :agents, '["landlock"]', 'online', 0)`)
	addIssue = db.SWith[addIssueArgs](`INSERT INTO issues (id, account_id, repo_id, number, title, body, url, state, author, created_at)
		VALUES (:id, :account_id, :repo_id, :number, :title, 'Always.', 'https://code.example.com/issue', 'open', 'bob', :created_at)`)
	addTask = db.SWith[addTaskArgs](`INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, queued_at,
		branch, template, pr_id, budget_micros, created_by, requested_by, finished_at, failure_kind, failure, created_at, updated_at)
		VALUES (:id, :account_id, :repo_id, :kind, :sink, :title, :problem, :status, 0, :branch, :template, :pr_id,
		:budget_micros, 'system', :requested_by, :finished_at, :failure_kind, :failure, :created_at, 0)`)
	addRun = db.SWith[addRunArgs](`INSERT INTO runs (id, account_id, task_id, repo_id, attempt, box_id, claim_id, state,
		lease_expires_at, agent, template, created_at, progress_at)
		VALUES (:id, :account_id, :task_id, :repo_id, 1, :box_id, :id, 'live', 0, 'builtin', 'default', 0, 0)`)
	addPull = db.SWith[addPullArgs](`INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref,
		base_ref, head_sha, base_sha, task_id, author_kind, created_at, updated_at, merged_at, merge_sha, merged_by, closed_at, needs,
		fork, review)
		VALUES (:id, :account_id, :repo_id, :number, :title, :body, '', :state, :head_ref, 'main', :head_sha, 'base', :task_id,
		:author_kind, 0, 0, :merged_at, :merge_sha, :merged_by, :closed_at, :needs, :fork, 'off')`)
	addAction = db.SWith[addActionArgs](`INSERT INTO pull_actions (id, account_id, pr_id, kind, head_sha, state, decided_by,
		requested_at, decided_at, expires_at)
		VALUES (:id, :account_id, :pr_id, :kind, :head_sha, :state, :decided_by, 1, :decided_at, 9)`)
	addHostToken = db.SWith[addHostTokenArgs](`INSERT INTO host_tokens (id, account_id, user_id, host, login, host_user_id, masked, sealed,
		grants, checked_at, created_at)
		VALUES (:id, :account_id, :user_id, :host, :login, :host_user_id, '', '', '[]', 0, 0)`)
	addChoice = db.SWith[Choice](`INSERT INTO notification_choices (account_id, user_id, kind, channel, enabled)
		VALUES (:account, :user, :kind, :channel, FALSE)`)
	addSpendDay = db.SWith[SpendDay](`INSERT INTO spend_days (account_id, day, session_id, key_id, provider, model, calls, unpriced, cost_micros)
		VALUES (:account, :day, :session, '', 'scripted', :model, 1, 0, :micros)`)
	addSpend = db.SWith[Spend](`INSERT INTO spend_minutes (account_id, minute, session_id, calls, unpriced, cost_micros)
		VALUES (:account, :minute, :session, :calls, :unpriced, :micros)`)
	addCheck = db.SWith[Check](`INSERT INTO ci_runs (id, account_id, repo_id, sha, command, status, created_at, finished_at)
		VALUES (:id, :account, :repo, 'sha', 'true', :status, 0, :finished)`)
	addEscalation = db.SWith[Escalation](`INSERT INTO escalations (id, account_id, category, title, body, reason, ask_id, created_by, created_at)
		VALUES (:id, :account, 'unclear', :title, '', '', :ask, 'system', :created)`)
	addDigest = db.S(`INSERT INTO digests (id, account_id, kind, period, zone, from_at, to_at, headline, quiet, content, created_at)
		VALUES ($1, $2, 'daily', $3, 'UTC', 0, 0, 'Nothing happened.', TRUE,
		'{"merged":{"total":0,"rows":[]},"waiting":{"total":0,"rows":[]},"failed":{"total":0,"rows":[]},"rates":[]}', 0)`)
	addAsk = db.SWith[addAskArgs](`INSERT INTO asks (id, account_id, reach, title, body, source, labels, state, verdict, filed_by, scopes, depth, due_at,
		created_at)
		VALUES (:id, :account_id, '[]', 't', 'b', 'api', '{}', :state, :verdict, 'system', '[]', 0, 0, 0)`)
	addCover   = db.S(`INSERT INTO ask_covers (task_id, ask_id, account_id) VALUES ($1, $2, $3)`)
	addWebhook = db.SWith[Webhook](`INSERT INTO webhooks (id, account_id, name, masked, sealed, types, created_by, created_at, unhealthy_at)
		VALUES (:id, :account, :name, 'https://hooks.example.com/…', '', '[]', 'system', 0, :unhealthy)`)
	addIdentity = db.S(`INSERT INTO identities (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, 0)`)
	dropTask    = db.S(`DELETE FROM tasks WHERE id = $1`)
	addPlan     = db.S(`INSERT INTO plans (id, account_id, repo_id, title, overview, source, revision, hold, created_by, created_at)
		VALUES ($1, $2, $3, 't', '', 'file', 1, FALSE, 'system', 0)`)
	addInstallation = db.SWith[addInstallationArgs](`INSERT INTO installations (host, id, owner_id, owner_login, account_id, permissions,
		gone_at, created_at, updated_at)
		VALUES ('github:github.com', :id, :id, :owner_login, :account_id, '{}', :gone_at, 0, 0)`)
	addProvider = db.S(`INSERT INTO org_sso (account_id, issuer, client_id, sealed, domains, role, created_at, updated_at)
		VALUES ($1, 'https://idp.example.com', 'client', '', '[]', 'member', 0, 0)`)
	addSession = db.SWith[addSessionArgs](`INSERT INTO sessions (id, account_id, repo_id, run_id, task_id, trigger, kind, requested_by,
		model, started_at, cost_micros, unpriced)
		VALUES (:id, :account_id, :repo_id, :run_id, :task_id, :trigger, :kind, :requested_by, :model, 0, :cost_micros, :unpriced)`)
)

// addAskArgs are the parameters of addAsk.
type addAskArgs struct{ ID, AccountID, State, Verdict string }

// addHostTokenArgs are the parameters of addHostToken.
type addHostTokenArgs struct{ ID, AccountID, UserID, Host, Login, HostUserID string }

// addInstallationArgs are the parameters of addInstallation.
type addInstallationArgs struct {
	ID, AccountID, OwnerLogin string
	GoneAt                    *int64
}

// addUserArgs are the parameters of addUser.
type addUserArgs struct {
	ID, Login, Name, Email, PasswordHash string
	ApprovedAt                           *int64
	PlatformAdmin                        bool
}

// Measure is what Measured writes of an account: bytes of objects and of records.
type Measure struct {
	AccountID        string
	Objects, Records int64
	MeasuredAt       time.Time
}

// addAccountArgs are the parameters of addAccount.
type addAccountArgs struct {
	ID, Login, Tier string
	Seats           int
	SpendCapMicros  *int64
}

// addSessionArgs are the parameters of addSession.
type addSessionArgs struct {
	ID, AccountID, RepoID string
	RunID, TaskID         *string
	Trigger, Kind         string
	RequestedBy           *string
	Model                 *string
	CostMicros            *int64
	Unpriced              int64
}

// addActionArgs are the parameters of addAction.
type addActionArgs struct {
	ID, AccountID        string
	PRID                 string `db:"pr_id"`
	Kind, HeadSHA, State string
	DecidedBy            *string
	DecidedAt            *int64
}

// addPullArgs are the parameters of addPull.
type addPullArgs struct {
	ID, AccountID, RepoID   string
	Number                  int
	State, HeadRef, HeadSHA string
	TaskID                  *string
	MergedAt, ClosedAt      *int64
	Title, Body, AuthorKind string
	MergeSHA, MergedBy      *string
	Needs                   string
	Fork                    bool
}

// addRunArgs are the parameters of addRun.
type addRunArgs struct {
	ID, AccountID, TaskID, RepoID, BoxID string
}

// addTaskArgs are the parameters of addTask.
type addTaskArgs struct {
	ID, AccountID, RepoID, Kind, Sink, Title, Problem, Status, Branch, Template string
	PRID                                                                        *string `db:"pr_id"`
	BudgetMicros, FinishedAt                                                    *int64
	CreatedAt                                                                   int64
	RequestedBy, FailureKind, Failure                                           *string
}

// addBoxArgs are the parameters of addBox.
type addBoxArgs struct {
	ID, AccountID string
	Slots         int
	Agents        string
}

// addRepoArgs are the parameters of addRepo.
type addRepoArgs struct {
	ID, AccountID, Owner, Name, Host string
	Private, Enabled                 bool
	PolicyYML                        string
}

// addMemberArgs are the parameters of addMember.
type addMemberArgs struct {
	AccountID, UserID, Role string
	CreatedAt               int64
}

// Changes to rows that belong to another domain than the test's. The parameters are
// the id of the row, or the account and the user, and then the new values.
var (
	SetAdmin    = db.S(`UPDATE users SET platform_admin = TRUE WHERE id = $1`)
	SetRole     = db.S(`UPDATE memberships SET role = $3 WHERE account_id = $1 AND user_id = $2`)
	DropMember  = db.S(`DELETE FROM memberships WHERE account_id = $1 AND user_id = $2`)
	SetEnabled  = db.S(`UPDATE repos SET enabled = $2 WHERE id = $1`)
	SetGone     = db.S(`UPDATE boxes SET presence = 'offline', last_beat_at = $2 WHERE id = $1`)
	SetConsent  = db.S(`UPDATE repos SET donations_enabled = $2, public_stats_enabled = $3 WHERE id = $1`)
	SetPrivate  = db.S(`UPDATE repos SET private = $2 WHERE id = $1`)
	SetPolicy   = db.S(`UPDATE repos SET policy_yml = $2 WHERE id = $1`)
	SetPresence = db.S(`UPDATE boxes SET presence = $2 WHERE id = $1`)
	SetState    = db.S(`UPDATE boxes SET state = $2 WHERE id = $1`)
	SetUnfit    = db.S(`UPDATE boxes SET unfit = $2 WHERE id = $1`)
	SetUnfitFor = db.S(`UPDATE boxes SET unfit_for = $2 WHERE id = $1`)
	SetTarget   = db.S(`UPDATE boxes SET owner_target = $2, owner_id = $3 WHERE id = $1`)
	SetLevels   = db.S(`UPDATE boxes SET isolation = $2, isolation_holds = $3 WHERE id = $1`)
	CancelTask  = db.S(`UPDATE tasks SET status = 'cancelled' WHERE id = $1`)
	TouchTask   = db.S(`UPDATE tasks SET updated_at = updated_at + 1 WHERE id = $1`)
	SetPull     = db.S(`UPDATE tasks SET pr_id = $2 WHERE id = $1`)
	SetReview   = db.S(`UPDATE tasks SET kind = 'review', pr_id = $2 WHERE id = $1`)
	// SetBudget gives a task another budget, in micro-dollars.
	SetBudget = db.S(`UPDATE tasks SET budget_micros = $2 WHERE id = $1`)
	// EndSession ends a session at the time, in microseconds.
	EndSession = db.S(`UPDATE sessions SET ended_at = $2, outcome = 'succeeded' WHERE id = $1`)
	// FreeTask has a held task run again.
	FreeTask = db.S(`UPDATE tasks SET status = 'running', failure_kind = NULL WHERE id = $1`)
	// HoldTask holds a task for a kind of failure.
	HoldTask = db.S(`UPDATE tasks SET status = 'held', failure_kind = $2 WHERE id = $1`)
	SetPlan  = db.S(`UPDATE tasks SET pr_id = $2, plan_id = $3 WHERE id = $1`)
	// FillAudit gives an account that has no record one of $2 rows, of which every 1000th
	// has the kind pair.rare, and AuditHead its head; their hashes are none.
	FillAudit = db.S(`INSERT INTO audit (id, account_id, at, actor, kind, object, data, seq)
		WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2)
		SELECT CAST($1 AS TEXT) || CAST(i AS TEXT), CAST($1 AS TEXT), i, 'system', CASE WHEN i % 1000 = 0 THEN 'pair.rare' ELSE 'pair.common' END,
		'o' || CAST(i AS TEXT), '{}', i FROM n`)
	// Measured is what was measured of an account, and Sized what of a repository that has the id of its account.
	Measured = db.SWith[Measure](`INSERT INTO account_measures (account_id, object_bytes, record_bytes, measured_at, due_at)
		VALUES (:account_id, :objects, :records, :measured_at, 0)`)
	Sized     = db.S(`INSERT INTO repo_sizes (repo_id, account_id, bytes, measured_at) VALUES ($1, $1, $2, 0)`)
	AuditHead = db.S(`INSERT INTO audit_heads (account_id, seq, hash) VALUES ($1, $2, '')`)

	SetNeedsAt   = db.S(`UPDATE pulls SET needs_at = $2 WHERE id = $1`)
	AskedByNone  = db.S(`UPDATE tasks SET requested_by = NULL WHERE account_id = $1`)
	SetNeeds     = db.S(`UPDATE pulls SET needs = $2 WHERE id = $1`)
	SetStackedOn = db.S(`UPDATE tasks SET stacked_on = $2 WHERE id = $1`)
	SetStart     = db.S(`UPDATE tasks SET stacked_on = $2, start_sha = $3 WHERE id = $1`)
	SetReport    = db.S(`UPDATE runs SET report = $2 WHERE id = $1`)
	EndRun       = db.S(`UPDATE runs SET ended_at = 1, state = 'ended' WHERE id = $1`)
	// RunEnds ends a run at a time in microseconds with an outcome, RunLost says why it failed,
	// and RunBegan when it began.
	RunEnds  = db.S(`UPDATE runs SET ended_at = $2, outcome = $3, state = 'ended' WHERE id = $1`)
	RunLost  = db.S(`UPDATE runs SET failure_kind = $2 WHERE id = $1`)
	RunBegan = db.S(`UPDATE runs SET created_at = $2, started_at = $2 WHERE id = $1`)
	// SessionBegan has a session begin at a time, which is when its run was claimed.
	SessionBegan = db.S(`UPDATE sessions SET started_at = $2 WHERE id = $1`)
	// QueueTask has a task wait since a time, in microseconds, and AskAt has a question asked then.
	QueueTask = db.S(`UPDATE tasks SET queued_at = $2 WHERE id = $1`)
	AskAt     = db.S(`UPDATE pull_actions SET requested_at = $2 WHERE id = $1`)
	// SetCapacity gives a key so many calls at once, RunsOn has a task held by a run, CallsAt has a
	// session call a provider, and AddLane gives an account three ready tasks at a priority.
	SetCapacity = db.S(`UPDATE provider_keys SET capacity = $2 WHERE id = $1`)
	RunsOn      = db.S(`UPDATE tasks SET run_id = $2, status = 'running' WHERE id = $1`)
	CallsAt     = db.S(`UPDATE sessions SET provider = $2 WHERE id = $1`)
	AddLane     = db.S(`INSERT INTO queue_lanes (account_id, repo_id, template, priority, ready, place, head_at)
		VALUES ($1, $2, 'default', $3, 3, 0, 1)`)
	// LaneSays is a report of a lane by the program 0.9, and its metrics.
	LaneSays = db.S(`INSERT INTO lane_reports (task_id, lane, runner, at, metrics) VALUES ($1, 'scouts', '0.9', $2, $3)`)
	// AddKey gives an account a key of a model provider, with a status, that opens nothing.
	AddKey = db.S(`INSERT INTO provider_keys (id, account_id, provider, label, masked, sealed, kind, status, created_at)
		VALUES ($1, $2, 'anthropic', $1, '', '', 'metered', $3, 0)`)
	// RestKey has a key rest until a time in microseconds for a reason, and OwnKey makes a key one
	// of a person.
	RestKey = db.S(`UPDATE provider_keys SET rest_until = $2, rest_since = 1, rest_why = $3 WHERE id = $1`)
	OwnKey  = db.S(`UPDATE provider_keys SET user_id = $2 WHERE id = $1`)

	// PutPref is what a person likes best in an account.
	PutPref = db.SWith[PrefArgs](`INSERT INTO llm_prefs (account_id, user_id, provider, model, updated_at)
		VALUES (:account_id, :user_id, :provider, :model, 0)
		ON CONFLICT (account_id, user_id) DO UPDATE SET provider = excluded.provider, model = excluded.model`)

	RevokeTokens = db.S(`UPDATE tokens SET revoked_at = $1`) // of every account
	PutTemplate  = db.S(`INSERT INTO templates (account_id, name, body, created_at, updated_at) VALUES ($1, $2, $3, 0, 0)
		ON CONFLICT (account_id, name) DO UPDATE SET body = excluded.body`)
	PutFloors = db.S(`INSERT INTO account_floors (account_id, floors, updated_at, updated_by) VALUES ($1, $2, 0, 'user:ada')
		ON CONFLICT (account_id) DO UPDATE SET floors = excluded.floors`)
	// LeaveAll ends all memberships of a user, and ForgetAgreed is nothing agreed by anybody.
	LeaveAll     = db.S(`DELETE FROM memberships WHERE user_id = $1`)
	ForgetAgreed = db.S(`DELETE FROM box_consents`)
	FillQueue    = db.S(`INSERT INTO queue_depths (account_id, pending) VALUES ($1, 1)`)
	AskedBy      = db.S(`UPDATE tasks SET requested_by = $2 WHERE id = $1`)
	// LetIn has an account let boxes of other accounts in, or not.
	LetIn = db.S(`INSERT INTO account_floors (account_id, floors, outside_boxes, updated_at, updated_by) VALUES ($1, '{}', $2, 0, 'user:ada')
		ON CONFLICT (account_id) DO UPDATE SET outside_boxes = excluded.outside_boxes`)
	DropGifts = db.S(`DELETE FROM donations`)
	// GiveRight says by what right the box of a run had it.
	GiveRight = db.S(`UPDATE runs SET box_right = $2 WHERE id = $1`)
	// LendBox gives a box of an account to a repository, or, for NULL, to the pool; TakeBoxBack ends that.
	LendBox = db.S(`INSERT INTO donations (id, account_id, kind, repo_id, box_id, given_by, created_at)
		VALUES (CAST($3 AS TEXT), $1, 'compute', $2, CAST($3 AS TEXT), 'user:ada', 0)`)
	// AddGift gives a key of an account to the pool.
	AddGift        = db.S(`INSERT INTO donations (id, account_id, kind, key_id, given_by, created_at) VALUES ($1, $2, 'llm', $3, 'user:ada', 0)`)
	TakeBoxBack    = db.S(`UPDATE donations SET parked_at = 1, parked_why = 'cancelled' WHERE box_id = $1`)
	DeleteTemplate = db.S(`DELETE FROM templates WHERE account_id = $1 AND name = $2`)
)

var addConsent = db.SWith[Consent](`INSERT INTO box_consents (box_id, account_id, user_id, asked_at, asked_by, agreed_at)
	VALUES (:box_id, :account_id, :user_id, 0, 'user:ada', :agreed_at)
	ON CONFLICT (box_id, account_id, user_id) DO UPDATE SET agreed_at = excluded.agreed_at`)

// addIssueArgs are the parameters of addIssue.
type addIssueArgs struct {
	ID, AccountID, RepoID, Title string
	Number, CreatedAt            int64
}

// LanesSaid lists what lanes have said of tasks.
var LanesSaid = db.Q[string](`SELECT task_id || ' ' || lane || ' ' || metrics FROM lane_reports ORDER BY task_id`)

// PrefArgs are the parameters of PutPref.
type PrefArgs struct{ AccountID, UserID, Provider, Model string }
