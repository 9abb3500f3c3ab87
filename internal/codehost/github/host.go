package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// Create implements codehost.Host.
func (h *Host) Create(ctx context.Context, r codehost.Repo, o codehost.CreateOptions) error {
	if err := h.ours(r); err != nil {
		return err
	}
	_, err := h.CreateRepo(ctx, r.Owner, "", codehost.NewRepo{Name: r.Name, Private: o.Private})
	return err
}

// Info implements codehost.Host.
func (h *Host) Info(ctx context.Context, r codehost.Repo) (codehost.Info, error) {
	var w wireRepo
	if err := h.get(ctx, r, permissions{"metadata": "read"}, "", &w); err != nil {
		return codehost.Info{}, err
	}
	found := h.repo(w)
	if r.ID != "" && found.ID != r.ID {
		return codehost.Info{}, codehost.ErrNotFound
	}
	h.names.Store(found.Key(), named{repo: found, at: h.cfg.Now()})
	info := codehost.Info{Repo: found, DefaultBranch: w.DefaultBranch}
	var err error
	if info.HeadSHA, err = h.Head(ctx, found, w.DefaultBranch); !errors.Is(err, codehost.ErrNotFound) {
		return info, err
	}
	var branches []struct {
		Name string `json:"name"`
	}
	_, err = h.do(ctx, found, call{
		method: http.MethodGet, sub: "/branches", query: map[string][]string{"per_page": {"1"}}, need: permissions{"contents": "read"},
	}, &branches)
	info.Empty = len(branches) == 0
	return info, err
}

// headTag is the head of a branch as it was read last.
type headTag struct {
	sha string
	tag codehost.Tag
}

// mostHeads is the number of heads that are remembered.
const mostHeads = 10000

// Head implements codehost.Host. An unchanged head costs nothing of the limits.
func (h *Host) Head(ctx context.Context, r codehost.Repo, branch string) (string, error) {
	if !codehost.ValidBranch(branch) {
		return "", codehost.ErrNotFound
	}
	return h.ref(ctx, r, "heads/"+branch)
}

// ref is the commit of a ref, given without "refs/".
func (h *Host) ref(ctx context.Context, r codehost.Repo, name string) (string, error) {
	key := r.Host + " " + r.ID + " " + r.String() + " " + name
	var was headTag
	if found, ok := h.heads.Load(key); ok {
		was = found.(headTag)
	}
	var got struct {
		Ref    string `json:"ref"`
		Object struct {
			SHA  string `json:"sha"`
			Type string `json:"type"`
		} `json:"object"`
	}
	re, err := h.do(ctx, r, call{
		method: http.MethodGet, sub: "/git/ref/" + refPath(name), tag: was.tag, need: permissions{"contents": "read"},
	}, &got)
	if _, empty := refused(err, http.StatusConflict); empty { // "Git Repository is empty."
		return "", codehost.ErrNotFound.Because(err)
	}
	if errors.Is(err, codehost.ErrNotModified) {
		return was.sha, nil
	}
	if err != nil {
		return "", err
	}
	if got.Ref != "refs/"+name || !codehost.ValidSHA(got.Object.SHA) {
		return "", codehost.ErrNotFound
	}
	if h.headCount.Add(1) > mostHeads {
		h.heads.Clear()
		h.headCount.Store(0)
	}
	h.heads.Store(key, headTag{got.Object.SHA, re.tag})
	return got.Object.SHA, nil
}

// ReadFile implements codehost.Host.
func (h *Host) ReadFile(ctx context.Context, r codehost.Repo, rev, path string) ([]byte, string, error) {
	dir, at, err := h.at(ctx, r, rev)
	if err != nil {
		return nil, "", err
	}
	return dir.ReadFile(ctx, at[0], path)
}

// ReadDir implements codehost.Host.
func (h *Host) ReadDir(ctx context.Context, r codehost.Repo, rev, folder string) (string, map[string][]byte, error) {
	dir, at, err := h.at(ctx, r, rev)
	if err != nil {
		return "", nil, err
	}
	return dir.ReadDir(ctx, at[0], folder)
}

// Commit implements codehost.Host. A commit that no branch has is found by all of its
// digits alone.
func (h *Host) Commit(ctx context.Context, r codehost.Repo, digits string) (string, error) {
	if codehost.ValidSHA(digits) {
		_, at, err := h.at(ctx, r, digits)
		if err != nil {
			return "", err
		}
		return at[0], nil
	}
	if err := h.ours(r); err != nil {
		return "", err
	}
	m, err := h.mirror(ctx, r)
	if err != nil {
		return "", err
	}
	if sha, err := m.dir.Commit(ctx, digits); !errors.Is(err, codehost.ErrNotFound) {
		return sha, err
	}
	err = h.background(ctx, func(ctx context.Context) error {
		m.fetching.Lock()
		defer m.fetching.Unlock()
		return h.fetchRefs(ctx, r, m.dir, "+refs/heads/*:refs/heads/*")
	})
	if err != nil {
		return "", err
	}
	return m.dir.Commit(ctx, digits)
}

// Compare implements codehost.Host.
func (h *Host) Compare(ctx context.Context, r codehost.Repo, base, head string) (codehost.Comparison, error) {
	dir, at, err := h.at(ctx, r, base, head)
	if err != nil {
		return codehost.Comparison{}, err
	}
	return dir.Compare(ctx, at[0], at[1])
}

// Unwanted implements codehost.Host.
func (h *Host) Unwanted(ctx context.Context, r codehost.Repo, from, to string) ([]codehost.Unwanted, error) {
	dir, at, err := h.at(ctx, r, from, to)
	if err != nil {
		return nil, err
	}
	return dir.Unwanted(ctx, at[0], at[1])
}

// Outcome implements codehost.Host. GitHub merges by itself, and what was squashed into the
// base is a head's own to it.
func (h *Host) Outcome(ctx context.Context, r codehost.Repo, o codehost.OutcomeOptions) (codehost.Outcome, error) {
	dir, at, err := h.at(ctx, r, o.Base, o.Head)
	if err != nil {
		return codehost.Outcome{}, err
	}
	o.Base, o.Head = at[0], at[1]
	return dir.PlainOutcome(ctx, o)
}

// Made implements codehost.Host. The tree is one of the mirror.
func (h *Host) Made(ctx context.Context, r codehost.Repo, sha, tree string) (codehost.Made, error) {
	dir, at, err := h.at(ctx, r, sha)
	if err != nil {
		return codehost.Made{}, err
	}
	return dir.Made(ctx, at[0], tree)
}

// Landed implements codehost.Host. A squash that a person made at GitHub leaves no
// trace in git; GitHub knows the pull request.
func (h *Host) Landed(ctx context.Context, r codehost.Repo, base, sha string) (string, error) {
	dir, at, err := h.at(ctx, r, base, sha)
	if err != nil {
		return "", err
	}
	if found, err := dir.Landed(ctx, at[0], at[1]); err != nil || found != "" {
		return found, err
	}
	pulls, err := all[wirePull](ctx, h, r, permissions{"contents": "read", "pull_requests": "read"}, "/commits/"+at[1]+"/pulls", nil)
	if errors.Is(err, codehost.ErrNotFound) { // GitHub has lost the commit, the mirror has not
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, p := range pulls {
		if p.MergedAt.IsZero() || p.Head.SHA != at[1] || !codehost.ValidSHA(p.MergeSHA) {
			continue
		}
		if dir, ends, err := h.at(ctx, r, at[0], p.MergeSHA); err == nil {
			if found, err := dir.Landed(ctx, ends[0], ends[1]); err != nil || found != "" {
				return found, err
			}
		} else if !errors.Is(err, codehost.ErrNotFound) {
			return "", err
		}
	}
	return "", nil
}

// Diff implements codehost.Host.
func (h *Host) Diff(ctx context.Context, r codehost.Repo, o codehost.DiffOptions) (codehost.Diff, error) {
	revs := []string{o.To}
	if o.From != "" {
		revs = append(revs, o.From)
	}
	dir, at, err := h.at(ctx, r, revs...)
	if err != nil {
		return codehost.Diff{}, err
	}
	if o.To = at[0]; o.From != "" {
		o.From = at[1]
	}
	return dir.Diff(ctx, o)
}

// Mergeable implements codehost.Host.
func (h *Host) Mergeable(ctx context.Context, r codehost.Repo, base, head string) (bool, []string, error) {
	dir, at, err := h.at(ctx, r, base, head)
	if err != nil {
		return false, nil, err
	}
	return dir.Mergeable(ctx, at[0], at[1])
}

// Merge implements codehost.Host. GitHub merges pull requests alone: without
// o.Number it fails with codehost.ErrCannot, and o.BaseSHA is compared before the
// merge, not in one step with it.
func (h *Host) Merge(ctx context.Context, r codehost.Repo, o codehost.MergeOptions) (string, error) {
	if o.Number == 0 {
		return "", codehost.ErrCannot
	}
	if !codehost.ValidSHA(o.HeadSHA) {
		return "", fault.Field("head_sha", "is not a full commit SHA")
	}
	if o.BaseSHA != "" {
		done, err := h.Landed(ctx, r, o.Base, o.HeadSHA)
		if err != nil && !errors.Is(err, codehost.ErrNotFound) || done != "" {
			return done, err
		}
		at, err := h.Head(ctx, r, o.Base)
		if err != nil {
			return "", err
		}
		if at != o.BaseSHA {
			return "", codehost.ErrBaseMoved
		}
	}
	return h.MergePull(ctx, r, "", o.Number, codehost.PullMerge{HeadSHA: o.HeadSHA, Method: o.Method, Title: o.Title, Body: o.Body})
}

// WriteFiles implements codehost.Host. The commit is made in the mirror and pushed.
func (h *Host) WriteFiles(ctx context.Context, r codehost.Repo, o codehost.WriteOptions) (string, error) {
	if !codehost.ValidSHA(o.Parent) {
		return "", fault.Field("parent", "is not a full commit SHA")
	}
	head, err := h.Head(ctx, r, o.Branch)
	if err != nil {
		return "", err
	}
	if head != o.Parent {
		return "", codehost.ErrHeadMoved
	}
	dir, _, err := h.at(ctx, r, o.Parent)
	if err != nil {
		return "", err
	}
	sha, err := dir.CommitFiles(ctx, o)
	if err != nil || sha == o.Parent {
		return sha, err
	}
	if err := h.push(ctx, r, o.Branch, o.Parent, sha); err != nil {
		return "", fmt.Errorf("write files to %s of %s: %w", o.Branch, r, err)
	}
	return sha, nil
}

// FirstCommit implements codehost.Host. The commit is made in the mirror and pushed.
func (h *Host) FirstCommit(ctx context.Context, r codehost.Repo, o codehost.FirstOptions) (string, error) {
	if err := h.ours(r); err != nil {
		return "", err
	}
	m, err := h.mirror(ctx, r)
	if err != nil {
		return "", err
	}
	sha, err := m.dir.FirstFiles(ctx, o)
	if err != nil {
		return "", err
	}
	switch head, err := h.Head(ctx, r, o.Branch); {
	case err == nil && head == sha:
		return sha, nil
	case err == nil:
		return "", codehost.ErrHeadMoved
	case !errors.Is(err, codehost.ErrNotFound):
		return "", err
	}
	if err := h.push(ctx, r, o.Branch, "", sha); err != nil {
		return "", fmt.Errorf("make the first commit of %s: %w", r, err)
	}
	return sha, nil
}

// Stack implements codehost.Host. The commits are made in the mirror.
func (h *Host) Stack(ctx context.Context, r codehost.Repo, o codehost.StackOptions) (codehost.Stacked, error) {
	for _, sha := range append([]string{o.BaseSHA}, o.Heads...) {
		if !codehost.ValidSHA(sha) {
			return codehost.Stacked{}, fault.Field("heads", "has an entry that is not a full commit SHA")
		}
	}
	dir, _, err := h.at(ctx, r, append([]string{o.BaseSHA}, o.Heads...)...)
	if err != nil {
		return codehost.Stacked{}, err
	}
	return dir.Stack(ctx, o)
}

// PutBranch implements codehost.Host. A branch that somebody else has moved is moved
// back.
func (h *Host) PutBranch(ctx context.Context, r codehost.Repo, branch, sha string) error {
	if !codehost.QueueBranch(branch) || !codehost.ValidSHA(sha) {
		return codehost.ErrNotFound
	}
	at, err := h.Head(ctx, r, branch)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	if at == sha {
		return nil
	}
	if err := h.push(ctx, r, branch, at, sha); err != nil {
		return fmt.Errorf("put branch %s of %s: %w", branch, r, err)
	}
	return nil
}

// push moves a branch from one commit to another; from "" makes it, and to "" deletes
// it. GitHub compares the commit in the same step. A refusal may be the answer to a second
// request, which git's transport has sent because the answer to the first was lost; so
// the branch is read again.
func (h *Host) push(ctx context.Context, r codehost.Repo, branch, from, to string) error {
	m, err := h.mirror(ctx, r)
	if err != nil {
		return err
	}
	ref := "refs/heads/" + branch
	args := []string{"push", "--porcelain", "--no-verify", "--force-with-lease=" + ref + ":" + from}
	_, err = h.remote(ctx, r, m.dir, true, func(address string) []string {
		return slices.Concat(args, []string{address, to + ":" + ref})
	})
	if errors.Is(err, codehost.ErrHeadMoved) {
		now, failed := h.Head(ctx, r, branch)
		if failed == nil && now == to || to == "" && errors.Is(failed, codehost.ErrNotFound) {
			return nil
		}
	}
	return err
}

// MoveBranch implements codehost.Mover. It is a push with the commit that the branch is
// at, which GitHub compares in the same step as it moves the ref; its API to update a
// reference has no such guard (page "REST API endpoints for Git references").
func (h *Host) MoveBranch(ctx context.Context, r codehost.Repo, branch, from, to string) error {
	if !codehost.ValidSHA(from) || !codehost.ValidSHA(to) {
		return fault.Field("head_sha", "is not a full commit SHA")
	}
	head, err := h.Head(ctx, r, branch)
	if err != nil || head == to {
		return err
	}
	if head != from {
		return codehost.ErrHeadMoved
	}
	dir, at, err := h.at(ctx, r, from, to)
	if err != nil {
		return err
	}
	if c, err := dir.Compare(ctx, at[0], at[1]); err != nil || c.MergeBase != from {
		return errors.Join(err, codehost.ErrHeadMoved) // it would lose commits
	}
	if err := h.push(ctx, r, branch, from, to); err != nil {
		return fmt.Errorf("move branch %s of %s: %w", branch, r, err)
	}
	return nil
}

// DeleteBranch implements codehost.Host.
func (h *Host) DeleteBranch(ctx context.Context, r codehost.Repo, branch, expectSHA string) error {
	if !codehost.ValidSHA(expectSHA) {
		return fault.Field("head_sha", "is not a full commit SHA")
	}
	info, err := h.Info(ctx, r)
	if err != nil {
		return err
	}
	head, err := h.Head(ctx, r, branch)
	if err != nil {
		return err
	}
	if head != expectSHA {
		return codehost.ErrHeadMoved
	}
	if branch == info.DefaultBranch {
		return fault.Reason("default-branch", "The default branch cannot be deleted.")
	}
	if err := h.push(ctx, r, branch, expectSHA, ""); err != nil {
		return fmt.Errorf("delete branch %s of %s: %w", branch, r, err)
	}
	return nil
}
