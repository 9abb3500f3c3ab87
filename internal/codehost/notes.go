package codehost

import "context"

// NoteOptions describe a note of git: a text beside a commit, which does not change the commit.
type NoteOptions struct {
	Name   string // of the notes: refs/notes/NAME
	Commit string
	Text   string // ends with a line break
	Author Person
}

// Noter is a Host that keeps notes of git.
type Noter interface {
	// Note sets the note of a commit, in place of one that it has. It is idempotent. It fails
	// with ErrNotFound if there is no such commit, and with ErrHeadMoved if somebody else
	// writes notes at the same time.
	Note(ctx context.Context, r Repo, o NoteOptions) error
}
