package trial

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// Kept tells whether the host of a repository keeps pull requests: then an intent opens
// and closes them there. At another host the rows here are all there is of them.
func (s *Trials) Kept(r repo.Ref) bool {
	forge, err := s.hosts.Forge(r.HostRepo())
	return err == nil && forge.Can(codehost.KeepPulls)
}

// headOf is the commit of the branch of a pull request. The branch of a fork is in another
// repository: its host tells of a new head.
func headOf(ctx context.Context, host codehost.Host, r codehost.Repo, d record.FactsRow) (string, error) {
	if !codehost.ValidBranch(d.HeadRef) {
		return d.HeadSHA, nil
	}
	return host.Head(ctx, r, d.HeadRef)
}

// ErrNoRepo is the failure of what is asked about a repository that its host has not.
var ErrNoRepo = errors.New("the repository has no commit at the code host")

// FactsAt asks the host about the head of a pull request. It fails with ErrNoRepo, and with the
// errors of the host.
func (s *Trials) FactsAt(ctx context.Context, at repo.Ref, d record.FactsRow) (f record.InGit, err error) {
	r := at.HostRepo()
	host, err := s.hosts.Of(r)
	if err != nil {
		return f, err
	}
	if info, err := host.Info(ctx, r); err != nil || info.Empty {
		return f, errors.Join(ErrNoRepo, err) // a lost repository gives no facts
	}
	switch head, err := headOf(ctx, host, r, d); {
	case errors.Is(err, codehost.ErrNotFound):
		f.Gone = true
	case err != nil:
		return f, err
	case head != d.HeadSHA:
		f.Head = head
		return f, nil
	}
	f.Mergeable = "unknown"
	if f.Merge, err = host.Landed(ctx, r, d.BaseRef, d.HeadSHA); err != nil {
		return f, err
	}
	if f.Merge != "" {
		had, err := host.Landed(ctx, r, d.BaseSHA, d.HeadSHA)
		if errors.Is(err, codehost.ErrNotFound) {
			err = nil // the old commit of the base is gone: the base was force-pushed
		}
		f.Empty = had != ""
		return f, err
	}
	c, err := host.Compare(ctx, r, d.BaseRef, d.HeadSHA)
	if err != nil {
		return f, err
	}
	f.Base, f.Patch, f.Mergeable = c.BaseSHA, c.PatchID, "conflict"
	f.Change, f.MergeBase, f.MergeBases, f.Paths = c.Change, c.MergeBase, c.MergeBases, c.Paths
	f.Added, f.Deleted = c.Added, c.Deleted
	if c.MergeBase != "" {
		found, err := host.Unwanted(ctx, r, c.MergeBase, c.HeadSHA)
		if err != nil {
			return f, err
		}
		f.Unwanted = unwanted(found)
	}
	if d.Carry == record.CarryLook {
		if f.LastPush, err = lastPush(ctx, s.hosts, r, d.BaseRef); err != nil {
			return f, err
		}
	}
	o, _, err := s.tried(ctx, at, record.Attempt{BaseRef: d.BaseRef, Head: d.HeadSHA, StartSHA: d.StartSHA, Had: d.Had.V})
	if err != nil {
		return f, err
	}
	if !o.Conflict {
		f.Mergeable = "clean"
	}
	f.Base, f.Would, f.Had = o.BaseSHA, would(at, o), had(o)
	return f, nil
}

// lastPush tells whether a branch wants its last push approved by somebody else.
func lastPush(ctx context.Context, hosts *codehost.Hosts, r codehost.Repo, branch string) (bool, error) {
	forge, err := hosts.Forge(r)
	if err != nil || !forge.Can(codehost.KeepRules) {
		return false, err
	}
	rules, _, err := forge.BranchRules(ctx, r, branch, "")
	if _, hidden := errors.AsType[*codehost.ForbiddenError](err); hidden {
		return true, nil // what the server may not see may be forbidden
	}
	return rules.LastPush, err
}

// mostUnwanted limits how much is listed of what a change should not have.
const mostUnwanted = 20

// unwanted is what is stored of what a code host has found.
func unwanted(found []codehost.Unwanted) *db.JSON[record.Unwanted] {
	out := record.Unwanted{Files: []record.UnwantedFile{}}
	for i, u := range found {
		if i == mostUnwanted {
			out.More = int64(len(found) - i)
			break
		}
		out.Files = append(out.Files, record.UnwantedFile{Kind: u.Kind, Path: codehost.Legible(u.Path), Count: int64(u.Files)})
	}
	return &db.JSON[record.Unwanted]{V: out}
}
