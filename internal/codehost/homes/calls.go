package homes

import (
	"context"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
)

type (
	host = builtin.Host
	repo = codehost.Repo
	two  = [2]string
	file struct {
		Content []byte
		SHA     string
	}
	folder struct {
		Commit string
		Files  map[string][]byte
	}
	merged struct {
		OK        bool
		Conflicts []string
	}
	wanted struct {
		Rev   string
		Words []string
	}
)

var (
	create = declare("create", func(c context.Context, h *host, r repo, o codehost.CreateOptions) (none, error) {
		return none{}, h.Create(c, r, o)
	})
	info     = declare("info", func(c context.Context, h *host, r repo, _ none) (codehost.Info, error) { return h.Info(c, r) })
	readFile = declare("read-file", func(c context.Context, h *host, r repo, at two) (f file, err error) {
		f.Content, f.SHA, err = h.ReadFile(c, r, at[0], at[1])
		return f, err
	})
	readDir = declare("read-dir", func(c context.Context, h *host, r repo, at two) (f folder, err error) {
		f.Commit, f.Files, err = h.ReadDir(c, r, at[0], at[1])
		return f, err
	})
	writeFiles = declare("write-files", func(c context.Context, h *host, r repo, o codehost.WriteOptions) (string, error) {
		return h.WriteFiles(c, r, o)
	})
	note = declare("note", func(c context.Context, h *host, r repo, o codehost.NoteOptions) (none, error) {
		return none{}, h.Note(c, r, o)
	})
	firstCommit = declare("first-commit", func(c context.Context, h *host, r repo, o codehost.FirstOptions) (string, error) {
		return h.FirstCommit(c, r, o)
	})
	head    = declare("head", func(c context.Context, h *host, r repo, branch string) (string, error) { return h.Head(c, r, branch) })
	heads   = declare("heads", func(c context.Context, h *host, r repo, _ none) (map[string]string, error) { return h.Heads(c, r) })
	byStart = declare("set-default", func(c context.Context, h *host, r repo, branch string) (none, error) {
		return none{}, h.SetDefaultBranch(c, r, branch)
	})
	commit  = declare("commit", func(c context.Context, h *host, r repo, digits string) (string, error) { return h.Commit(c, r, digits) })
	compare = declare("compare", func(c context.Context, h *host, r repo, of two) (codehost.Comparison, error) {
		return h.Compare(c, r, of[0], of[1])
	})
	outcome = declare("outcome", func(c context.Context, h *host, r repo, o codehost.OutcomeOptions) (codehost.Outcome, error) {
		return h.Outcome(c, r, o)
	})
	made = declare("made", func(c context.Context, h *host, r repo, of two) (codehost.Made, error) {
		return h.Made(c, r, of[0], of[1])
	})
	landed   = declare("landed", func(c context.Context, h *host, r repo, of two) (string, error) { return h.Landed(c, r, of[0], of[1]) })
	unwanted = declare("unwanted", func(c context.Context, h *host, r repo, of two) ([]codehost.Unwanted, error) {
		return h.Unwanted(c, r, of[0], of[1])
	})
	diff = declare("diff", func(c context.Context, h *host, r repo, o codehost.DiffOptions) (codehost.Diff, error) {
		return h.Diff(c, r, o)
	})
	mergeable = declare("mergeable", func(c context.Context, h *host, r repo, of two) (m merged, err error) {
		m.OK, m.Conflicts, err = h.Mergeable(c, r, of[0], of[1])
		return m, err
	})
	merge = declare("merge", func(c context.Context, h *host, r repo, o codehost.MergeOptions) (string, error) {
		return h.Merge(c, r, o)
	})
	stack = declare("stack", func(c context.Context, h *host, r repo, o codehost.StackOptions) (codehost.Stacked, error) {
		return h.Stack(c, r, o)
	})
	putBranch = declare("put-branch", func(c context.Context, h *host, r repo, of two) (none, error) {
		return none{}, h.PutBranch(c, r, of[0], of[1])
	})
	deleteBranch = declare("delete-branch", func(c context.Context, h *host, r repo, of two) (none, error) {
		return none{}, h.DeleteBranch(c, r, of[0], of[1])
	})
	tree   = declare("tree", func(c context.Context, h *host, r repo, rev string) (codehost.Tree, error) { return h.Tree(c, r, rev) })
	search = declare("search", func(c context.Context, h *host, r repo, of wanted) (codehost.Found, error) {
		return h.Search(c, r, of.Rev, of.Words)
	})
	renames = declare("renames", func(c context.Context, h *host, r repo, of two) (map[string]string, error) {
		return h.Renames(c, r, of[0], of[1])
	})
	maintain = declare("maintain", func(c context.Context, h *host, r repo, now time.Time) (none, error) {
		return none{}, h.Maintain(c, r, now)
	})
	pointed = declare("pointed", func(c context.Context, h *host, r repo, oids []string) ([]string, error) {
		return h.Pointed(c, r, oids)
	})
	size = declare("size", func(_ context.Context, h *host, r repo, _ none) (int64, error) { return h.Size(r) })
)

// Create implements codehost.Host. The repository is made at this node.
func (h *Host) Create(ctx context.Context, r repo, o codehost.CreateOptions) error {
	n, here, err := h.claim(ctx, r)
	if err == nil {
		_, err = on(ctx, h, n, here, create, r, o)
	}
	return err
}

// Info implements codehost.Host.
func (h *Host) Info(ctx context.Context, r repo) (codehost.Info, error) {
	return at(ctx, h, info, r, none{})
}

// ReadFile implements codehost.Host.
func (h *Host) ReadFile(ctx context.Context, r repo, rev, path string) ([]byte, string, error) {
	f, err := at(ctx, h, readFile, r, two{rev, path})
	return f.Content, f.SHA, err
}

// ReadDir implements codehost.Host.
func (h *Host) ReadDir(ctx context.Context, r repo, rev, path string) (string, map[string][]byte, error) {
	f, err := at(ctx, h, readDir, r, two{rev, path})
	return f.Commit, f.Files, err
}

// WriteFiles implements codehost.Host.
func (h *Host) WriteFiles(ctx context.Context, r repo, o codehost.WriteOptions) (string, error) {
	return at(ctx, h, writeFiles, r, o)
}

// Note implements codehost.Noter.
func (h *Host) Note(ctx context.Context, r repo, o codehost.NoteOptions) error {
	_, err := at(ctx, h, note, r, o)
	return err
}

// FirstCommit implements codehost.Host.
func (h *Host) FirstCommit(ctx context.Context, r repo, o codehost.FirstOptions) (string, error) {
	return at(ctx, h, firstCommit, r, o)
}

// Head implements codehost.Host.
func (h *Host) Head(ctx context.Context, r repo, branch string) (string, error) {
	return at(ctx, h, head, r, branch)
}

// Heads implements codehost.Branches.
func (h *Host) Heads(ctx context.Context, r repo) (map[string]string, error) {
	return at(ctx, h, heads, r, none{})
}

// SetDefaultBranch implements codehost.Defaulter.
func (h *Host) SetDefaultBranch(ctx context.Context, r repo, branch string) error {
	_, err := at(ctx, h, byStart, r, branch)
	return err
}

// Commit implements codehost.Host.
func (h *Host) Commit(ctx context.Context, r repo, digits string) (string, error) {
	return at(ctx, h, commit, r, digits)
}

// Compare implements codehost.Host.
func (h *Host) Compare(ctx context.Context, r repo, base, tip string) (codehost.Comparison, error) {
	return at(ctx, h, compare, r, two{base, tip})
}

// Outcome implements codehost.Host.
func (h *Host) Outcome(ctx context.Context, r repo, o codehost.OutcomeOptions) (codehost.Outcome, error) {
	return at(ctx, h, outcome, r, o)
}

// Made implements codehost.Host.
func (h *Host) Made(ctx context.Context, r repo, sha, as string) (codehost.Made, error) {
	return at(ctx, h, made, r, two{sha, as})
}

// Landed implements codehost.Host.
func (h *Host) Landed(ctx context.Context, r repo, base, sha string) (string, error) {
	return at(ctx, h, landed, r, two{base, sha})
}

// Unwanted implements codehost.Host.
func (h *Host) Unwanted(ctx context.Context, r repo, from, to string) ([]codehost.Unwanted, error) {
	return at(ctx, h, unwanted, r, two{from, to})
}

// Diff implements codehost.Host.
func (h *Host) Diff(ctx context.Context, r repo, o codehost.DiffOptions) (codehost.Diff, error) {
	return at(ctx, h, diff, r, o)
}

// Mergeable implements codehost.Host.
func (h *Host) Mergeable(ctx context.Context, r repo, base, tip string) (bool, []string, error) {
	m, err := at(ctx, h, mergeable, r, two{base, tip})
	return m.OK, m.Conflicts, err
}

// Merge implements codehost.Host.
func (h *Host) Merge(ctx context.Context, r repo, o codehost.MergeOptions) (string, error) {
	return at(ctx, h, merge, r, o)
}

// Stack implements codehost.Host.
func (h *Host) Stack(ctx context.Context, r repo, o codehost.StackOptions) (codehost.Stacked, error) {
	return at(ctx, h, stack, r, o)
}

// PutBranch implements codehost.Host.
func (h *Host) PutBranch(ctx context.Context, r repo, branch, sha string) error {
	_, err := at(ctx, h, putBranch, r, two{branch, sha})
	return err
}

// DeleteBranch implements codehost.Host.
func (h *Host) DeleteBranch(ctx context.Context, r repo, branch, expect string) error {
	_, err := at(ctx, h, deleteBranch, r, two{branch, expect})
	return err
}

// Tree implements codehost.Searcher.
func (h *Host) Tree(ctx context.Context, r repo, rev string) (codehost.Tree, error) {
	return at(ctx, h, tree, r, rev)
}

// Search implements codehost.Searcher.
func (h *Host) Search(ctx context.Context, r repo, rev string, words []string) (codehost.Found, error) {
	return at(ctx, h, search, r, wanted{rev, words})
}

// Renames implements codehost.Searcher.
func (h *Host) Renames(ctx context.Context, r repo, from, to string) (map[string]string, error) {
	return at(ctx, h, renames, r, two{from, to})
}

// Pointed answers those of some names of objects of Git LFS that a file in the repository names.
func (h *Host) Pointed(ctx context.Context, r repo, oids []string) ([]string, error) {
	return at(ctx, h, pointed, r, oids)
}

// Maintain packs a repository at its home.
func (h *Host) Maintain(ctx context.Context, r repo, now time.Time) error {
	_, err := at(ctx, h, maintain, r, now)
	return err
}
