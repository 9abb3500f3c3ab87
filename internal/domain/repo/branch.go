package repo

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// Renamed is another default branch that is at the commit of the one before: that was
// given another name.
type Renamed struct {
	Repo Ref // as it is from then on
	From string
}

// DefaultRenamed is sent in the transaction that records the new name of a default branch.
var DefaultRenamed = event.DeclareSignal[Renamed]("repo.default_renamed", "The default branch of a repository has another name.")

// chosen is a default branch that the host has by now, and the way back.
type chosen struct {
	shape   shape
	renamed bool
	from    string
	undo    func()
	done    func() // lets others record what the repository has
}

// choose makes another branch the default at the host of a repository. Bad names change
// nothing. The caller has record record it, or calls undo, and then done.
func (s *Service) choose(ctx context.Context, in placeIn, branch string) (c chosen, err error) {
	var r row
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err = in.find(tx)
		return err
	})
	if err != nil {
		return c, err
	}
	name := r.ref().HostRepo()
	host, err := s.Hosts.Of(name)
	if err != nil {
		return c, err
	}
	of, can := host.(codehost.Defaulter)
	switch {
	case !can && branch != r.DefaultBranch:
		return c, fault.Field("default_branch", "is chosen at its code host "+r.Host+", and followed from there")
	case !codehost.ValidBranch(branch):
		return c, fault.Field("default_branch", "is not a valid branch name")
	}
	c.done = s.alone(name)
	defer func() {
		if err != nil {
			c.done()
		}
	}()
	before, err := host.Info(ctx, name)
	if err != nil {
		return c, err
	}
	if can && before.DefaultBranch != branch {
		err := of.SetDefaultBranch(ctx, name, branch)
		if errors.Is(err, codehost.ErrNotFound) {
			return c, fault.Field("default_branch", "is no branch of the repository: push it first")
		}
		if err != nil {
			return c, err
		}
	}
	c.from = before.DefaultBranch
	c.undo = func() {
		if !can || before.DefaultBranch == branch {
			return
		}
		if err := of.SetDefaultBranch(context.WithoutCancel(ctx), name, before.DefaultBranch); err != nil {
			s.Logger.ErrorContext(ctx, "the default branch was not put back", "repo", name.String(), "err", err)
		}
	}
	if c.shape, err = look(ctx, host, codehost.PushEvent{Repo: name}); err != nil {
		c.undo()
		return c, err
	}
	c.renamed = before.DefaultBranch != branch && before.HeadSHA != "" && before.HeadSHA == c.shape.info.HeadSHA
	return c, nil
}

// record records the default branch that choose has made the default.
func (c chosen) record(tx *db.Tx, s *Service, r *row) error {
	if err := s.note(tx, r, c.shape); err != nil {
		return err
	}
	if !c.renamed {
		return nil
	}
	return DefaultRenamed.Send(tx, Renamed{Repo: r.ref(), From: c.from})
}
