package flow

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/protocol"
)

// GitTokens implements repo.Attempts.
type GitTokens struct{ DB *db.DB }

// Attempt tells what a git token may do. A token whose run was just taken away may
// still push, but only to the ref that saves the run's work.
func (g GitTokens) Attempt(ctx context.Context, token string) (out repo.Attempt, ok bool, err error) {
	if !id.Checked(id.Attempt, token) {
		return out, false, nil
	}
	var acc run.Access
	late := false
	err = g.DB.Read(ctx, func(tx *db.Tx) error {
		acc, ok, err = run.ByToken(tx, token, run.TokenGit)
		if late = err == nil && !ok; late {
			acc, ok, err = run.RescueByToken(tx, token)
		}
		return err
	})
	if err != nil || !ok {
		return repo.Attempt{}, false, err
	}
	out = repo.Attempt{RepoID: acc.RepoID, Who: "run:" + acc.RunID, Account: acc.AccountID, TaskID: acc.TaskID, Late: late, Lent: acc.Lent}
	if !acc.Unbound {
		out.Person = acc.RequestedBy
	}
	if acc.Branch != "" {
		out.Push = []string{protocol.SavedRef(acc.RunID, int(acc.Attempt))}
		if !late {
			out.Push = append(out.Push, "refs/heads/"+acc.Branch)
		}
	}
	return out, true, nil
}

// Borrows tells whether an attempt may read the submodules of its repository. One that gets no
// secrets may not: who wrote what it works on could have it give them away. Nor may one on a
// box that another account has lent: it gets what everybody may read.
func (GitTokens) Borrows(tx *db.Tx, a repo.Attempt) (bool, error) {
	if a.Lent {
		return false, nil
	}
	t, ok, err := task.Get(tx, a.Account, a.TaskID)
	if err != nil || !ok {
		return false, err
	}
	without, err := withoutSecrets(tx, &t)
	return !without, err
}

// Holders implements repo.Holders.
type Holders struct{ SignIn *signin.Service }

// Authenticate resolves a personal access token.
func (h Holders) Authenticate(ctx context.Context, bearer string) (policy.Actor, error) {
	return h.SignIn.Authenticate(ctx, signin.Presented{Bearer: bearer})
}
