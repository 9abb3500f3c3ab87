package gitfolder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// NotesRef is the ref of the notes of a name.
func NotesRef(name string) string { return "refs/notes/" + name }

// Note answers as codehost.Noter says. git notes compares nothing when it moves a ref, so it moves
// one beside, and the other is moved there if it is where it was.
func (dir Folder) Note(ctx context.Context, o codehost.NoteOptions) error {
	ref := NotesRef(o.Name)
	if !codehost.ValidSHA(o.Commit) || !codehost.ValidRef(ref) {
		return fault.Field("note", "is not of a full commit SHA, or has no valid name")
	}
	has, err := dir.Has(ctx, o.Commit)
	if err != nil {
		return err
	}
	if !has {
		return codehost.ErrNotFound
	}
	was, err := dir.Output(ctx, "notes", "--ref="+ref, "show", o.Commit)
	var e *ExitError
	if err != nil && !errors.As(err, &e) {
		return err
	}
	if err == nil && was == o.Text {
		return nil
	}
	from, err := dir.Tip(ctx, ref)
	if err != nil {
		return err
	}
	beside := ref + "-" + o.Commit
	to, err := dir.noteBeside(ctx, beside, from, o)
	if err != nil {
		return fmt.Errorf("note at %s of %s: %w", o.Commit, dir, err)
	}
	move := fmt.Sprintf("update %s %s %s\ndelete %s\n", ref, to, cmp.Or(from, codehost.ZeroSHA), beside)
	if _, err := dir.Filter(ctx, move, nil, "update-ref", "--stdin"); err != nil {
		return codehost.ErrHeadMoved.Because(err)
	}
	return nil
}

// noteBeside sets a ref to some notes, adds one, and answers the commit of all of them.
func (dir Folder) noteBeside(ctx context.Context, ref, from string, o codehost.NoteOptions) (string, error) {
	args := []string{"update-ref", ref, from}
	if from == "" {
		args = []string{"update-ref", "-d", ref} // what a kill has left
	}
	if _, err := dir.Output(ctx, args...); err != nil {
		return "", err
	}
	env := []string{
		"GIT_AUTHOR_NAME=" + plain(o.Author.Name), "GIT_AUTHOR_EMAIL=" + plain(o.Author.Email),
		"GIT_COMMITTER_NAME=" + plain(o.Author.Name), "GIT_COMMITTER_EMAIL=" + plain(o.Author.Email),
	}
	if _, err := dir.Filter(ctx, o.Text, env, "notes", "--ref="+ref, "add", "--force", "--file=-", o.Commit); err != nil {
		return "", err
	}
	return dir.Tip(ctx, ref)
}

// Tip is the commit of a ref; "" if there is none.
func (dir Folder) Tip(ctx context.Context, ref string) (string, error) {
	out, err := dir.Output(ctx, "for-each-ref", "--format=%(objectname)", "--", ref)
	return strings.TrimSpace(out), err
}
