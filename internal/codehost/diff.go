package codehost

// MaxDiffFiles is how many files a Diff lists, MaxDiffBytes how much of one
// file's changes it shows, in bytes of the lines.
const (
	MaxDiffFiles = 3000
	MaxDiffBytes = 1 << 20
)

// DiffOptions say what is compared with what.
type DiffOptions struct {
	From string // empty: the first parent of To, so that it is what a merge brought
	To   string
	// SinceFork compares To with where it left From, so that what came into From
	// meanwhile does not show.
	SinceFork bool
	// Path asks for the changes of one file, by its name in To, or in From if it
	// is gone. Without it there are the files alone.
	Path string
}

// Diff is what changed.
type Diff struct {
	FromSHA, ToSHA string // the commits that were compared
	Files          []FileChange
	More           int   // files beyond MaxDiffFiles
	File           *File // the changes of DiffOptions.Path; nil if it has none
}

// Kinds of changes.
const (
	Added       = "added"
	Modified    = "modified"
	Deleted     = "deleted"
	Renamed     = "renamed" // and perhaps modified
	TypeChanged = "type_changed"
)

// Types of files.
const (
	Plain      = "file"
	Executable = "executable"
	Link       = "link"      // symbolic; its one line is where it leads
	Submodule  = "submodule" // its one line names a commit of another repository
)

// FileChange is one file that changed.
type FileChange struct {
	Path      string // bytes, as git has them
	Was       string // its name before; "" unless it was renamed
	Kind      string
	Type      string // what it is, or was before it was deleted
	WasType   string // what it was before; "" unless that is something else
	Binary    bool
	Additions int // lines; 0 of a binary file
	Deletions int
}

// File is what changed in one file.
type File struct {
	FileChange
	Hunks []Hunk
	Cut   bool // there is more than MaxDiffBytes
}

// Hunk is a stretch of lines of which some changed.
type Hunk struct {
	OldStart, OldLines int
	NewStart, NewLines int
	Section            string // the line before it that names the place, as git finds it
	// Lines begin with a space (as it was), + (new), - (gone) or \ (a remark of
	// git's).
	Lines []string
}
