package gitfolder

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// NotesRef is the ref of the notes of a name.
func NotesRef(name string) string { return "refs/notes/" + name }

// Note answers as codehost.Noter says.
func (dir Folder) Note(ctx context.Context, o codehost.NoteOptions) error {
	ref := NotesRef(o.Name)
	if !codehost.ValidSHA(o.Commit) || !codehost.ValidRef(ref) {
		return fault.Field("note", "is not of a full commit SHA, or has no valid name")
	}
	if has, err := dir.Has(ctx, o.Commit); err != nil || !has {
		return errors.Join(err, codehost.ErrNotFound)
	}
	was, err := dir.Output(ctx, "notes", "--ref="+ref, "show", o.Commit)
	var e *ExitError
	if err != nil && !errors.As(err, &e) {
		return err
	}
	if err == nil && was == o.Text {
		return nil
	}
	env := []string{
		"GIT_AUTHOR_NAME=" + plain(o.Author.Name), "GIT_AUTHOR_EMAIL=" + plain(o.Author.Email),
		"GIT_COMMITTER_NAME=" + plain(o.Author.Name), "GIT_COMMITTER_EMAIL=" + plain(o.Author.Email),
	}
	_, err = dir.Filter(ctx, o.Text, env, "notes", "--ref="+ref, "add", "--force", "--file=-", o.Commit)
	if err != nil && strings.Contains(err.Error(), "lock ref") {
		return codehost.ErrHeadMoved.Because(err)
	}
	if err != nil {
		return fmt.Errorf("note at %s of %s: %w", o.Commit, dir, err)
	}
	return nil
}

// Tip is the commit of a ref; "" if there is none.
func (dir Folder) Tip(ctx context.Context, ref string) (string, error) {
	out, err := dir.Output(ctx, "for-each-ref", "--format=%(objectname)", "--", ref)
	return strings.TrimSpace(out), err
}
