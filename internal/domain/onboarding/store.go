package onboarding

import "yardmaster/internal/db"

// facts are the numbers and states of an account that the platform sees.
type facts struct {
	Repos         int64
	EnabledRepos  int64
	ValidPolicies int64
	Keys          int64
	Boxes         int64
	// Begun is whether there is any work. The task that sets a new repository up is none; its
	// pull request is, since somebody has to look at it.
	Begun bool
	Devs  int64      `db:"-"`
	Fleet Fleet      `db:"-"`
	repo  *askedRepo `db:"-"`
}

// repoRow is a repository as the ladder sees it. Onboarded means enabled and without
// an invalid policy file.
type repoRow struct {
	ID          string
	Enabled     bool
	PolicyValid bool
	Onboarded   bool
}

var (
	selectFacts = db.Q[facts](`SELECT
		(SELECT COUNT(*) FROM repos WHERE account_id = $1) AS repos,
		(SELECT COUNT(*) FROM repos WHERE account_id = $1 AND enabled = TRUE) AS enabled_repos,
		(SELECT COUNT(*) FROM repos WHERE account_id = $1 AND policy_yml IS NOT NULL AND policy_error IS NULL) AS valid_policies,
		(SELECT COUNT(*) FROM provider_keys WHERE account_id = $1 AND deleted_at IS NULL) AS keys,
		(SELECT COUNT(*) FROM boxes WHERE account_id = $1 AND state <> 'revoked') AS boxes,
		EXISTS (SELECT 1 FROM tasks WHERE account_id = $1 AND kind <> 'setup') OR EXISTS (SELECT 1 FROM asks WHERE account_id = $1)
			OR EXISTS (SELECT 1 FROM pulls WHERE account_id = $1 AND task_id IS NOT NULL) AS begun`)
	// repoByName finds the repository that a name addresses, as repo.ByName does.
	repoByName = db.Q[repoRow](`SELECT id, enabled, policy_error IS NULL AND policy_near = '' AS policy_valid, enabled = TRUE
		AND policy_error IS NULL AND policy_near = '' AS onboarded
		FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3 ORDER BY enabled DESC, created_at, id LIMIT 1`)
	reported = db.Q[string](`SELECT event FROM onboarding WHERE account_id = $1 ORDER BY event`)
	report   = db.S(`INSERT INTO onboarding (account_id, event, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`)
)

func (s *Service) facts(tx *db.Tx) (facts, error) {
	f, err := selectFacts.One(tx, tx.Account)
	if err != nil {
		return f, err
	}
	f.Devs, err = s.Rungs.Devs(tx)
	return f, err
}

type installation struct{ OwnerLogin, Account string }

// installationOf finds an installation of a code host for a member of its account.
var installationOf = db.Q[installation](`SELECT i.owner_login, a.login AS account FROM installations i
	JOIN memberships m ON m.account_id = i.account_id JOIN accounts a ON a.id = i.account_id
	WHERE i.id = $1 AND m.user_id = $2 AND i.gone_at IS NULL ORDER BY i.host LIMIT 1`)
