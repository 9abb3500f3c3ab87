package builtin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// pointer is the file that stands for an object of Git LFS.
func pointer(oid string) string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 12345\n", oid)
}

// An object of Git LFS is named as long as git has a file that is a pointer to it: of any branch, of
// the history, and of what was deleted until its bytes are given back.
func TestPointed(t *testing.T) {
	t.Parallel()
	s, ctx, now := newSite(t, ""), t.Context(), time.Now()
	w := start(t, s, shop)
	oid := func(c string) string { return strings.Repeat(c, 64) }
	all := []string{oid("a"), oid("b"), oid("c"), oid("d"), oid("e")}
	w.branch("old", "main", "a.bin", "a.bin", pointer(oid("a")))
	w.branch("new", "old", "a.bin", "a.bin", pointer(oid("b")))
	w.branch("topic", "main", "c.bin", "c.bin", pointer(oid("c")))
	w.branch("text", "main", "d.md", "d.md", "See:\n"+pointer(oid("d")))
	w.git("push", "-q", "origin", ":old")
	want := func(when string, oids ...string) {
		t.Helper()
		got, err := s.Pointed(ctx, shop, all)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, oids) {
			t.Errorf("%s: %.1s, %v", when, got, err)
		}
	}
	want("all are there", oid("a"), oid("b"), oid("c"))
	w.git("push", "-q", "origin", ":topic")
	if err := s.Maintain(ctx, shop, now); err != nil {
		t.Fatal(err)
	}
	want("a branch is deleted, and its bytes are there", oid("a"), oid("b"), oid("c"))
	if err := s.Maintain(ctx, shop, now.Add(pruneGrace+time.Hour)); err != nil {
		t.Fatal(err)
	}
	want("its bytes are given back", oid("a"), oid("b"))
	if _, err := s.Pointed(ctx, at("acme", "none"), all); err == nil {
		t.Error("a repository that is not there names none")
	}
}
