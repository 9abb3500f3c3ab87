package codehost

import "context"

// MaxTreeFiles is the most files of a Tree, and MaxFoundLines the most lines of a Found.
const (
	MaxTreeFiles  = 100_000
	MaxFoundLines = 50_000
)

// Searcher is a Host that looks through all files of a commit.
type Searcher interface {
	// Tree lists the regular files at a rev, by path. It fails with ErrNotFound if there is no
	// such commit.
	Tree(ctx context.Context, r Repo, rev string) (Tree, error)

	// Search finds the lines at a rev, in regular files that are text, that have one of some
	// words, in upper or lower case and also inside of other words. A word is not empty and has
	// no line break or NUL. Search stops at a limit or when ctx ends, and answers what it has
	// found by then. It fails with ErrNotFound if there is no such commit.
	Search(ctx context.Context, r Repo, rev string, words []string) (Found, error)

	// Renames are the files of from that have another path in to, as git tells by what they
	// have in common, by their paths in from. It fails with ErrNotFound if one of the commits
	// is not there.
	Renames(ctx context.Context, r Repo, from, to string) (map[string]string, error)
}

// Tree is what there is at a commit.
type Tree struct {
	Commit string
	Files  map[string]string // the SHA of the blob, by path
	Cut    bool              // there are more files
}

// Found are lines of a commit, in the order of their paths and numbers.
type Found struct {
	Commit string
	Lines  []Line
	Cut    bool // there may be more
}

// Line is a line of a file.
type Line struct {
	Path string
	No   int    // from 1
	Text string // at most its first 500 bytes
}
