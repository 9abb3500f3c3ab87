package onboarding

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/measure"
)

// facts are the numbers and states of an account that the platform sees.
type facts struct {
	measure.FirstSteps
	Devs  int64
	Fleet Fleet
	repo  *askedRepo
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
	// repoByName finds the repository that a name addresses, as repo.ByName does.
	repoByName = db.Q[repoRow](`SELECT id, enabled, policy_error IS NULL AND policy_near = '' AS policy_valid, enabled = TRUE
		AND policy_error IS NULL AND policy_near = '' AS onboarded
		FROM repos WHERE account_id = $1 AND owner = $2 AND name = $3 ORDER BY enabled DESC, created_at, id LIMIT 1`)
	reported = db.Q[string](`SELECT event FROM onboarding WHERE account_id = $1 ORDER BY event`)
	report   = db.S(`INSERT INTO onboarding (account_id, event, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`)
)

func (s *Service) facts(tx *db.Tx) (facts, error) {
	steps, err := measure.FirstStepsOf(tx)
	if err != nil {
		return facts{}, err
	}
	devs, err := s.Rungs.Devs(tx)
	return facts{FirstSteps: steps, Devs: devs}, err
}

type installation struct{ OwnerLogin, Account string }

// installationOf finds an installation of a code host for a member of its account.
var installationOf = db.Q[installation](`SELECT i.owner_login, a.login AS account FROM installations i
	JOIN memberships m ON m.account_id = i.account_id JOIN accounts a ON a.id = i.account_id
	WHERE i.id = $1 AND m.user_id = $2 AND i.gone_at IS NULL ORDER BY i.host LIMIT 1`)
