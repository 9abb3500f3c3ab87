package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/domain/repo"
)

// forge is a code host in memory: commits are numbers with parents, and which
// heads conflict with their base is as the walk has drawn it. What one method
// says, the others say too.
type forge struct {
	mu    sync.Mutex
	made  int64
	repos map[codehost.Repo]*forgeRepo
	// mishap comes over the next merge that would be made in the repositories of
	// account, and is gone.
	account string
	mishap  mishap
}

// mishap is what may happen around one merge.
type mishap struct {
	refuse error  // it is not made
	before func() // happens first, and is seen by the merge
	after  func() // happens once it was made
	forget error  // is answered, although it was made
}

type forgeRepo struct {
	policy   string
	branches map[string]string
	parents  map[string][]string
	clashes  map[string]bool   // heads that conflict with the base as it is
	guarded  map[string]bool   // heads that change what is protected
	squashed map[string]string // the commit that brought a head
	changes  map[string]string // of rebased heads, see change
	merged   []string          // heads that Merge brought into the base, oldest first
}

var (
	_ codehost.Host = (*forge)(nil)
	_ repo.Folders  = (*forge)(nil)
)

// served are the hosts of a server whose built-in one is f.
func (f *forge) served() *codehost.Hosts {
	return codehost.NewHosts(map[string]codehost.Sides{codehost.BuiltIn: {Host: f, Forge: builtin.Forge{}}})
}

// builtIn names a repository of the built-in host.
func builtIn(owner, name string) codehost.Repo {
	return codehost.Repo{Host: codehost.BuiltIn, Owner: owner, Name: name}
}

// Missing finds no folder missing: there are none.
func (f *forge) Missing([]codehost.Repo) []codehost.Repo { return nil }

// Stored finds no folder: there are none.
func (f *forge) Stored() ([]codehost.Repo, error) { return nil, nil }

func (f *forge) Pointed(context.Context, codehost.Repo, []string) ([]string, error) { return nil, nil }

// Stack and PutBranch are for queues, which no repository of a walk has.
func (f *forge) Stack(context.Context, codehost.Repo, codehost.StackOptions) (codehost.Stacked, error) {
	return codehost.Stacked{}, codehost.ErrNotFound
}

func (f *forge) PutBranch(context.Context, codehost.Repo, string, string) error {
	return codehost.ErrNotFound
}

// Maintain has nothing to pack.
func (f *forge) Maintain(context.Context, codehost.Repo, time.Time) error { return nil }

func newForge() *forge { return &forge{repos: map[codehost.Repo]*forgeRepo{}} }

// install makes a repository with one commit.
func (f *forge) install(r codehost.Repo, policy string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := &forgeRepo{policy: policy, branches: map[string]string{}, parents: map[string][]string{}, clashes: map[string]bool{},
		guarded: map[string]bool{}, squashed: map[string]string{}, changes: map[string]string{}}
	f.repos[r] = g
	g.branches["main"] = f.commit(g)
}

// rewrite has a repository say another policy.
func (f *forge) rewrite(r codehost.Repo, policy string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repos[r].policy = policy
}

func (f *forge) commit(g *forgeRepo, parents ...string) string {
	f.made++
	sha := fmt.Sprintf("%040x", f.made)
	g.parents[sha] = parents
	return sha
}

// push puts a commit on a branch, which begins at a rev, else at the base.
func (f *forge) push(r codehost.Repo, branch, begin string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.repos[r]
	parent := g.branches[branch]
	for _, p := range []string{begin, g.branches["main"]} {
		if _, known := g.parents[p]; parent == "" && known {
			parent = p
		}
	}
	sha := f.commit(g, parent)
	g.guarded[sha] = g.guarded[parent] && !g.has(g.branches["main"], parent)
	g.branches[branch] = sha
	return sha
}

// set moves a branch to a commit; "" deletes it.
func (f *forge) set(r codehost.Repo, branch, sha string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if sha == "" {
		delete(f.repos[r].branches, branch)
		return
	}
	f.repos[r].branches[branch] = sha
}

// at is where a branch is; "" if there is none.
func (f *forge) at(r codehost.Repo, branch string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.repos[r].branches[branch]
}

// clash has a head conflict with its base, or not any more.
func (f *forge) clash(r codehost.Repo, head string, does bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repos[r].clashes[head] = does
}

func (f *forge) guard(r codehost.Repo, head string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.repos[r].guarded[head] = true
}

// bring merges a head into the base as a person does who pushes.
func (f *forge) bring(r codehost.Repo, head string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.repos[r]
	g.branches["main"] = f.commit(g, g.branches["main"], head)
}

// landed is Landed, "" for an unknown commit.
func (f *forge) landed(r codehost.Repo, sha string) string {
	merge, err := f.Landed(context.Background(), r, "main", sha)
	if err != nil {
		return ""
	}
	return merge
}

// mergedHeads are the heads that Merge has brought into the base.
func (f *forge) mergedHeads(r codehost.Repo) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.repos[r].merged)
}

// has tells whether a commit is another or among its ancestors.
func (g *forgeRepo) has(at, sha string) bool {
	seen := map[string]bool{}
	for next := []string{at}; len(next) > 0; {
		c := next[len(next)-1]
		if next = next[:len(next)-1]; c == sha {
			return true
		}
		if !seen[c] {
			seen[c] = true
			next = append(next, g.parents[c]...)
		}
	}
	return false
}

// by is the commit on the first-parent line of base that brought a commit.
func (g *forgeRepo) by(base, sha string) (merge string) {
	if brought := g.squashed[sha]; brought != "" && g.has(base, brought) {
		return brought
	}
	for c := base; c != "" && g.has(c, sha); {
		merge = c
		if len(g.parents[c]) == 0 {
			break
		}
		c = g.parents[c][0]
	}
	return merge
}

func (f *forge) open(r codehost.Repo, revs ...string) (*forgeRepo, []string, error) {
	g, ok := f.repos[r]
	if !ok {
		return nil, nil, codehost.ErrNotFound
	}
	at := make([]string, len(revs))
	for i, rev := range revs {
		if _, known := g.parents[rev]; known {
			at[i] = rev
		} else if at[i] = g.branches[rev]; at[i] == "" {
			return nil, nil, codehost.ErrNotFound
		}
	}
	return g, at, nil
}

// Create implements codehost.Host.
func (f *forge) Create(context.Context, codehost.Repo, codehost.CreateOptions) error {
	return codehost.ErrExists
}

// Info implements codehost.Host.
func (f *forge) Info(_ context.Context, r codehost.Repo) (codehost.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, _, err := f.open(r)
	if err != nil {
		return codehost.Info{}, err
	}
	return codehost.Info{DefaultBranch: "main", HeadSHA: g.branches["main"]}, nil
}

// CloneURL implements codehost.Host.
func (f *forge) CloneURL(r codehost.Repo) string { return "http://forge/" + r.String() }

// ReadFile implements codehost.Host. There is one file, the same everywhere.
func (f *forge) ReadFile(_ context.Context, r codehost.Repo, rev, path string) ([]byte, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, _, err := f.open(r, rev)
	if err == nil && path != repo.PolicyPath {
		err = codehost.ErrNotFound
	}
	if err != nil {
		return nil, "", err
	}
	return []byte(g.policy), "policy", nil
}

// ReadDir implements codehost.Host.
func (f *forge) ReadDir(context.Context, codehost.Repo, string, string) (string, map[string][]byte, error) {
	return "", nil, codehost.ErrNotFound
}

// WriteFiles implements codehost.Host.
func (f *forge) WriteFiles(context.Context, codehost.Repo, codehost.WriteOptions) (string, error) {
	return "", errors.New("nobody writes files here")
}

// FirstCommit implements codehost.Host.
func (f *forge) FirstCommit(context.Context, codehost.Repo, codehost.FirstOptions) (string, error) {
	return "", errors.New("nobody writes files here")
}

// Commit implements codehost.Host.
func (f *forge) Commit(_ context.Context, r codehost.Repo, digits string) (sha string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, _, err := f.open(r)
	if err != nil {
		return "", err
	}
	for c := range g.parents {
		switch {
		case !strings.HasPrefix(c, digits):
		case sha != "":
			return "", codehost.ErrAmbiguous
		default:
			sha = c
		}
	}
	if sha == "" {
		return "", codehost.ErrNotFound
	}
	return sha, nil
}

// Head implements codehost.Host.
func (f *forge) Head(_ context.Context, r codehost.Repo, branch string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, _, err := f.open(r)
	if err == nil && g.branches[branch] == "" {
		err = codehost.ErrNotFound
	}
	if err != nil {
		return "", err
	}
	return g.branches[branch], nil
}

// Unwanted implements codehost.Host: the changes have nothing of that.
func (*forge) Unwanted(context.Context, codehost.Repo, string, string) ([]codehost.Unwanted, error) {
	return nil, nil
}

// Compare implements codehost.Host.
func (f *forge) Compare(_ context.Context, r codehost.Repo, base, head string) (codehost.Comparison, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, at, err := f.open(r, base, head)
	if err != nil {
		return codehost.Comparison{}, err
	}
	out := codehost.Comparison{BaseSHA: at[0], HeadSHA: at[1], MergeBase: at[0], MergeBases: 1, Ahead: 1, Paths: []string{"a.go"},
		PatchID: "patch-" + at[1], Change: g.change(at[1])}
	if g.guarded[at[1]] {
		out.Paths = append(out.Paths, ".svc/notes.md")
	}
	return out, nil
}

// Outcome implements codehost.Host.
func (f *forge) Outcome(_ context.Context, r codehost.Repo, o codehost.OutcomeOptions) (codehost.Outcome, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, at, err := f.open(r, o.Base, o.Head)
	if err != nil {
		return codehost.Outcome{}, err
	}
	out := codehost.Outcome{BaseSHA: at[0], HeadSHA: at[1], Tree: at[1], Changes: []codehost.Change{{Path: "a.go"}}}
	if g.by(at[0], at[1]) != "" {
		out.Tree, out.Changes = at[0], nil
		return out, nil
	}
	if g.guarded[at[1]] {
		out.Changes = append([]codehost.Change{{Path: ".svc/notes.md"}}, out.Changes...)
	}
	if out.Lost = g.lost(at[0], at[1], o.Had); len(out.Lost) > 0 {
		out.Back, out.Dropped = []string{"a.go"}, 1
	}
	out.Conflict = g.clashes[at[1]]
	return out, nil
}

// Made implements codehost.Host. A merge has the content that was tried.
func (f *forge) Made(_ context.Context, _ codehost.Repo, _, tree string) (codehost.Made, error) {
	return codehost.Made{Tree: tree}, nil
}

// Landed implements codehost.Host.
func (f *forge) Landed(_ context.Context, r codehost.Repo, base, sha string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, at, err := f.open(r, base, sha)
	if err != nil {
		return "", err
	}
	return g.by(at[0], at[1]), nil
}

// Diff implements codehost.Host.
func (f *forge) Diff(context.Context, codehost.Repo, codehost.DiffOptions) (codehost.Diff, error) {
	return codehost.Diff{}, codehost.ErrNotFound
}

// Mergeable implements codehost.Host.
func (f *forge) Mergeable(_ context.Context, r codehost.Repo, base, head string) (bool, []string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, at, err := f.open(r, base, head)
	if err != nil {
		return false, nil, err
	}
	if g.clashes[at[1]] && g.by(at[0], at[1]) == "" {
		return false, []string{"a.go"}, nil
	}
	return true, nil, nil
}

// Merge implements codehost.Host.
func (f *forge) Merge(_ context.Context, r codehost.Repo, o codehost.MergeOptions) (string, error) {
	f.mu.Lock()
	var now mishap
	if r.Owner == f.account {
		now, f.mishap = f.mishap, mishap{}
	}
	f.mu.Unlock()
	if now.before != nil {
		now.before()
	}
	if now.refuse != nil {
		return "", now.refuse
	}
	sha, err := f.merge(r, o)
	if err != nil {
		return "", err
	}
	if now.after != nil {
		now.after()
	}
	return sha, now.forget
}

func (f *forge) merge(r codehost.Repo, o codehost.MergeOptions) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, at, err := f.open(r, o.Base)
	if err != nil {
		return "", err
	}
	if _, known := g.parents[o.HeadSHA]; !known {
		return "", codehost.ErrHeadMoved
	}
	if done := g.by(at[0], o.HeadSHA); done != "" {
		return done, nil
	}
	switch head, known := g.branches[o.Head]; {
	case o.BaseSHA != "" && o.BaseSHA != at[0]:
		return "", codehost.ErrBaseMoved
	case !known:
		return "", codehost.ErrNotFound
	case head != o.HeadSHA:
		return "", codehost.ErrHeadMoved
	case g.clashes[head]:
		return "", codehost.ErrConflict
	}
	var sha string
	if o.Method == codehost.MethodSquash {
		sha = f.commit(g, at[0])
		g.squashed[o.HeadSHA] = sha
	} else {
		sha = f.commit(g, at[0], o.HeadSHA)
	}
	g.branches[o.Base] = sha
	g.merged = append(g.merged, o.HeadSHA)
	return sha, nil
}

// DeleteBranch implements codehost.Host.
func (f *forge) DeleteBranch(_ context.Context, r codehost.Repo, branch, expect string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, _, err := f.open(r)
	switch {
	case err != nil:
		return err
	case g.branches[branch] == "":
		return codehost.ErrNotFound
	case g.branches[branch] != expect:
		return codehost.ErrHeadMoved
	}
	delete(g.branches, branch)
	return nil
}
