package measure

import "yardmaster/internal/db"

// Platform is what there is on the whole server now, counted.
type Platform struct {
	Accounts, Users, UsersWaitlisted       int64
	Repos, Boxes, BoxesOnline              int64
	TasksQueued, TasksInFlight, TasksStuck int64
	RunsLive, PullsOpen                    int64
	ApprovalsPending, EscalationsOpen      int64
	GrantsActive                           int64
	OSSPending                             int64 `db:"oss_pending"`
}

// Account is what an account has now, counted.
type Account struct{ Repos, Boxes, TasksOpen int64 }

// Open is what is open in an account now, counted by indexes of what is open alone.
type Open struct{ EnabledRepos, Pulls int64 }

// FirstSteps is what an account has to have before its first work, and whether there is any. The task
// that sets a new repository up is none; its pull request is, since somebody has to look at it.
type FirstSteps struct {
	Repos, EnabledRepos, ValidPolicies, Keys, Boxes int64
	Begun                                           bool
}

const (
	enrolled = `state <> 'revoked'`
	openPull = `state = 'open'`
)

var (
	platform = db.Q[Platform](`SELECT
		(SELECT COUNT(*) FROM accounts) AS accounts,
		(SELECT COUNT(*) FROM users) AS users,
		(SELECT COUNT(*) FROM users WHERE approved_at IS NULL) AS users_waitlisted,
		(SELECT COUNT(*) FROM repos) AS repos,
		(SELECT COUNT(*) FROM boxes WHERE ` + enrolled + `) AS boxes,
		(SELECT COUNT(*) FROM boxes WHERE ` + enrolled + ` AND presence = 'online') AS boxes_online,
		(SELECT CAST(COALESCE(SUM(pending), 0) AS BIGINT) FROM queue_depths) AS tasks_queued,
		(SELECT COUNT(*) FROM tasks WHERE ` + atWork + `) AS tasks_in_flight,
		(SELECT COUNT(*) FROM tasks WHERE stuck = TRUE AND ` + unended + `) AS tasks_stuck,
		(SELECT COUNT(*) FROM runs WHERE ended_at IS NULL) AS runs_live,
		(SELECT COUNT(*) FROM pulls WHERE ` + openPull + `) AS pulls_open,
		(SELECT COUNT(*) FROM pull_actions WHERE ` + asked + `) AS approvals_pending,
		(SELECT COUNT(*) FROM escalations WHERE ` + openEscalation + `) AS escalations_open,
		(SELECT COUNT(*) FROM grants WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)) AS grants_active,
		(SELECT COUNT(*) FROM oss_applications WHERE state = 'pending') AS oss_pending`)
	account = db.Q[Account](`SELECT
		(SELECT COUNT(*) FROM repos WHERE account_id = $1) AS repos,
		(SELECT COUNT(*) FROM boxes WHERE account_id = $1 AND ` + enrolled + `) AS boxes,
		(SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND ` + unended + `) AS tasks_open`)
	opened = db.Q[Open](`SELECT
		(SELECT COUNT(*) FROM repos WHERE account_id = $1 AND enabled = TRUE) AS enabled_repos,
		(SELECT COUNT(*) FROM pulls WHERE account_id = $1 AND ` + openPull + `) AS pulls`)
	firstSteps = db.Q[FirstSteps](`SELECT
		(SELECT COUNT(*) FROM repos WHERE account_id = $1) AS repos,
		(SELECT COUNT(*) FROM repos WHERE account_id = $1 AND enabled = TRUE) AS enabled_repos,
		(SELECT COUNT(*) FROM repos WHERE account_id = $1 AND policy_yml IS NOT NULL AND policy_error IS NULL) AS valid_policies,
		(SELECT COUNT(*) FROM provider_keys WHERE account_id = $1 AND deleted_at IS NULL) AS keys,
		(SELECT COUNT(*) FROM boxes WHERE account_id = $1 AND ` + enrolled + `) AS boxes,
		EXISTS (SELECT 1 FROM tasks WHERE account_id = $1 AND kind <> 'setup') OR EXISTS (SELECT 1 FROM asks WHERE account_id = $1)
			OR EXISTS (SELECT 1 FROM pulls WHERE account_id = $1 AND task_id IS NOT NULL) AS begun`)
)

// FirstStepsOf reads how far tx.Account has come.
func FirstStepsOf(tx *db.Tx) (FirstSteps, error) { return firstSteps.One(tx, tx.Account) }

// OfPlatform counts what there is on the whole server.
func OfPlatform(tx *db.Tx) (Platform, error) { return platform.One(tx, tx.Micros()) }

// OpenIn counts what is open in tx.Account. Pages ask it often.
func OpenIn(tx *db.Tx) (Open, error) { return opened.One(tx, tx.Account) }

// OfAccount counts what an account has.
func OfAccount(tx *db.Tx, accountID string) (Account, error) { return account.One(tx, accountID) }
