package flow

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/creation"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
)

// CreationPlaces implements creation.Places.
type CreationPlaces struct{}

// Of lists the owners that have installed the App for tx.Account, and then the account
// itself, at the built-in host.
func (CreationPlaces) Of(tx *db.Tx) ([]creation.Place, error) {
	installed, err := connection.InstalledFor(tx)
	if err != nil {
		return nil, err
	}
	var all []creation.Place
	for _, i := range installed {
		all = append(all, creation.Place{
			Host: i.Host, Owner: i.Owner, InstallationID: i.ID, Suspended: i.Suspended,
			Administration: i.Permissions["administration"] == "write",
		})
	}
	login, err := people.AccountLogin(tx, tx.Account)
	return append(all, creation.Place{Host: codehost.BuiltIn, Owner: login, Administration: true}), err
}

// CreationRepos implements creation.Repos.
type CreationRepos struct{ *repo.Service }

// Wrote records the first commit of a repository, though the caller may be gone. The
// server itself is the only one to tell of a push at the built-in host; another host
// sends a delivery.
func (r CreationRepos) Wrote(ctx context.Context, at codehost.Repo, branch, sha, by string) error {
	git, err := r.Hosts.Git(at)
	if err != nil {
		return err
	}
	e := codehost.PushEvent{Repo: at, Who: by}
	if git == nil {
		e.Updates = []codehost.RefUpdate{{Ref: "refs/heads/" + branch, Old: codehost.ZeroSHA, New: sha}}
	}
	return r.OnPush(context.WithoutCancel(ctx), e)
}

// CreationSetups implements creation.Setups.
type CreationSetups struct {
	Tasks *task.Service
	Hosts *codehost.Hosts
}

// Begin queues the task that sets up a repository.
func (c CreationSetups) Begin(tx *db.Tx, s creation.Setup) (taskID, note string, err error) {
	r, err := TaskRepos{Hosts: c.Hosts}.ByID(tx, s.RepoID)
	if err != nil {
		return "", "", err
	}
	if !r.Enabled {
		return "", "The repository is not enabled: project.update enables it, and project.setup sends an agent.", nil
	}
	t, err := c.Tasks.SetUpFresh(tx, r, task.Fresh{Description: s.Description, Stack: s.Stack, UserID: s.UserID})
	if f, refused := errors.AsType[*fault.Error](err); refused && (f.Kind == fault.Forbidden || f.Kind == fault.RateLimited) {
		return "", f.Detail, nil
	}
	return t.ID, "", err
}
