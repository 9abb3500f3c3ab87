package github

import (
	"context"
	"errors"
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
)

// Note implements codehost.Noter. The note is made in the mirror, on those that GitHub has, and
// pushed with the commit that they were at, which GitHub compares in the same step.
func (h *Host) Note(ctx context.Context, r codehost.Repo, o codehost.NoteOptions) error {
	if !codehost.ValidSHA(o.Commit) {
		return codehost.ErrNotFound
	}
	dir, _, err := h.at(ctx, r, o.Commit)
	if err != nil {
		return err
	}
	m, err := h.mirror(ctx, r)
	if err != nil {
		return err
	}
	m.fetching.Lock()
	defer m.fetching.Unlock()
	ref := gitfolder.NotesRef(o.Name)
	from, err := h.fetchNotes(ctx, r, dir, ref)
	if err != nil {
		return err
	}
	if err := dir.Note(ctx, o); err != nil {
		return err
	}
	to, err := dir.Tip(ctx, ref)
	if err != nil || to == from {
		return err
	}
	_, err = h.remote(ctx, r, dir, true, func(address string) []string {
		return []string{"push", "--porcelain", "--no-verify", "--force-with-lease=" + ref + ":" + from, address, to + ":" + ref}
	})
	if err != nil {
		return fmt.Errorf("push the notes of %s: %w", r, err)
	}
	return nil
}

// fetchNotes has the mirror have the notes that GitHub has, and answers their commit; "" if
// there are none.
func (h *Host) fetchNotes(ctx context.Context, r codehost.Repo, dir gitfolder.Folder, ref string) (string, error) {
	err := h.fetchRefs(ctx, r, dir, "+"+ref+":"+ref)
	if errors.Is(err, codehost.ErrNotFound) {
		_, err = dir.Output(ctx, "update-ref", "-d", ref) // what a push that failed has left
		return "", err
	}
	if err != nil {
		return "", err
	}
	return dir.Tip(ctx, ref)
}
