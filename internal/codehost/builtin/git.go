package builtin

import (
	"context"

	"yardmaster/internal/codehost"
)

// Info implements codehost.Host.
func (h *Host) Info(ctx context.Context, r codehost.Repo) (codehost.Info, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Info{}, err
	}
	info, err := dir.Info(ctx)
	info.Repo = r
	return info, err
}

// Head implements codehost.Host.
func (h *Host) Head(ctx context.Context, r codehost.Repo, branch string) (string, error) {
	dir, err := h.open(r)
	if err != nil {
		return "", err
	}
	return dir.Head(ctx, branch)
}

// Heads implements codehost.Branches.
func (h *Host) Heads(ctx context.Context, r codehost.Repo) (map[string]string, error) {
	dir, err := h.open(r)
	if err != nil {
		return nil, err
	}
	return dir.Heads(ctx)
}

// SetDefaultBranch implements codehost.Defaulter.
func (h *Host) SetDefaultBranch(ctx context.Context, r codehost.Repo, branch string) error {
	dir, err := h.openToWrite(ctx, r)
	if err != nil {
		return err
	}
	defer dir.done()
	if _, err := dir.Head(ctx, branch); err != nil {
		return err
	}
	return dir.SetDefaultBranch(ctx, branch)
}

// ReadFile implements codehost.Host.
func (h *Host) ReadFile(ctx context.Context, r codehost.Repo, rev, path string) ([]byte, string, error) {
	dir, err := h.open(r)
	if err != nil {
		return nil, "", err
	}
	return dir.ReadFile(ctx, rev, path)
}

// ReadDir implements codehost.Host.
func (h *Host) ReadDir(ctx context.Context, r codehost.Repo, rev, folder string) (string, map[string][]byte, error) {
	dir, err := h.open(r)
	if err != nil {
		return "", nil, err
	}
	return dir.ReadDir(ctx, rev, folder)
}

// WriteFiles implements codehost.Host.
func (h *Host) WriteFiles(ctx context.Context, r codehost.Repo, o codehost.WriteOptions) (string, error) {
	dir, err := h.openToWrite(ctx, r)
	if err != nil {
		return "", err
	}
	defer dir.done()
	return dir.WriteFiles(ctx, o)
}

// Note implements codehost.Noter.
func (h *Host) Note(ctx context.Context, r codehost.Repo, o codehost.NoteOptions) error {
	dir, err := h.openToWrite(ctx, r)
	if err != nil {
		return err
	}
	defer dir.done()
	return dir.Note(ctx, o)
}

// FirstCommit implements codehost.Host.
func (h *Host) FirstCommit(ctx context.Context, r codehost.Repo, o codehost.FirstOptions) (string, error) {
	dir, err := h.openToWrite(ctx, r)
	if err != nil {
		return "", err
	}
	defer dir.done()
	return dir.FirstCommit(ctx, o)
}

// Commit implements codehost.Host.
func (h *Host) Commit(ctx context.Context, r codehost.Repo, digits string) (string, error) {
	dir, err := h.open(r)
	if err != nil {
		return "", err
	}
	return dir.Commit(ctx, digits)
}

// Compare implements codehost.Host.
func (h *Host) Compare(ctx context.Context, r codehost.Repo, base, head string) (codehost.Comparison, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Comparison{}, err
	}
	return dir.Compare(ctx, base, head)
}

// Unwanted implements codehost.Host.
func (h *Host) Unwanted(ctx context.Context, r codehost.Repo, from, to string) ([]codehost.Unwanted, error) {
	dir, err := h.open(r)
	if err != nil {
		return nil, err
	}
	return dir.Unwanted(ctx, from, to)
}

// Outcome implements codehost.Host.
func (h *Host) Outcome(ctx context.Context, r codehost.Repo, o codehost.OutcomeOptions) (codehost.Outcome, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Outcome{}, err
	}
	return dir.Outcome(ctx, o)
}

// Made implements codehost.Host.
func (h *Host) Made(ctx context.Context, r codehost.Repo, sha, tree string) (codehost.Made, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Made{}, err
	}
	return dir.Made(ctx, sha, tree)
}

// Landed implements codehost.Host.
func (h *Host) Landed(ctx context.Context, r codehost.Repo, base, sha string) (string, error) {
	dir, err := h.open(r)
	if err != nil {
		return "", err
	}
	return dir.Landed(ctx, base, sha)
}

// Diff implements codehost.Host.
func (h *Host) Diff(ctx context.Context, r codehost.Repo, o codehost.DiffOptions) (codehost.Diff, error) {
	dir, err := h.open(r)
	if err != nil {
		return codehost.Diff{}, err
	}
	return dir.Diff(ctx, o)
}

// Mergeable implements codehost.Host.
func (h *Host) Mergeable(ctx context.Context, r codehost.Repo, base, head string) (bool, []string, error) {
	dir, err := h.open(r)
	if err != nil {
		return false, nil, err
	}
	return dir.Mergeable(ctx, base, head)
}

// Merge implements codehost.Host.
func (h *Host) Merge(ctx context.Context, r codehost.Repo, o codehost.MergeOptions) (string, error) {
	dir, err := h.openToWrite(ctx, r)
	if err != nil {
		return "", err
	}
	defer dir.done()
	return dir.Merge(ctx, o)
}

// Stack implements codehost.Host.
func (h *Host) Stack(ctx context.Context, r codehost.Repo, o codehost.StackOptions) (codehost.Stacked, error) {
	dir, err := h.openToWrite(ctx, r)
	if err != nil {
		return codehost.Stacked{}, err
	}
	defer dir.done()
	return dir.Stack(ctx, o)
}

// PutBranch implements codehost.Host.
func (h *Host) PutBranch(ctx context.Context, r codehost.Repo, branch, sha string) error {
	dir, err := h.openToWrite(ctx, r)
	if err != nil {
		return err
	}
	defer dir.done()
	return dir.PutBranch(ctx, branch, sha)
}

// DeleteBranch implements codehost.Host.
func (h *Host) DeleteBranch(ctx context.Context, r codehost.Repo, branch, expectSHA string) error {
	dir, err := h.openToWrite(ctx, r)
	if err != nil {
		return err
	}
	defer dir.done()
	return dir.DeleteBranch(ctx, branch, expectSHA)
}

// Pointed answers those of some names of objects of Git LFS that a file in the repository names.
func (h *Host) Pointed(ctx context.Context, r codehost.Repo, oids []string) ([]string, error) {
	dir, err := h.open(r)
	if err != nil {
		return nil, err
	}
	return dir.Pointed(ctx, oids)
}
