package builtin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"yardmaster/internal/codehost"
)

func noteOn(commit, text string) codehost.NoteOptions {
	return codehost.NoteOptions{
		Name: "said", Commit: commit, Text: text, Author: codehost.Person{Name: "Yard", Email: "yard@example.com"},
	}
}

// Notes that are written at the same time are all there in the end: none takes the place of another.
func TestNotesAtOnce(t *testing.T) {
	t.Parallel()
	s, ctx := newSite(t, ""), t.Context()
	w := start(t, s, shop)
	var commits []string
	for i := range 8 {
		commits = append(commits, w.branch("main", "main", fmt.Sprint(i), "n", fmt.Sprint(i)))
	}
	var all errgroup.Group
	for _, c := range commits {
		all.Go(func() error {
			for {
				err := s.Note(ctx, shop, noteOn(c, "of "+c+"\n"))
				if !errors.Is(err, codehost.ErrHeadMoved) {
					return err
				}
			}
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	dir, err := s.open(shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commits {
		if text, err := dir.Output(ctx, "notes", "--ref=said", "show", c); err != nil || text != "of "+c+"\n" {
			t.Errorf("the note of %s is %q, %v", c, text, err)
		}
	}
	if refs, err := dir.Output(ctx, "for-each-ref", "refs/notes"); err != nil || strings.Count(refs, "\n") != 1 {
		t.Errorf("the refs of notes are %q, %v", refs, err)
	}

	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := dir.Note(over, noteOn(commits[0], "x\n")); err == nil ||
		errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("of a commit that git was not asked about: %v", err)
	}
	err = s.Note(ctx, shop, noteOn(strings.Repeat("a", 40), "x\n"))
	if !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("of a commit that there is not: %v", err)
	}
}
