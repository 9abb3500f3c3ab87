package codehost

import "strconv"

// MaxDiffFiles is the largest number of files that a Diff lists, and MaxDiffBytes
// the largest part of one file's changes that it shows, in bytes of the lines.
const (
	MaxDiffFiles = 3000
	MaxDiffBytes = 1 << 20
)

// DiffOptions describe a comparison.
type DiffOptions struct {
	From string // empty: the first parent of To, so that the diff shows what a merge brought
	To   string
	// SinceFork compares To with the merge base of From and To, so that later changes
	// of From do not appear.
	SinceFork bool
	// Path asks for the changes of one file, by its path in To, or in From if To does
	// not have it. Without Path the Diff lists the files only.
	Path string
}

// Diff describes the changes between two commits.
type Diff struct {
	FromSHA, ToSHA string // the commits that were compared
	Files          []FileChange
	More           int   // files beyond MaxDiffFiles
	File           *File // the changes of DiffOptions.Path; nil if it has not changed
}

// ChangeKind is how a change leaves a file.
type ChangeKind string

// Kinds of changes.
const (
	Added       = "added"
	Modified    = "modified"
	Deleted     = "deleted"
	Renamed     = "renamed" // possibly also modified
	TypeChanged = "type_changed"
)

// Values lists all kinds.
func (ChangeKind) Values() []string { return []string{Added, Modified, Deleted, Renamed, TypeChanged} }

// FileType is what a path of a tree is.
type FileType string

// Types of files.
const (
	Plain      = "file"
	Executable = "executable"
	Link       = "link"      // symbolic; its one line is its target
	Submodule  = "submodule" // its one line is a commit of another repository
)

// Values lists all types.
func (FileType) Values() []string { return []string{Plain, Executable, Link, Submodule} }

// FileChange is one changed file.
type FileChange struct {
	Path      string // bytes, as git stores them
	Was       string // its old path; "" unless it was renamed
	Kind      string
	Type      string // its type, or its old type if it was deleted
	WasType   string // its old type; "" unless the type changed
	Binary    bool
	Additions int // lines; 0 for a binary file
	Deletions int
}

// File describes the changes in one file.
type File struct {
	FileChange
	Hunks []Hunk
	Cut   bool // the changes exceed MaxDiffBytes
}

// Hunk is a range of lines, some of which changed.
type Hunk struct {
	OldStart, OldLines int
	NewStart, NewLines int
	Section            string // the preceding line that names the section, as git finds it
	// Lines begin with a space (unchanged), + (added), - (deleted) or \ (a remark by
	// git).
	Lines []string
}

// Legible is a path as text. A path with bytes that cannot be shown is quoted, as strconv.Quote does.
func Legible(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
