// Package codehost is what the product asks of a place that keeps git
// repositories: facts about branches and files, and the few changes made on
// the server (merge, delete a branch). It knows nothing of pull requests:
// their numbers, reviews and checks are rows of our own database.
//
// A Host is safe for concurrent use. Its errors are faults where a caller can
// do something about them: see the variables below.
package codehost

import (
	"context"

	"yardmaster/internal/fault"
)

// MaxFileSize is the largest file that ReadFile and ReadDir return, in bytes.
// MaxDirFiles is how many files ReadDir returns at most.
const (
	MaxFileSize = 1 << 20
	MaxDirFiles = 1000
)

// What a caller can act on. They match with errors.Is.
var (
	ErrNotFound  = fault.New(fault.NotFound, "", "The code host has no such repository, branch or file.")
	ErrAmbiguous = fault.New(fault.Invalid, "", "Several commits begin with these digits.")
	ErrExists    = fault.Reason("repo-exists", "The code host already has a repository of this name.")
	// ErrHeadMoved: a branch is no longer where the caller saw it.
	ErrHeadMoved = fault.Reason("head_moved", "The branch has moved since it was looked at.")
	// ErrBaseMoved: the base is no longer the one that was looked at.
	ErrBaseMoved = fault.Reason("base_moved", "The base branch has moved since it was looked at.")
	// ErrConflict: the two sides cannot be merged without a person or an agent.
	ErrConflict = fault.Reason("merge-conflict", "The branch conflicts with its base.")
	// ErrLost: what was pushed to the repository is gone from where it was kept.
	ErrLost = fault.New(fault.Unavailable, "repository-lost",
		"The folder of the repository is not on the server. Its operator has to put it back from a copy; until then nothing is read from it or written to it.")
	ErrTooLarge = fault.New(fault.TooLarge, "file-too-large", "A file is larger than 1 MiB, or there are too many.")
)

// Host is one code host.
//
// A rev is a branch name, a full ref name (refs/...), a full commit SHA, or
// "HEAD" for the default branch. A SHA is 40 lower-case hexadecimal digits.
type Host interface {
	// Create makes an empty repository. ErrExists if there is one.
	Create(ctx context.Context, r Repo, o CreateOptions) error

	// Info is ErrNotFound if there is no such repository.
	Info(ctx context.Context, r Repo) (Info, error)

	// CloneURL is the address for git clients, without credentials.
	CloneURL(r Repo) string

	// ReadFile answers a file's content at rev and the SHA of its blob. A
	// symbolic link is not followed: its content is the path it points to.
	// ErrNotFound, ErrTooLarge.
	ReadFile(ctx context.Context, r Repo, rev, path string) (content []byte, sha string, err error)

	// ReadDir answers the regular files that lie directly in a folder at rev,
	// by name, and the commit they were read at. ErrNotFound if there is no
	// such folder below the root; ErrTooLarge for more files, or a larger one,
	// than are returned.
	ReadDir(ctx context.Context, r Repo, rev, folder string) (commit string, files map[string][]byte, err error)

	// WriteFiles makes a commit on a branch that is at o.Parent (else
	// ErrHeadMoved) and answers it; it is o.Parent where the files are so
	// already. ErrConflict: a folder is where a file is to be, or the other
	// way about. ErrNotFound.
	WriteFiles(ctx context.Context, r Repo, o WriteOptions) (sha string, err error)

	// Head is the SHA of a branch. ErrNotFound.
	Head(ctx context.Context, r Repo, branch string) (sha string, err error)

	// Commit is the whole SHA of the one commit that begins with some digits, 7
	// or more. ErrNotFound; ErrAmbiguous if there are several.
	Commit(ctx context.Context, r Repo, digits string) (sha string, err error)

	// Compare says what head brings to base. ErrNotFound.
	Compare(ctx context.Context, r Repo, base, head string) (Comparison, error)

	// Outcome says what a merge of head would change in base, by trying it: no
	// ref moves. It is what Merge would do, folders that were renamed on either
	// side included. ErrNotFound.
	Outcome(ctx context.Context, r Repo, base, head string) (Outcome, error)

	// Landed is the commit that brought a commit into a base, by either method;
	// "" if it is not in it. ErrNotFound if there is no such base or commit.
	Landed(ctx context.Context, r Repo, base, sha string) (mergeSHA string, err error)

	// Diff says what changed between two revs. ErrNotFound.
	Diff(ctx context.Context, r Repo, o DiffOptions) (Diff, error)

	// Mergeable tries a merge of the revs without changing any ref and lists
	// the paths in conflict. Histories without a common ancestor are not
	// mergeable and have no conflicting paths. ErrNotFound.
	Mergeable(ctx context.Context, r Repo, base, head string) (ok bool, conflicts []string, err error)

	// Merge brings a branch into its base and answers the commit that did.
	//
	// It is idempotent: when o.HeadSHA is in the base already, by either
	// method, the answer is the commit that brought it there, whatever became
	// of the branch since. Otherwise the head branch must be at o.HeadSHA
	// (ErrHeadMoved), the base at o.BaseSHA if that is given (ErrBaseMoved), and both branches are checked and the base moved in one
	// ref transaction. ErrConflict, ErrNotFound.
	Merge(ctx context.Context, r Repo, o MergeOptions) (mergeSHA string, err error)

	// DeleteBranch deletes a branch that is at expectSHA, else ErrHeadMoved;
	// ErrNotFound if it is gone. The default branch is never deleted.
	DeleteBranch(ctx context.Context, r Repo, branch, expectSHA string) error
}

// CreateOptions shape a new repository.
type CreateOptions struct {
	DefaultBranch string // "main" if empty
	Private       bool   // only members may see it, where the host knows anything else
}

// Info is the state of a repository.
type Info struct {
	DefaultBranch string
	HeadSHA       string // of the default branch; "" while that has no commit
	Empty         bool   // no branch has a commit
}

// Comparison is what a head brings to a base.
type Comparison struct {
	BaseSHA, HeadSHA string   // what the revs were when compared
	MergeBase        string   // "" if the histories have no common ancestor
	Ahead            int      // commits in head that are not in base
	Paths            []string // changed since the merge base, sorted; a rename lists both names
	// PatchID identifies the change since the merge base: it survives a rebase
	// that leaves every changed line, white space included, as it was. "" if
	// nothing changed.
	PatchID string
}

// Outcome is what the merge of a head would make of a base.
type Outcome struct {
	BaseSHA, HeadSHA string // what the revs were when it was tried
	// Tree is the content of base after the merge, a rev for ReadFile. Where the
	// two conflict, or have no common ancestor, it is that of head.
	Tree string
	// Changes are the entries of base that would be others, or not be, sorted by
	// path. Where the two conflict they are what head changes since the merge
	// base, and every path in conflict.
	Changes []Change
}

// Change is one entry of a tree that would change. A rename is two.
type Change struct {
	Path string // bytes, as git has them
	Link bool   // it would be a symbolic link or another repository: a name for what lies elsewhere
}

// Method is how a branch enters its base.
type Method string

// MethodMerge always makes a commit with two parents, even where the base
// could be fast-forwarded. MethodSquash makes one commit on the base.
const (
	MethodMerge  Method = "merge"
	MethodSquash Method = "squash"
)

// WriteOptions describe a commit that changes files.
type WriteOptions struct {
	Branch      string
	Parent      string            // where the branch is
	Files       map[string][]byte // path -> content
	Remove      []string          // paths; those that are not there are passed over
	Title, Body string            // the commit's message
	Author      Person
	Committer   Person
}

// Person signs a commit.
type Person struct{ Name, Email string }

// MergeOptions describe one merge.
type MergeOptions struct {
	Base, Head  string // branch names
	HeadSHA     string // the commit that was reviewed
	BaseSHA     string // the base that was looked at; empty: whatever it is
	Method      Method
	Title, Body string // the commit's message
	Author      Person
	Committer   Person
}
