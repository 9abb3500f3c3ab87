package github

import (
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
	peer "yardmaster/internal/proof/github"
)

// Notes of several nodes, each with a mirror of its own, are all at GitHub, and a note of a
// commit is replaced.
func TestNote(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	first := w.repo.Head("main")
	second := w.repo.Commit(w.bob, "main", "a", map[string]string{"a.txt": "a\n"})
	other := w.connect()
	for _, n := range []struct {
		by           *Host
		commit, text string
	}{{w.host, first, "one\n"}, {other, second, "two\n"}, {w.host, first, "three\n"}, {w.host, first, "three\n"}} {
		o := codehost.NoteOptions{Name: "said", Commit: n.commit, Text: n.text}
		o.Author = codehost.Person{Name: "Yard", Email: "y@example.com"}
		if err := n.by.Note(ctx, w.shop, o); err != nil {
			t.Fatalf("%q: %v", n.text, err)
		}
	}
	wants(t, "of no commit", w.host.Note(ctx, w.shop, codehost.NoteOptions{Name: "said", Commit: strings.Repeat("1", 40), Text: "x\n"}),
		codehost.ErrNotFound)

	reader := w.connect()
	dir, _, err := reader.at(ctx, w.shop, second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.fetchNotes(ctx, w.shop, dir, gitfolder.NotesRef("said")); err != nil {
		t.Fatal(err)
	}
	for commit, want := range map[string]string{first: "three\n", second: "two\n"} {
		if text, err := dir.Output(ctx, "notes", "--ref=said", "show", commit); err != nil || text != want {
			t.Errorf("the note of %s is %q, %v", commit, text, err)
		}
	}
}
