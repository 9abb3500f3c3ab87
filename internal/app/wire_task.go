package app

import (
	"context"
	"log/slog"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/onboarding"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/flow"
	"yardmaster/internal/protocol"
)

// taskRepo is a repository as tasks and runs see it.
func (a *App) taskRepo(r repo.Ref) task.Repo { return flow.TaskRepos{Host: a.host}.Of(r) }

func (a *App) repoByID(tx *db.Tx, id string) (task.Repo, error) {
	return flow.TaskRepos{Host: a.host}.ByID(tx, id)
}

// fleet tells which boxes would claim what somebody files.
func (a *App) fleet(tasks *task.Service) func(tx *db.Tx, createdBy, repoID string) (onboarding.Fleet, error) {
	return func(tx *db.Tx, createdBy, repoID string) (onboarding.Fleet, error) {
		var r *task.Repo
		if repoID != "" {
			found, err := a.repoByID(tx, repoID)
			if err != nil {
				return onboarding.Fleet{}, err
			}
			r = &found
		}
		f, err := tasks.Fleet(tx, tx.Account, createdBy, r)
		return onboarding.Fleet(f), err
	}
}

// withTask locks a task and hands it to fn.
func withTask(tx *db.Tx, taskID string, fn func(*task.Row) error) error {
	t, ok, err := task.Lock(tx, tx.Account, taskID)
	if err != nil || !ok {
		return err
	}
	return fn(&t)
}

// gitHooks connect the built-in host to the repositories domain.
func (a *App) gitHooks(repos *repo.Service) builtin.Hooks {
	return builtin.Hooks{
		Authorize: repos.Access,
		Create:    repos.Create,
		Pushed: func(ctx context.Context, e builtin.PushEvent) {
			if err := repos.OnPush(ctx, e); err != nil {
				a.log.Error("a push was stored but not recorded; the next sweep will", slog.String("repo", e.Repo.String()), slog.Any("error", err))
			}
		},
	}
}

// attemptAccess tells what the git token of a live attempt may do, or of one
// that was taken from its box a moment ago: that one may save its work.
func attemptAccess(d *db.DB) func(context.Context, string) (string, []string, string, bool, error) {
	return func(ctx context.Context, token string) (repoID string, push []string, who string, ok bool, err error) {
		var acc run.Access
		late := false
		err = d.Read(ctx, func(tx *db.Tx) error {
			acc, ok, err = run.ByToken(tx, token, run.TokenGit)
			if late = err == nil && !ok; late {
				acc, ok, err = run.RescueByToken(tx, token)
			}
			return err
		})
		if err != nil || !ok {
			return "", nil, "", false, err
		}
		if acc.Branch != "" {
			push = []string{protocol.SavedRef(acc.RunID, int(acc.Attempt))}
			if !late {
				push = append(push, "refs/heads/"+acc.Branch)
			}
		}
		return acc.RepoID, push, "run:" + acc.RunID, true, nil
	}
}

// merged is told after a merge: the default branch has a new commit.
func (a *App) merged(repos *repo.Service) func(context.Context, repo.Ref) {
	return func(ctx context.Context, r repo.Ref) {
		if err := repos.Refresh(ctx, codehost.Repo{Owner: r.Owner, Name: r.Name}); err != nil {
			a.log.Error("the policy file was not read again after a merge", slog.String("repo", r.FullName()), slog.Any("error", err))
		}
	}
}
