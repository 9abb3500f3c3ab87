package flow

import (
	"context"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/command"
	"yardmaster/internal/domain/connection"
	"yardmaster/internal/domain/delivery"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/mergequeue"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
)

// HostEvents has the domains apply what code hosts tell. It is delivery.Receiver.
type HostEvents struct {
	DB          *db.DB
	Connections *connection.Service
	Repos       *repo.Service
	Pulls       *pull.Service
	Checks      *ci.Service
	Reviews     Reviewer
	Hosts       *codehost.Hosts
	Issues      *issue.Service
	Commands    *command.Service
	Merges      *mergequeue.Service
}

// Apply hands an event to the domain that it is about. An event about a repository
// that is unknown, or not one of the server's any more, changes nothing.
func (h HostEvents) Apply(ctx context.Context, host string, e codehost.Event) error {
	switch e := e.(type) {
	case codehost.InstallationEvent:
		return h.Connections.Installation(ctx, host, e)
	case codehost.RepoEvent:
		return h.Repos.HostChanged(ctx, e)
	}
	r, ok, err := h.repo(ctx, e.About().Repo)
	if err != nil || !ok {
		return err
	}
	ctx = db.WithAccount(ctx, r.AccountID)
	switch e := e.(type) {
	case codehost.PushedEvent:
		return h.Repos.OnPush(ctx, codehost.PushEvent{Repo: r.HostRepo(), Who: pull.HostLabel(e.By), Updates: e.Updates})
	case codehost.PullChanged:
		return h.Pulls.HostChanged(ctx, r, e)
	case codehost.ReviewPosted:
		return h.Pulls.HostReviewed(ctx, r, e)
	case codehost.Commented:
		// A command in a thread is no answer to what the thread is about.
		if asked, err := h.Commands.Said(ctx, r, e); err != nil || asked || e.Thread == "" || e.Deleted {
			return err
		}
		return h.threads(ctx, r, e.Happening, e.Number)
	case codehost.ThreadChanged:
		if e.By == (codehost.User{}) {
			return h.readSaid(ctx, r, e.Number, e.At)
		}
		return h.threads(ctx, r, e.Happening, e.Number)
	case codehost.IssueChanged:
		return h.Issues.HostChanged(ctx, r, e)
	case codehost.ChecksChanged:
		if e.Check != nil && e.Check.Own && e.Action != codehost.ActionCreated {
			return nil // known here; that it exists may be what a rule of the branch asks for
		}
		return h.Checks.HostChanged(ctx, r, e.SHA)
	case codehost.CheckRequested:
		return h.rerun(ctx, r, e)
	case codehost.QueueChanged:
		switch e.Action {
		case codehost.ActionGrouped:
			if err := h.Checks.Grouped(ctx, r, e.BaseRef, e.HeadSHA); err != nil {
				return err
			}
			return h.Merges.Grouped(ctx, r, e.BaseRef, e.HeadSHA, e.Number)
		case codehost.ActionUngrouped:
			return h.Checks.Ungrouped(ctx, r, e.HeadSHA)
		}
	}
	return nil
}

// repo finds the enabled repository that an event is about.
func (h HostEvents) repo(ctx context.Context, at codehost.Repo) (r repo.Ref, ok bool, err error) {
	err = h.DB.Read(ctx, func(tx *db.Tx) error {
		if r, ok, err = repo.At(tx, at); err != nil || !ok {
			return err
		}
		r, ok, err = repo.Reachable(tx, r.ID)
		return err
	})
	return r, ok, err
}

// threads has the threads of a pull request read after somebody who may write has
// spoken in one, or closed one.
func (h HostEvents) threads(ctx context.Context, r repo.Ref, about codehost.Happening, number int64) error {
	var prID string
	known := false
	err := h.DB.Read(ctx, func(tx *db.Tx) (err error) {
		prID, known, err = pull.ByNumber(tx, r.ID, number)
		return err
	})
	if err != nil || !known {
		return err
	}
	if may, err := h.writes(ctx, r, about.By); err != nil || !may {
		return err
	}
	return h.Reviews.ReadThreads(ctx, r, prID, number)
}

// SweepReachable has a repository that the server has access to swept for what no
// delivery tells.
func SweepReachable(tx *db.Tx, r repo.Ref) error { return delivery.Watch(tx, r.ID) }
