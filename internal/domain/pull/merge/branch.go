package merge

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/observe"
)

var deleteAtHost = intent.Declare[deleteArgs, string]("pull.delete_branch", false)

type deleteArgs struct{ Branch, SHA string }

// DropBranch has a branch deleted whose head has been merged, or is not needed any more.
func (s *Merger) DropBranch(tx *db.Tx, r repo.Ref, prID, branch, sha string) error {
	_, err := deleteAtHost.Put(tx, intent.Want[deleteArgs]{
		Repo: r, Object: prID + "/branch", Rank: intent.ForRuns, Args: deleteArgs{Branch: branch, SHA: sha},
	})
	return err
}

// dropper deletes branches.
type dropper struct{ s *Merger }

// Still implements intent.Handler. A branch that is the base of other open pull requests stays:
// hosts close those, or give them another base.
func (dropper) Still(tx *db.Tx, c intent.Call[deleteArgs]) (bool, error) {
	based, err := record.IsBase.One(tx, tx.Account, c.Repo.ID, c.Args.Branch)
	return !based, err
}

// Do implements intent.Handler. A branch that has moved or is gone stays as it is. A host that
// does not allow it is not asked again.
func (h dropper) Do(ctx context.Context, _ codehost.Forge, c intent.Call[deleteArgs]) (string, error) {
	host, err := h.s.Hosts.Of(c.Repo.HostRepo())
	if err == nil {
		err = host.DeleteBranch(ctx, c.Repo.HostRepo(), c.Args.Branch, c.Args.SHA)
	}
	if _, forbidden := errors.AsType[*codehost.ForbiddenError](err); forbidden {
		observe.Complain(ctx, h.s.Logger, "delete the branch "+c.Args.Branch, err)
		return "", nil
	}
	if errors.Is(err, codehost.ErrNotFound) || errors.Is(err, codehost.ErrHeadMoved) {
		return "", nil
	}
	return "", err
}

// Done implements intent.Handler.
func (dropper) Done(*db.Tx, intent.Call[deleteArgs], string, error) error { return nil }
