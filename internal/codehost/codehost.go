// Package codehost is the interface to servers of git repositories.
//
// A host has two sides. Host answers facts about branches and files, and makes the
// few changes that are made on the server (merge, delete a branch). Forge is the
// part of a host that is not git: its pull requests, checks and issues. Feed tells what
// happens at a host, and GitAccess where its git is. Hosts finds the sides for a
// repository: a server may be connected to several hosts.
//
// An error that a caller can act on is one of the faults in codehost.go, or
// ErrUnknownHost or ErrCannot.
//
//   - codehost.go, diff.go, outcome.go: Host
//   - forge.go, pulls.go, noforge.go: Forge
//   - feed.go, events.go: Feed and GitAccess
//   - people.go: tokens of people
//   - urgency.go: how much of the limits of a host a call may use up
//   - hosts.go: Hosts
//   - names.go, links.go: names of repositories, refs, commits and issues
//   - stack.go: candidates of merge queues
//   - push.go: the rights of a git credential, and the changes of a push
package codehost

import (
	"context"
	"time"

	"yardmaster/internal/fault"
)

// MaxFileSize is the largest file that ReadFile and ReadDir return, in bytes.
// MaxDirFiles is the largest number of files that ReadDir returns.
const (
	MaxFileSize = 1 << 20
	MaxDirFiles = 1000
)

// Faults on which a caller can act. They match with errors.Is.
var (
	ErrNotFound  = fault.New(fault.NotFound, "", "The code host has no such repository, branch or file.")
	ErrAmbiguous = fault.New(fault.Invalid, "", "Several commits begin with these digits.")
	ErrExists    = fault.Reason("repo-exists", "The code host already has a repository of this name.")
	// ErrHeadMoved says that a branch is not at the commit that the caller gave.
	ErrHeadMoved = fault.Reason("head_moved", "The branch has moved since it was looked at.")
	// ErrBaseMoved says that the base is not at the commit that the caller gave.
	ErrBaseMoved = fault.Reason("base_moved", "The base branch has moved since it was looked at.")
	// ErrConflict says that a merge needs a person or an agent.
	ErrConflict = fault.Reason("merge-conflict", "The branch conflicts with its base.")
	// ErrLost says that the folder of the repository has disappeared.
	ErrLost = fault.New(fault.Unavailable, "repository-lost",
		"The folder of the repository is not on the server. Its operator has to put it back from a copy; "+
			"until then nothing is read from it or written to it.")
	// ErrAway says that the node of a cluster that has the repository does not answer.
	ErrAway = fault.New(fault.Unavailable, "repository-away",
		"The repository is on another node, which does not answer. It is there again when that node is.")
	ErrTooLarge = fault.New(fault.TooLarge, "file-too-large", "A file is larger than 1 MiB, or there are too many.")
)

// Host is the git side of one code host. It is safe for concurrent use.
//
// A rev is a branch name, a full ref name (refs/...), a full commit SHA, or
// "HEAD" for the default branch. A SHA is 40 lower-case hexadecimal digits.
type Host interface {
	// Create makes an empty repository. It fails with ErrExists if there is one.
	Create(ctx context.Context, r Repo, o CreateOptions) error

	// Info describes a repository. It fails with ErrNotFound.
	Info(ctx context.Context, r Repo) (Info, error)

	// CloneURL is the address for git clients, without credentials.
	CloneURL(r Repo) string

	// ReadFile answers a file's content at rev and the SHA of its blob. The content
	// of a symbolic link is the path that it points to. ReadFile fails with
	// ErrNotFound or ErrTooLarge.
	ReadFile(ctx context.Context, r Repo, rev, path string) (content []byte, sha string, err error)

	// ReadDir answers the regular files directly in a folder at rev, by name, and
	// the commit from which they were read. It fails with ErrNotFound if there is no
	// such folder below the root, and with ErrTooLarge for more than MaxDirFiles
	// files or one larger than MaxFileSize.
	ReadDir(ctx context.Context, r Repo, rev, folder string) (commit string, files map[string][]byte, err error)

	// WriteFiles makes a commit on a branch and answers it. The answer is o.Parent if
	// the files have this content already. WriteFiles fails with ErrHeadMoved if the
	// branch is not at o.Parent, with ErrConflict if a file would replace a folder or
	// a folder a file, and with ErrNotFound.
	WriteFiles(ctx context.Context, r Repo, o WriteOptions) (sha string, err error)

	// FirstCommit makes the first commit of a repository that has none, and answers it.
	// The same options make the same commit: a repository whose branch is at it already
	// is not changed. It fails with ErrHeadMoved if the branch is at another commit, and
	// with ErrNotFound.
	FirstCommit(ctx context.Context, r Repo, o FirstOptions) (sha string, err error)

	// Head is the SHA of a branch. It fails with ErrNotFound.
	Head(ctx context.Context, r Repo, branch string) (sha string, err error)

	// Commit is the full SHA of the one commit that begins with the given digits, at
	// least 7. It fails with ErrNotFound, and with ErrAmbiguous if there are several.
	Commit(ctx context.Context, r Repo, digits string) (sha string, err error)

	// Compare describes what head adds to base. It fails with ErrNotFound.
	Compare(ctx context.Context, r Repo, base, head string) (Comparison, error)

	// Outcome describes what a merge of a head would change in a base. It tries the
	// merge without moving a ref, so it agrees with Merge, also where either side has
	// renamed folders. It fails with ErrNotFound.
	Outcome(ctx context.Context, r Repo, o OutcomeOptions) (Outcome, error)

	// Made describes a commit, and compares it with a tree that Outcome has answered; ""
	// is none. It fails with ErrNotFound.
	Made(ctx context.Context, r Repo, sha, tree string) (Made, error)

	// Landed is the commit that brought a commit into a base, by either method; "" if
	// the base does not contain it. It fails with ErrNotFound if there is no such
	// base or commit.
	Landed(ctx context.Context, r Repo, base, sha string) (mergeSHA string, err error)

	// Unwanted finds what the change from one commit to another should not have, by path. It
	// fails with ErrNotFound.
	Unwanted(ctx context.Context, r Repo, from, to string) ([]Unwanted, error)

	// Diff describes the changes between two revs. It fails with ErrNotFound.
	Diff(ctx context.Context, r Repo, o DiffOptions) (Diff, error)

	// Mergeable tries a merge of the revs without moving a ref, and lists the
	// conflicting paths. Histories without a common ancestor are not mergeable and
	// have no conflicting paths. It fails with ErrNotFound.
	Mergeable(ctx context.Context, r Repo, base, head string) (ok bool, conflicts []string, err error)

	// Merge merges a branch into its base and answers the commit that did so.
	//
	// It is idempotent: when the base contains o.HeadSHA already, by either method,
	// the answer is the commit that brought it there, even if the branch has moved or
	// is gone. Otherwise Merge fails with ErrHeadMoved if the head branch is not at
	// o.HeadSHA, and with ErrBaseMoved if o.BaseSHA is given and the base is not at
	// it. Both branches are checked and the base is moved in one ref transaction.
	// Merge also fails with ErrConflict and ErrNotFound.
	Merge(ctx context.Context, r Repo, o MergeOptions) (mergeSHA string, err error)

	// Stack merges heads into a base, one after the other, in commits that no branch
	// has, and stops at the first head that conflicts with what stands before it. Each
	// call makes commits of its own. It fails with ErrNotFound.
	Stack(ctx context.Context, r Repo, o StackOptions) (Stacked, error)

	// PutBranch makes or moves a branch of a merge queue (QueueBranch) to a commit that
	// Stack has made just before. It fails with ErrNotFound for any other branch.
	PutBranch(ctx context.Context, r Repo, branch, sha string) error

	// DeleteBranch deletes a branch. It fails with ErrHeadMoved if the branch is not
	// at expectSHA, and with ErrNotFound if the branch is gone. The default branch is
	// never deleted.
	DeleteBranch(ctx context.Context, r Repo, branch, expectSHA string) error
}

// Mover is a Host that moves branches.
type Mover interface {
	// MoveBranch moves a branch forward to a commit that has its present one among its
	// ancestors. A branch that is there already is no error. It fails with ErrHeadMoved if
	// the branch is at neither, and with ErrNotFound.
	MoveBranch(ctx context.Context, r Repo, branch, from, to string) error
}

// Branches is a Host that reads all branches at once.
type Branches interface {
	// Heads are the commits of all branches of a repository, by their names. It fails with
	// ErrNotFound.
	Heads(ctx context.Context, r Repo) (map[string]string, error)
}

// Defaulter is a Host that lets the server choose the default branch of a repository.
type Defaulter interface {
	// SetDefaultBranch makes a branch the default. It fails with ErrNotFound if there is no
	// such repository or branch.
	SetDefaultBranch(ctx context.Context, r Repo, branch string) error
}

// CreateOptions are the properties of a new repository.
type CreateOptions struct {
	DefaultBranch string // "main" if empty
	Private       bool   // visible to members only, on a host that has other repositories, too
}

// Info is the state of a repository.
type Info struct {
	// Repo is the repository by the name that it has now: its host may have renamed it.
	Repo          Repo
	DefaultBranch string
	HeadSHA       string // of the default branch; "" while the branch has no commit
	Empty         bool   // no branch has a commit
}

// Comparison describes what a head adds to a base.
type Comparison struct {
	BaseSHA, HeadSHA string   // the commits that were compared
	MergeBase        string   // "" if the histories have no common ancestor
	MergeBases       int      // best common ancestors; more than 1 after merges in both directions
	Ahead            int      // commits in head that are not in base
	Paths            []string // changed since the merge base, sorted; a rename lists both paths
	// Added and Deleted count the lines changed since the merge base, without files that
	// have no lines; 0 if there is no common ancestor.
	Added, Deleted int
	// PatchID identifies the change since the merge base. A rebase that keeps every
	// changed line, white space included, keeps it. "" if nothing changed.
	PatchID string
	// Change identifies the change since the merge base together with the files that it
	// was made to: the SHA-256 of every changed path with both modes and blobs, in 64
	// hexadecimal digits. Two heads with one Change touch the same files, which stood in
	// their bases with the same bytes and have the same bytes now. "" if nothing changed,
	// or if there is no common ancestor.
	Change string
}

// Method is the way in which a branch is merged.
type Method string

// MethodMerge always makes a commit with two parents, even where the base could be
// fast-forwarded. MethodSquash makes one commit on the base.
const (
	MethodMerge  Method = "merge"
	MethodSquash Method = "squash"
)

// WriteOptions describe a commit that changes files.
type WriteOptions struct {
	Branch      string
	Parent      string            // the commit that the branch must be at
	Files       map[string][]byte // path -> content
	Remove      []string          // paths; missing ones are ignored
	Title, Body string            // the commit's message
	Author      Person
	Committer   Person
}

// FirstOptions describe the first commit of a repository.
type FirstOptions struct {
	Branch      string
	Files       map[string][]byte // path -> content
	Programs    []string          // those of the paths that may be executed
	Title, Body string            // the commit's message
	Author      Person
	Committer   Person
	At          time.Time // of the commit, in whole seconds
}

// Person is the author or committer of a commit.
type Person struct{ Name, Email string }

// MergeOptions describe one merge.
type MergeOptions struct {
	// Number is that of the pull request at the host; 0 if the host keeps none for the
	// branch. A host that merges pull requests alone fails with ErrCannot without it.
	Number      int64
	Base, Head  string   // branch names
	HeadSHA     string   // the commit that was reviewed; the head must be at it
	BaseSHA     string   // the commit that the base must be at; empty: any
	Landed      []string // see OutcomeOptions
	Method      Method
	Title, Body string // the commit's message
	Author      Person
	Committer   Person
}
