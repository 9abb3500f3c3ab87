package ci

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/id"
)

// QueueCommit queues the check of a repository of tx.Account for a commit that is the
// head of no pull request, and answers its task. It fails with the fault of Tasks.
func (s *Service) QueueCommit(tx *db.Tx, r repo.Ref, sha string) (taskID string, err error) {
	if taskID, err = s.Tasks.Check(tx, r, "", sha); err != nil {
		return "", err
	}
	_, err = insertCandidate.Exec(tx, candidateArgs{
		ID: id.New(), AccountID: tx.Account, RepoID: r.ID, SHA: sha, Command: r.Policy.Checks.Command, TaskID: taskID,
		CreatedAt: tx.Micros(),
	})
	return taskID, err
}

// CommitResult is the state of the check of a commit that is the head of no pull request.
type CommitResult struct {
	Status   string
	ExitCode *int64
	Output   string
}

// OfCommit answers the newest check of a commit that is the head of no pull request; false
// if there is none.
func OfCommit(tx *db.Tx, repoID, sha string) (CommitResult, bool, error) {
	return candidateOf.Maybe(tx, repoID, sha)
}

// HostResult is the result of the checks that a host has of a commit.
type HostResult struct{ Result, Hold, Why string }

// AtHostOf answers the result of the checks that a host has of a commit; false if the
// commit is not followed.
func AtHostOf(tx *db.Tx, repoID, sha string) (HostResult, bool, error) {
	return hostResultOf.Maybe(tx, repoID, sha)
}

// FollowGroup follows the checks of a candidate of a merge queue.
func (s *Service) FollowGroup(tx *db.Tx, r repo.Ref, base, sha string) error {
	return s.followSide(tx, r, sideGroup, base, sha)
}
