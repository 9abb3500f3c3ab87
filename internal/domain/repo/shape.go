package repo

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// shape is what a host has of a repository by now.
type shape struct {
	info    codehost.Info
	heads   map[string]string // of the branches that were asked about
	file    File
	near    string  // a file that looks like the policy file, where that is missing
	modules *string // the file .gitmodules; nil: there is none that counts
	way     *string // the branch beside which those of the service cannot be; empty: none; nil: not looked at
}

// look asks a host for the shape of a repository after a push, which may have no updates.
func look(ctx context.Context, host codehost.Host, e codehost.PushEvent) (now shape, err error) {
	if now.info, err = host.Info(ctx, e.Repo); err != nil {
		return now, err
	}
	if now.heads, err = headsAfter(ctx, host, e); err != nil {
		return now, err
	}
	if now.file, err = PolicyAt(ctx, host, e.Repo, now.info.DefaultBranch); err != nil {
		return now, err
	}
	if now.file.Text == nil && now.info.HeadSHA != "" {
		if now.near, err = nearMiss(ctx, host, e.Repo, now.info.DefaultBranch); err != nil {
			return now, err
		}
	}
	if now.modules, err = modulesAt(ctx, host, e.Repo, now.info.DefaultBranch); err != nil {
		return now, err
	}
	now.way, err = inTheWay(ctx, host, e)
	return now, err
}

// note records the shape of a repository of tx.Account in its row, and tells of a policy
// that may be another now, and of what kept tasks waiting.
func (s *Service) note(tx *db.Tx, r *row, now shape) error {
	policy := r.PolicySHA != now.file.SHA || r.DefaultBranch != now.info.DefaultBranch
	before := *r
	r.DefaultBranch, r.PolicySHA, r.PolicyYML, r.PolicyError = now.info.DefaultBranch, now.file.SHA, now.file.Text, now.file.Problem
	r.PolicyNear, r.Unborn, r.Gitmodules, r.HeadSHA = now.near, now.info.HeadSHA == "", now.modules, now.info.HeadSHA
	if now.way != nil {
		r.InTheWay = *now.way
	}
	if _, err := activity.Exec(tx, activityArgs{
		ID: r.ID, LastActivityAt: tx.Now, DefaultBranch: r.DefaultBranch, PolicySHA: r.PolicySHA, PolicyYML: r.PolicyYML,
		PolicyError: r.PolicyError, PolicyNear: r.PolicyNear, InTheWay: r.InTheWay, Unborn: r.Unborn, Gitmodules: r.Gitmodules,
		HeadSHA: r.HeadSHA,
	}); err != nil {
		return err
	}
	if before.Unborn != r.Unborn || before.InTheWay != r.InTheWay {
		s.Hub.Notify(tx, event.QueueTopic(tx.Account), event.QueueTopic(""))
	}
	if policy {
		return PolicyChanged.Send(tx, r.ref())
	}
	return nil
}

// fewBranches is how many branches a host is asked for one by one.
const fewBranches = 4

// headsAfter are the commits that the branches of a push are at by now; codehost.ZeroSHA
// where one is gone.
func headsAfter(ctx context.Context, host codehost.Host, e codehost.PushEvent) (map[string]string, error) {
	heads := map[string]string{}
	var all map[string]string
	if of, can := host.(codehost.Branches); can && len(e.Updates) > fewBranches {
		var err error
		if all, err = of.Heads(ctx, e.Repo); err != nil {
			return nil, err
		}
	}
	for _, u := range e.Updates {
		branch, isBranch := strings.CutPrefix(u.Ref, "refs/heads/")
		if !isBranch {
			continue
		}
		if all != nil {
			heads[branch] = cmp.Or(all[branch], codehost.ZeroSHA)
			continue
		}
		sha, err := host.Head(ctx, e.Repo, branch)
		if errors.Is(err, codehost.ErrNotFound) {
			sha, err = codehost.ZeroSHA, nil
		}
		if err != nil {
			return nil, err
		}
		heads[branch] = sha
	}
	return heads, nil
}

// inTheWay finds the branch beside which git cannot have the branches of the service. It
// is nil for a push that says nothing about that.
func inTheWay(ctx context.Context, host codehost.Host, e codehost.PushEvent) (*string, error) {
	names := []string{codehost.TaskRoot}
	for _, u := range e.Updates {
		if codehost.InTheWay(u.Ref) {
			names = append(names, strings.TrimPrefix(u.Ref, "refs/heads/"))
		}
	}
	if len(e.Updates) > 0 && len(names) == 1 {
		return nil, nil
	}
	none := ""
	for _, branch := range names {
		_, err := host.Head(ctx, e.Repo, branch)
		switch {
		case err == nil:
			return &branch, nil
		case !errors.Is(err, codehost.ErrNotFound):
			return nil, err
		}
	}
	return &none, nil
}

// nearMiss finds a file that somebody may take for the policy file: of another ending or
// case, or in a folder without the dot. It is "" where there is none.
func nearMiss(ctx context.Context, host codehost.Host, r codehost.Repo, rev string) (string, error) {
	folder, _ := path.Split(PolicyPath)
	for _, in := range []string{strings.TrimSuffix(folder, "/"), codehost.TaskRoot} {
		_, files, err := host.ReadDir(ctx, r, rev, in)
		if errors.Is(err, codehost.ErrNotFound) || errors.Is(err, codehost.ErrTooLarge) {
			continue
		}
		if err != nil {
			return "", err
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if lower := strings.ToLower(name); strings.TrimSuffix(lower, path.Ext(lower)) == "policy" {
				return storable(in + "/" + name), nil
			}
		}
	}
	return "", nil
}
