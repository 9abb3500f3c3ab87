package pull

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
)

// OpenHeads answers the recorded heads of the open pull requests of a repository of
// tx.Account, by branch.
func OpenHeads(tx *db.Tx, repoID string) (map[string]string, error) {
	rows, err := record.OpenHeads.All(tx, tx.Account, repoID)
	heads := make(map[string]string, len(rows))
	for _, r := range rows {
		heads[r.HeadRef] = r.HeadSHA
	}
	return heads, err
}

// TaskOf answers the id of the task that a pull request of tx.Account came from; "" if
// there is none.
func TaskOf(tx *db.Tx, prID string) (string, error) {
	taskID, _, err := record.TaskOf.Maybe(tx, tx.Account, prID)
	if err != nil || taskID == nil {
		return "", err
	}
	return *taskID, nil
}

// MergedBy is the label of who decided the merge of a pull request of tx.Account, or made it;
// "" if it is not merged, or nobody knows.
func MergedBy(tx *db.Tx, prID string) (string, error) {
	label, _, err := record.MergedBy.Maybe(tx, tx.Account, prID)
	if err != nil || label == nil {
		return "", err
	}
	return *label, nil
}

// RepoOf is the id of the repository of a pull request of tx.Account; empty: there is none of
// that id.
func RepoOf(tx *db.Tx, prID string) (string, error) {
	pr, _, err := record.ByID.Maybe(tx, tx.Account, prID)
	return pr.RepoID, err
}

// HeadOf answers the head of a pull request while that is open, else "".
func HeadOf(tx *db.Tx, prID string) (string, error) {
	pr, ok, err := record.ByIDAnywhere.Maybe(tx, prID)
	if !ok || pr.State != record.Open {
		return "", err
	}
	return pr.HeadSHA, nil
}

// IsOpen tells whether a pull request of tx.Account is open.
func IsOpen(tx *db.Tx, prID string) (bool, error) {
	pr, ok, err := record.ByID.Maybe(tx, tx.Account, prID)
	return ok && pr.State == record.Open, err
}

// IdleOfPlan lists the tasks of a plan of tx.Account that go on only if a person
// acts.
func IdleOfPlan(tx *db.Tx, planID string) ([]string, error) {
	return record.IdleOfPlan.All(tx, tx.Account, planID)
}
