package pull

import "yardmaster/internal/db"

// StandingOrders answers those orders to merge of tx.Account that stand, by id: approved, for
// the present head of an open pull request that was not abandoned, of a repository that is
// enabled, whose checks have passed, and held by no finding and by nobody who requests changes.
func StandingOrders(tx *db.Tx, ids []string) (map[string]Order, error) {
	out := map[string]Order{}
	if len(ids) == 0 {
		return out, nil
	}
	rows, err := db.Select[Order](tx, db.Build(`SELECT a.id, a.head_sha, p.base_ref FROM pull_actions a JOIN pulls p ON p.id = a.pr_id JOIN repos r ON r.id = p.repo_id
		WHERE r.enabled = TRUE AND a.state = 'approved' AND a.kind = 'merge' AND p.state = 'open' AND p.head_sha = a.head_sha AND p.abandoned_at IS NULL
			AND p.checks IN ('none', 'passed') AND p.objections = 0 AND p.findings = 0 AND a.account_id = `,
		tx.Account).In("a.id", ids))
	for _, o := range rows {
		out[o.ID] = o
	}
	return out, err
}
