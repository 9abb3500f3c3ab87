package codehost

// Kinds of what a change should not have, as a rule.
const (
	UnwantedBinary    = "binary"                // a file that git has no lines of
	UnwantedLarge     = "large"                 // more than LargeFile bytes
	UnwantedMade      = "made_by_tool"          // files, or a folder of files, that a tool makes anew
	UnwantedMarks     = "conflict_marks"        // marks that an unfinished merge has left
	UnwantedLock      = "lock_without_manifest" // a lock file whose manifest is as it was
	UnwantedSubmodule = "submodule_unnamed"     // a submodule that .gitmodules does not name
	UnwantedLFS       = "lfs_replaced"          // the content in place of a pointer of Git LFS
	UnwantedEndings   = "line_endings"          // nothing but the ends of its lines has changed
)

// LargeFile is the size in bytes from which on a file is large.
const LargeFile = 1 << 20

// Unwanted is a file, or a folder, that a change should not have.
type Unwanted struct {
	Kind  string
	Path  string // bytes, as git stores them; that of a folder ends with a slash
	Files int    // for which the path stands
}
