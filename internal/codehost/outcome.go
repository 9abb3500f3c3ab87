package codehost

// OutcomeOptions describe a merge to try.
type OutcomeOptions struct {
	Base, Head string // revs
	// Landed are commits whose content is in the base by other commits than their own, such
	// as heads that were squashed or rebased into it. What the head has of them is not
	// merged again: the merge begins where the head left them. A host knows by itself what
	// Merge has squashed. Commits that it does not have count for nothing.
	Landed []string
	// Had are commits that the base was at. What the base has no more of them, and the head
	// has, the merge would bring back: see Outcome.Back. Commits that the host does not have
	// count for nothing.
	Had []string
}

// Outcome describes what the merge of a head would change in a base.
type Outcome struct {
	BaseSHA, HeadSHA string // the commits of the trial merge
	// Tree is the content of base after the merge, as a rev for ReadFile. If the two
	// conflict, or have no common ancestor, it is head.
	Tree     string
	Conflict bool // or no common ancestor
	// Changes are the entries of base that the merge would change or delete, and
	// those that it would add, sorted by path. If the two conflict, they are head's
	// changes since the merge base, and every conflicting path.
	Changes []Change
	// Back are those paths among Changes that the base has had otherwise and dropped, and
	// that the merge would bring back: what head has of OutcomeOptions.Had, and what was
	// deleted in base since head left it. At a host that merges by itself, they are also
	// those that it would not merge from where the work of head began. Sorted, once each.
	Back []string
	// Lost are those of OutcomeOptions.Had of which head has a commit that base has not any
	// more, and Dropped is how many such commits there are, at the one that has most.
	Lost    []string
	Dropped int
}

// Change is one entry of a tree that would change. A rename is two changes.
type Change struct {
	Path           string // bytes, as git stores them
	Link           bool   // the entry would be a symbolic link or a submodule, which refer to a place outside the tree
	Kind           string // Added, Modified, Deleted or TypeChanged; "": both sides changed it, in conflict
	Added, Deleted int    // lines; 0 for a file that has none
}

// Made describes a commit that is there.
type Made struct {
	Tree    string
	Parents []string
	Differs []string // paths whose content is not that of the tree it was compared with, sorted
}
