package builtin

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/proof/chance"
)

var ann = codehost.Person{Name: "Ann", Email: "ann@example.com"}

type files map[string]string

type set map[string]bool

// history is a repository whose branches move at random, and what a test has to know of it
// that git of the host is not asked about.
type history struct {
	*rand.Rand
	t       *testing.T
	s       *site
	repo    codehost.Repo
	dir     string
	clock   int
	tree    map[string]files    // by commit
	parents map[string][]string // by commit
	// meant is each commit as it would be if every squash had been a merge: then git itself
	// says what a merge is to make.
	meant  map[string]string
	anc    map[string]set // the ancestors of a commit of meant, with itself
	main   string
	open   []*topic
	copied set // paths that main has got by hand: nobody knows that they are those of a branch
}

// topic is a branch that is yet to be merged.
type topic struct {
	name, head, start string
	own               map[string]string // tokens, by the commit of its own that has put them
	gone              map[string]string // paths of its start that a commit of its own has deleted
	had               []string          // commits that the base was at
}

func (h *history) git(stdin string, args ...string) (string, error) {
	c := client(h.dir, args...)
	c.Stdin = strings.NewReader(stdin)
	out, err := c.Output()
	return string(out), err
}

func (h *history) must(stdin string, args ...string) string {
	h.t.Helper()
	out, err := h.git(stdin, args...)
	if err != nil {
		h.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(out)
}

// read are the files of a commit or tree.
func (h *history) read(rev string) files {
	h.t.Helper()
	out, err := h.git("", "archive", "--format=tar", rev)
	if err != nil {
		h.t.Fatalf("read %s: %v", rev, err)
	}
	all := files{}
	for r := tar.NewReader(bytes.NewReader([]byte(out))); ; {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			h.t.Fatal(err)
		}
		if e.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			if err != nil {
				h.t.Fatal(err)
			}
			all[e.Name] = string(text)
		}
	}
}

// write makes a commit on a ref.
func (h *history) write(ref string, tree files, parents ...string) string {
	h.t.Helper()
	var b strings.Builder
	h.clock++
	fmt.Fprintf(&b, "commit %s\ncommitter Ann <ann@example.com> %d +0000\ndata 2\nm\n", ref, 1_700_000_000+60*h.clock)
	for i, p := range parents {
		fmt.Fprintf(&b, "%s %s\n", []string{"from", "merge"}[min(i, 1)], p)
	}
	b.WriteString("deleteall\n")
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", path, len(tree[path]), tree[path])
	}
	h.must(b.String(), "fast-import", "--force", "--quiet")
	return h.must("", "rev-parse", ref)
}

// put makes a commit on a branch that is known.
func (h *history) put(branch string, tree files, parents ...string) string {
	h.t.Helper()
	sha := h.write("refs/heads/"+branch, tree, parents...)
	h.know(sha, tree, parents, "")
	return sha
}

// know notes a commit; squashed is the head that it is a squash of.
func (h *history) know(sha string, tree files, parents []string, squashed string) {
	h.tree[sha], h.parents[sha] = tree, parents
	var would []string
	same := squashed == ""
	for _, p := range parents {
		would = append(would, h.meant[p])
		same = same && h.meant[p] == p
	}
	if squashed != "" {
		would = append(would, h.meant[squashed])
	}
	if h.meant[sha] = sha; !same {
		h.meant[sha] = h.write("refs/meant/now", tree, would...)
		h.must("", "update-ref", "refs/meant/"+sha, h.meant[sha])
		h.must("", "update-ref", "-d", "refs/meant/now")
		h.tree[h.meant[sha]], h.parents[h.meant[sha]] = tree, would
	}
	all := set{h.meant[sha]: true}
	for _, p := range would {
		maps.Copy(all, h.anc[p])
	}
	h.anc[h.meant[sha]] = all
}

func pick[T any](h *history, all []T) T { return all[h.IntN(len(all))] }

// change edits, adds, deletes or renames a file of a tree, more often one that another tree
// has otherwise, and says what it has done.
func (h *history) change(was, other files) (now files, token, deleted string) {
	now = maps.Clone(was)
	paths := slices.Sorted(maps.Keys(was))
	if h.IntN(4) > 0 {
		apart := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return was[path] == other[path] })
		if len(apart) > 0 {
			paths = apart
		}
	}
	h.clock++
	token = fmt.Sprintf("token-%d-", h.clock)
	switch what := h.IntN(10); {
	case what < 2 || len(was) < 3:
		now[fmt.Sprintf("new/%d", h.IntN(8))] = "a new file\n" + token + "\n" + lines(6)
	case what < 4:
		deleted, token = pick(h, paths), ""
		delete(now, deleted)
	case what < 5:
		path := pick(h, paths)
		now[fmt.Sprintf("moved/%d", h.clock)], token = was[path], ""
		delete(now, path)
	default:
		path := pick(h, paths)
		all := strings.SplitAfter(was[path], "\n")
		all[h.IntN(len(all)-1)] = token + "\n"
		now[path] = strings.Join(all, "")
	}
	return now, token, deleted
}

func (h *history) begin() {
	tree := files{}
	for i := range 6 {
		tree[fmt.Sprintf("src/%d", i)] = lines(24, fmt.Sprintf("file %d", i))
	}
	h.main = h.put("main", tree)
}

// fork begins a branch on main, or on another branch.
func (h *history) fork() {
	b := &topic{name: fmt.Sprintf("topic-%d", h.clock), start: h.main, own: map[string]string{}, gone: map[string]string{}}
	if len(h.open) > 0 && h.IntN(3) > 0 {
		b.start = pick(h, h.open).head
	}
	b.head = b.start
	h.open = append(h.open, b)
	h.grow(b)
	h.grow(b)
}

// grow puts a commit on a branch.
func (h *history) grow(b *topic) {
	tree, token, deleted := h.change(h.tree[b.head], h.tree[h.main])
	b.head = h.put(b.name, tree, b.head)
	if token != "" {
		b.own[token] = b.head
	}
	if _, was := h.tree[b.start][deleted]; was {
		b.gone[deleted] = b.head
	}
}

// cross merges main into a branch, as a person would.
func (h *history) cross(b *topic) {
	out, err := h.git("", "merge-tree", "--write-tree", "--no-messages", b.head, h.main)
	if err != nil {
		return // they conflict
	}
	b.head = h.put(b.name, h.read(strings.TrimSpace(out)), b.head, h.main)
}

// copy puts a file of a branch on main, as it is, and may delete it again.
func (h *history) copy(b *topic) {
	tree := maps.Clone(h.tree[h.main])
	for _, path := range slices.Sorted(maps.Keys(h.tree[b.head])) {
		if _, has := tree[path]; !has {
			tree[path], h.copied[path] = h.tree[b.head][path], true
			h.main = h.put("main", tree, h.main)
			if h.IntN(3) > 0 {
				h.main = h.put("main", without(tree, path), h.main)
			}
			return
		}
	}
}

func without(all files, path string) files {
	all = maps.Clone(all)
	delete(all, path)
	return all
}

// rewrite takes the last commits of main away. It leaves a squash that an open branch has
// merged: once main has it through that branch alone, the host does not take its word.
func (h *history) rewrite() {
	to := h.main
	for range 1 + h.IntN(2) {
		squash := len(h.parents[h.meant[to]]) > len(h.parents[to])
		if squash && slices.ContainsFunc(h.open, func(b *topic) bool { return h.anc[h.meant[b.head]][h.meant[to]] }) {
			break
		}
		if len(h.parents[to]) > 0 {
			to = h.parents[to][0]
		}
	}
	if to == h.main {
		return
	}
	for _, b := range h.open {
		b.had = append(b.had, h.main)
	}
	h.must("", "update-ref", "refs/heads/main", to)
	h.main = to
	tree, _, _ := h.change(h.tree[h.main], nil)
	h.main = h.put("main", tree, h.main)
}

// merge has the host merge a branch, and holds the result against what was shown.
func (h *history) merge(b *topic, method codehost.Method) bool {
	h.t.Helper()
	ctx, base := h.t.Context(), h.main
	o, err := h.s.Outcome(ctx, h.repo, codehost.OutcomeOptions{Base: "main", Head: b.name, Had: b.had})
	if err != nil {
		h.t.Fatal(err)
	}
	want, err := h.git("", "merge-tree", "--write-tree", "--messages", h.meant[base], h.meant[b.head])
	want, said, _ := strings.Cut(want, "\n")
	if err != nil || strings.Contains(said, "CONFLICT (") { // git 2.39 calls some clean in which it has left marks
		want = "conflict"
	}
	sha, err := h.s.Merge(ctx, h.repo, codehost.MergeOptions{
		Base: "main", Head: b.name, HeadSHA: b.head, BaseSHA: base, Method: method, Title: "Merge " + b.name,
		Author: ann, Committer: ann,
	})
	if o.Conflict || errors.Is(err, codehost.ErrConflict) {
		if !o.Conflict || !errors.Is(err, codehost.ErrConflict) || want != "conflict" {
			h.t.Fatalf("%s into %s: shown %+v, merged %v, and git makes %s", b.name, base, o, err, want)
		}
		return false
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.open = slices.DeleteFunc(h.open, func(other *topic) bool { return other == b })
	if o.Tree == base { // another branch has brought it
		return true
	}
	if o.Tree != want {
		h.t.Fatalf("%s into %s: shown %s, and git makes %s", b.name, base, o.Tree, want)
	}
	m, err := h.s.Made(ctx, h.repo, sha, o.Tree)
	if err != nil || m.Tree != o.Tree || len(m.Differs) > 0 || m.Parents[0] != base {
		h.t.Fatalf("%s into %s: shown %s, made %+v, %v", b.name, base, o.Tree, m, err)
	}
	squashed := ""
	if method == codehost.MethodSquash {
		squashed = b.head
	}
	h.know(sha, h.read(sha), m.Parents, squashed)
	h.main = sha
	h.whole(b, o, base, sha)
	return true
}

// whole holds that a merge has lost nothing of a branch, and has brought nothing back that
// was not named.
func (h *history) whole(b *topic, o codehost.Outcome, base, sha string) {
	h.t.Helper()
	var all, mine strings.Builder
	for _, text := range h.tree[sha] {
		all.WriteString(text)
	}
	for _, text := range h.tree[b.head] {
		mine.WriteString(text)
	}
	before, inHead := h.anc[h.meant[base]], h.anc[h.meant[b.head]]
	for token, c := range b.own {
		if !before[h.meant[c]] && strings.Contains(mine.String(), token) && !strings.Contains(all.String(), token) {
			h.t.Errorf("%s into %s: %s is lost", b.name, base, token)
		}
	}
	for path, c := range b.gone {
		_, kept := h.tree[b.head][path]
		_, back := h.tree[sha][path]
		back = back && h.tree[sha][path] == h.tree[b.start][path]
		if back && !kept && !h.copied[path] && !before[h.meant[c]] {
			h.t.Errorf("%s into %s: it has deleted %s, which is there", b.name, base, path)
		}
	}
	for _, c := range o.Changes {
		if slices.Contains(o.Back, c.Path) {
			continue
		}
		for at := base; c.Kind == codehost.Added && len(h.parents[at]) > 0 && !inHead[h.meant[at]]; at = h.parents[at][0] {
			if _, had := h.tree[h.parents[at][0]][c.Path]; had {
				h.t.Errorf("%s into %s: %s was deleted in the base, is back, and is not named", b.name, base, c.Path)
				break
			}
		}
		for _, was := range b.had {
			if h.tree[sha][c.Path] != h.tree[was][c.Path] {
				continue
			}
			for d := range h.anc[h.meant[was]] {
				if before[d] || !inHead[d] || len(h.parents[d]) != 1 || h.tree[d][c.Path] == h.tree[h.parents[d][0]][c.Path] {
					continue
				}
				h.t.Errorf("%s into %s: the base has dropped %s of commit %s, it is back, and is not named", b.name, base, c.Path, d)
			}
		}
	}
}

// batch has the host make the candidate of a merge queue, and holds that the merges make the
// same.
func (h *history) batch() {
	heads := h.open[:min(len(h.open), 3)]
	o := codehost.StackOptions{BaseSHA: h.main, Title: "try", Author: ann}
	for _, b := range heads {
		o.Heads = append(o.Heads, b.head)
	}
	made, err := h.s.Stack(h.t.Context(), h.repo, o)
	if err != nil {
		h.t.Fatal(err)
	}
	if made.Conflict >= 0 {
		return
	}
	for _, b := range slices.Clone(heads) {
		if !h.merge(b, codehost.MethodSquash) {
			h.t.Fatalf("%s conflicts, but not in the candidate", b.name)
		}
	}
	if tree := h.must("", "rev-parse", h.main+"^{tree}"); tree != made.Tree {
		h.t.Errorf("the candidate of %v is %s, and the merges made %s", o.Heads, made.Tree, tree)
	}
}

func (h *history) step() {
	switch what := h.IntN(20); {
	case what < 4 || len(h.open) < 2:
		h.fork()
	case what < 9:
		h.grow(pick(h, h.open))
	case what < 12:
		tree, _, _ := h.change(h.tree[h.main], nil)
		h.main = h.put("main", tree, h.main)
	case what < 13:
		h.cross(pick(h, h.open))
	case what < 14:
		h.copy(pick(h, h.open))
	case what < 15:
		h.rewrite()
	case what < 16:
		h.batch()
	default:
		methods := []codehost.Method{codehost.MethodSquash, codehost.MethodSquash, codehost.MethodMerge}
		h.merge(h.open[h.IntN(min(2, len(h.open)))], pick(h, methods))
	}
}

// What was shown of a merge is what it makes, whatever the histories are: stacks of branches
// of which the lower ones were squashed, renamed and deleted files, bases that were merged
// into branches or rewritten.
func TestWhatWasApprovedIsMerged(t *testing.T) {
	t.Parallel()
	seed := chance.Seed(t)
	for n := range uint64(6) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, "")
			h := &history{
				Rand: rand.New(rand.NewPCG(seed, n)), t: t, s: s, repo: shop, dir: s.path(shop),
				tree: map[string]files{}, parents: map[string][]string{}, meant: map[string]string{}, anc: map[string]set{}, copied: set{},
			}
			if err := s.Create(t.Context(), shop, codehost.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			h.begin()
			for i := 0; i < 36 && !t.Failed(); i++ {
				h.step()
			}
		})
	}
}
