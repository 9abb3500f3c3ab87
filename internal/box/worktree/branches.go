package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The limits of what is looked at besides the commit that is checked out.
const (
	mostBranches = 20    // branches that are taken
	mostRefs     = 10000 // branches that are looked at
)

const (
	localHeads = "refs/heads/"
	stashRef   = "refs/stash"
)

// commits are the commits of a checkout that the cache has got.
type commits struct {
	head   string            // the commit that is checked out
	branch string            // that of the checkout's branch; "" if it is missing
	others map[string]string // those of the agent's other branches, by name
	failed []Apart           // branches that could not be taken
}

// takeCommits brings the agent's commits into the cache, through a repository of the
// box's own that has the agent's objects and nothing else of its repository.
func (w *Checkout) takeCommits(ctx context.Context, root *os.Root, quarantine string) (t commits, err error) {
	repo, err := openRepo(root)
	if err != nil {
		return t, err
	}
	defer repo.Close()
	if t.head, err = readHead(repo); err != nil {
		return t, err
	}
	branches := readBranches(repo)
	if w.branch != "" {
		t.branch = branches[w.branch] // the agent may have deleted it
	}
	delete(branches, w.branch)
	known, err := w.cache.git("rev-parse", w.base, "--glob="+heads+"*").run(ctx)
	if err != nil {
		return t, err
	}
	old := map[string]bool{t.head: true, t.branch: true}
	for sha := range strings.Lines(string(known)) {
		old[strings.TrimSpace(sha)] = true
	}
	maps.DeleteFunc(branches, func(_, sha string) bool { return old[sha] })
	if t.head == w.base && (t.branch == "" || t.branch == w.base) && len(branches) == 0 {
		return t, nil
	}
	if _, err := (command{args: []string{"init", "-q", "--bare", "--template=", "--initial-branch=none",
		quarantine}}).run(ctx); err != nil {
		return t, err
	}
	objects := filepath.Join(quarantine, "objects")
	err = errors.Join(os.MkdirAll(filepath.Join(objects, "info"), 0o755),
		os.WriteFile(filepath.Join(objects, "info", "alternates"), []byte(w.cache.Objects()+"\n"), 0o644))
	if err != nil {
		return t, err
	}
	if err := copyObjects(ctx, repo, quarantine); err != nil {
		return t, err
	}
	if err := w.take(ctx, quarantine, "agent", t.head); err != nil {
		return t, err
	}
	return t, w.takeBranches(ctx, quarantine, &t, branches)
}

// takeBranches takes the commits besides the one that is checked out. One that cannot be
// taken does not cost the others.
func (w *Checkout) takeBranches(ctx context.Context, quarantine string, t *commits, branches map[string]string) error {
	try := func(ref, branch, sha string) (ok bool, err error) {
		err = w.take(ctx, quarantine, ref, sha)
		if err == nil || ctx.Err() != nil || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return err == nil, err
		}
		t.failed = append(t.failed, Apart{Branch: branch, SHA: sha, Damage: "git does not take them" + complaint(err.Error())})
		return false, nil
	}
	if t.branch != "" && t.branch != t.head {
		ok, err := try("branch", w.branch, t.branch)
		if err != nil {
			return err
		}
		if !ok {
			t.branch = ""
		}
	}
	t.others = map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(branches)) {
		if i >= mostBranches {
			t.failed = append(t.failed, Apart{Branch: name, SHA: branches[name], Damage: "there are too many branches"})
			continue
		}
		ok, err := try("other-"+strconv.Itoa(i), name, branches[name])
		if err != nil {
			return err
		}
		if ok {
			t.others[name] = branches[name]
		}
	}
	return nil
}

// tip returns the newest commit of the work where no file was changed: the one that is
// checked out, unless the checkout's branch goes on from it. If neither is new, it is the
// branch that has whatever is new.
func (w *Checkout) tip(ctx context.Context, t commits) (string, error) {
	if t.branch != "" && w.cache.Ancestor(ctx, t.head, t.branch) {
		t.head = t.branch
	}
	n, err := w.count(ctx, t.head, w.base)
	if err != nil || n > 0 {
		return t.head, err
	}
	for name, sha := range t.others {
		all := name != stashRef && w.cache.Ancestor(ctx, w.base, sha)
		for other, part := range t.others {
			all = all && (other == stashRef || w.cache.Ancestor(ctx, part, sha))
		}
		if all {
			return sha, nil
		}
	}
	return t.head, nil
}

// count counts the commits of one that others do not have.
func (w *Checkout) count(ctx context.Context, sha string, not ...string) (int, error) {
	n, err := w.cache.git(append([]string{"rev-list", "--count", sha, "--not"}, not...)...).line(ctx)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(n)
}

// apart keeps and names the commits that the tip does not have, nor any branch of the remote.
func (w *Checkout) apart(ctx context.Context, t commits, tip string) (list []Apart, err error) {
	others := maps.Clone(t.others)
	if t.branch != "" && w.branch != "" {
		if others == nil {
			others = map[string]string{}
		}
		others[w.branch] = t.branch
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		a := Apart{Branch: name, SHA: others[name]}
		if name == stashRef {
			a.Branch = "stash"
		}
		if a.Commits, err = w.count(ctx, a.SHA, tip, w.base, "--glob="+heads+"*", "--glob="+tags+"*"); err != nil {
			return nil, err
		}
		if a.Commits == 0 {
			continue
		}
		if a.Subject, err = w.cache.git("log", "-1", "--format=%s", a.SHA).line(ctx); err != nil {
			return nil, err
		}
		if err := w.cache.keepApart(ctx, w.branch, a.SHA); err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return append(list, t.failed...), nil
}

// keepApart keeps a commit that no work has, until ForgetKept forgets it.
func (c *Cache) keepApart(ctx context.Context, branch, sha string) error {
	_, err := c.git("update-ref", keptOf(branch+" apart")+sha, sha).run(ctx)
	return err
}

// readBranches reads the branches of the agent's repository and what it has put aside, by
// name, as data.
func readBranches(repo *os.Root) map[string]string {
	found := map[string]string{}
	if packed, err := readFile(repo, "packed-refs"); err == nil {
		for line := range bytes.Lines(packed) {
			sha, ref, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
			if name, ok := strings.CutPrefix(ref, localHeads); ok && fullName.MatchString(sha) && len(found) < mostRefs {
				found[name] = sha
			}
		}
	}
	seen := 0
	var walk func(dir string)
	walk = func(dir string) {
		names, err := list(repo, dir)
		if err != nil {
			return
		}
		for _, name := range names {
			if seen++; seen > mostRefs {
				return
			}
			ref := path.Join(dir, name)
			if st, err := repo.Lstat(ref); err != nil || st.IsDir() {
				walk(ref)
			} else if sha, err := readRef(repo, ref); err == nil {
				found[strings.TrimPrefix(ref, localHeads)] = sha
			}
		}
	}
	walk(strings.TrimSuffix(localHeads, "/"))
	if b, err := readFile(repo, stashRef); err == nil && fullName.MatchString(strings.TrimSpace(string(b))) {
		found[stashRef] = strings.TrimSpace(string(b))
	}
	return found
}

// String says what a branch has, in the words for people.
func (a Apart) String() string {
	if a.Damage != "" {
		return "its commits were not taken: " + a.Damage
	}
	what := "1 commit"
	if a.Commits > 1 {
		what = fmt.Sprintf("%d commits", a.Commits)
	}
	return fmt.Sprintf("%s that the work does not have, the newest %.12s, %q; the box keeps what is apart for 30 days", what, a.SHA, a.Subject)
}
