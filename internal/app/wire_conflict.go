package app

import (
	"context"
	"fmt"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
)

// wireConflicts lets tasks see what they would run into, and keeps what was
// begun on top of other work from being merged before it.
func (a *App) wireConflicts(p *pull.Service, tasks *task.Service) {
	tasks.Foresight, tasks.HeadOf, p.Unmerged = foresight{a}, pull.HeadOf, task.Unmerged
}

// glance is how long a box that claims waits for one answer: without it the
// task starts all the same.
const glance = 5 * time.Second

// foresight asks the code host what commits change.
type foresight struct{ a *App }

func (f foresight) repo(ctx context.Context, id string) (r repo.Ref, err error) {
	err = f.a.db.Read(ctx, func(tx *db.Tx) error {
		var ok bool
		if r, ok, err = repo.ByIDAnywhere(tx, id); err == nil && !ok {
			err = fmt.Errorf("there is no repository %s", id)
		}
		return err
	})
	return r, err
}

// Changes implements task.Foresight.
func (f foresight) Changes(ctx context.Context, repoID, sha string) ([]string, error) {
	r, err := f.repo(ctx, repoID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	c, err := f.a.host.Compare(ctx, r.HostRepo(), r.DefaultBranch, sha)
	return c.Paths, err
}

// Conflicts implements task.Foresight.
func (f foresight) Conflicts(ctx context.Context, repoID, a, b string) ([]string, error) {
	r, err := f.repo(ctx, repoID)
	if err != nil {
		return nil, err
	}
	if !codehost.ValidSHA(a) || !codehost.ValidSHA(b) {
		return nil, fmt.Errorf("%q or %q is no commit", a, b)
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	_, paths, err := f.a.host.Mergeable(ctx, r.HostRepo(), a, b)
	return paths, err
}
