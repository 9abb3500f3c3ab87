package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"yardmaster/internal/codehost"
)

// nothing holds that neither a repository nor a folder was made, that nobody was asked to
// make one, and that nobody heard of a push.
func (s *site) nothing(t *testing.T, r codehost.Repo, asked []codehost.Repo) {
	t.Helper()
	if _, err := os.Stat(s.path(r)); !os.IsNotExist(err) {
		t.Errorf("the folder of %s: %v", r, err)
	}
	if left, err := filepath.Glob(filepath.Join(s.root, ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if len(asked) > 0 {
		t.Errorf("asked to make %v", asked)
	}
	if e := s.heard(); e != nil {
		t.Errorf("events: %+v", e)
	}
}

// object stores an object of git as it is given, faults and all.
func (w work) object(kind, text string) string {
	w.t.Helper()
	c := client(w.dir, "hash-object", "-t", kind, "-w", "--stdin", "--literally")
	c.Stdin = strings.NewReader(text)
	out, err := c.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// A push that git refuses makes no repository: no folder, and nobody is asked to make one.
func TestFirstPushThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	w := start(t, s, shop)
	fresh := at("acme", "fresh")
	s.allow("all", fresh, codehost.Access{Read: true, Push: []string{"refs/heads/*", "refs/tags/*"}, Create: true})
	var asked []codehost.Repo
	s.create = func(r codehost.Repo) error {
		asked = append(asked, r)
		return nil
	}
	url := s.remote("all", fresh)
	bad := w.object("tree", "100644 .git\x00"+strings.Repeat("\x01", 20))
	if out := w.fails("push", url, w.git("commit-tree", bad, "-m", "bad")+":refs/heads/main"); !strings.Contains(out, "remote") {
		t.Errorf("a tree with .git in it: %s", out)
	}
	s.nothing(t, fresh, asked)
	const branchless = "the first push to a repository brings a branch with a commit"
	if out := w.fails("push", url, "main:refs/tags/v1"); !strings.Contains(out, branchless) {
		t.Errorf("tags alone: %s", out)
	}
	s.nothing(t, fresh, asked)
	out := w.fails("push", url, "main", "main:refs/heads/svc")
	if !strings.Contains(out, "branches svc/… are made by this service") {
		t.Errorf("a branch svc: %s", out)
	}
	s.nothing(t, fresh, asked)
	w.git("push", "-q", url, "main")
	if diff := cmp.Diff([]codehost.Repo{fresh}, asked); diff != "" {
		t.Errorf("asked to create (-want +got):\n%s", diff)
	}
}

// What stands in the way of the service's own branches is refused when it is new; what is
// there already can be moved and deleted.
func TestNamesOfTheServiceAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	w := start(t, s, shop)
	s.allow("all", shop, codehost.Access{Read: true, Push: []string{"refs/heads/*", "refs/tags/*"}})
	url := s.remote("all", shop)
	for _, name := range []string{"svc", "svc/queue", "svc/greet--0a1b2c3d/more"} {
		if out := w.fails("push", url, "main:refs/heads/"+name); !strings.Contains(out, "git cannot have one of this name beside them") {
			t.Errorf("%s: %s", name, out)
		}
	}
	w.git("push", "-q", "origin", "main:refs/heads/svc") // as one that was there before
	w.commit("two", "x", "2\n")
	w.git("push", "-q", url, "main:refs/heads/svc")
	w.git("push", "-q", url, ":refs/heads/svc")
	w.git("push", "-q", url, "main:refs/heads/svc/payments/fix", "main:refs/tags/svc")
}

// Commits and trees that programs of earlier years made are taken as other hosts take them,
// and come back with the same names.
func TestOldHistoriesAreTaken(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	w := start(t, s, shop)
	s.allow("all", shop, codehost.Access{Read: true, Push: []string{"refs/heads/*"}})
	tree := w.git("rev-parse", "HEAD^{tree}")
	blob := w.git("rev-parse", "HEAD:README.md")
	const ann, zone = "Ann <ann@example.com>", " 1287367363 -0700"
	raw := make([]byte, 20)
	if _, err := fmt.Sscanf(blob, "%x", &raw); err != nil {
		t.Fatal(err)
	}
	inner := w.object("tree", "100644 a.txt\x00"+string(raw))
	in := make([]byte, 20)
	if _, err := fmt.Sscanf(inner, "%x", &in); err != nil {
		t.Fatal(err)
	}
	padded := w.object("tree", "040000 sub\x00"+string(in))
	for fault, c := range map[string][3]string{
		"badTimezone":            {tree, ann + zone, ann + " 1287367363 -700"},
		"missingSpaceBeforeDate": {tree, ann + zone, "Ann <ann@example.com>1287367363 -0700"},
		"zeroPaddedDate":         {tree, ann + zone, ann + " 01287367363 -0700"},
		"missingEmail":           {tree, "Ann" + zone, ann + zone},
		"badName":                {tree, "Ann> <ann@example.com>" + zone, ann + zone},
		"missingNameBeforeEmail": {tree, "<ann@example.com>" + zone, ann + zone},
		"multipleAuthors":        {tree, ann + zone + "\nauthor " + ann + zone, ann + zone},
		"zeroPaddedFilemode":     {padded, ann + zone, ann + zone},
		"badDateOverflow":        {tree, ann + " 99999999999999999999 +0000", ann + zone},
	} {
		old := w.object("commit", "tree "+c[0]+"\nauthor "+c[1]+"\ncommitter "+c[2]+"\n\nimported\n")
		head := w.git("commit-tree", tree, "-p", old, "-m", "after the import")
		w.git("push", "-q", s.remote("all", shop), head+":refs/heads/"+fault)
		if got, err := s.Head(t.Context(), shop, fault); got != head || err != nil {
			t.Errorf("%s: the branch is at %s, %v", fault, got, err)
		}
	}
}

// A repository with thousands of branches and tags comes in one push, with the default
// branch that the client names; a push whose names are too long gets a sentence.
func TestManyRefs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	w := start(t, s, shop)
	fresh := at("acme", "fresh")
	s.allow("all", fresh, codehost.Access{Read: true, Push: []string{"refs/heads/*", "refs/tags/*"}, Create: true})
	head := w.git("rev-parse", "main")
	w.git("branch", "trunk")
	var b strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&b, "create refs/tags/t%d %s\ncreate refs/heads/b%d %s\n", i, head, i, head)
	}
	c := client(w.dir, "update-ref", "--stdin")
	c.Stdin = strings.NewReader(b.String())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.git("-c", "http.extraHeader="+DefaultBranchHeader+": trunk", "push", "-q", "--atomic", s.remote("all", fresh),
		"refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
	info, err := s.Info(t.Context(), fresh)
	if err != nil || info.DefaultBranch != "trunk" {
		t.Errorf("Info = %+v, %v", info, err)
	}
	if n := strings.Count(w.git("ls-remote", s.remote("all", fresh)), "\n") + 1; n != 5003 {
		t.Errorf("%d refs, want 5002 and HEAD", n)
	}
	if e := s.heard(); len(e) != 1 || len(e[0].Updates) != 5002 {
		t.Errorf("events: %d", len(e))
	}
	// Refs that were not put on the disk one by one are in the one file that was.
	loose, err := filepath.Glob(filepath.Join(s.root, "acme/fresh.git/refs/*/*"))
	if err != nil || len(loose) > 0 {
		t.Errorf("%d refs are files of their own, %v", len(loose), err)
	}
}

// Folders of first pushes that a crash has left go with the upkeep, those of pushes that
// are under way do not.
func TestUnfinishedFirstPushesAreRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	start(t, s, shop)
	for _, name := range []string{".new-old", ".new-young"} {
		if err := os.MkdirAll(filepath.Join(s.root, name, "objects"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	past := now.Add(-keepUnfinished - time.Hour)
	if err := os.Chtimes(filepath.Join(s.root, ".new-old"), past, past); err != nil {
		t.Fatal(err)
	}
	if err := s.Maintain(t.Context(), shop, now); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(s.root, ".new-*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != ".new-young" {
		t.Errorf("left: %v, %v", left, err)
	}
}
