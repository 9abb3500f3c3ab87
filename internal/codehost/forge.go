package codehost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"yardmaster/internal/fault"
)

// Forge is the part of a code host that is not git: the records that the host keeps
// about the work in a repository. Hosts differ in the records that they keep; Can
// tells whether a host has a capability. A method of a capability that the host lacks
// fails with ErrCannot.
//
// Every method may fail with ErrNotFound, ErrGone, *ForbiddenError and *BusyError.
// Every write takes a Once: the same Once again has the effect once, and answers the
// first result.
//
// A Forge is safe for concurrent use.
type Forge interface {
	// Can tells whether the host has a capability. The answer never changes.
	Can(Capability) bool

	Pulls
	Reviews
	Checks
	Issues
	Rules
}

// Capability is an ability that some hosts lack.
type Capability string

// Capabilities of hosts.
const (
	KeepPulls     Capability = "pulls"         // Pulls, Reviews
	KeepChecks    Capability = "checks"        // Checks
	KeepIssues    Capability = "issues"        // Issues
	KeepRules     Capability = "rules"         // Rules
	CreateRepos   Capability = "create-repos"  // Rules.CreateRepo
	QueueNative   Capability = "merge-queue"   // Pulls.Enqueue, Pulls.QueueEntry, Pulls.Dequeue
	CloseThreads  Capability = "close-threads" // Reviews.Resolve
	WriteWorkflow Capability = "workflows"     // pushes and merges that touch the host's own workflow files
)

// Once makes a write count once. It is the id of the intent behind the write: a UUID.
type Once string

// Tag is the version of an answer at its host. A read with the Tag of the last answer
// fails with ErrNotModified if nothing has changed, which costs nothing. The zero Tag
// asks for the answer in any case.
type Tag string

// Failures of a Forge. They match with errors.Is.
var (
	// ErrCannot says that a Forge was asked for a capability that its host lacks.
	ErrCannot = errors.New("the code host lacks the capability")
	// ErrNotModified says that the answer is the one of the Tag that was given.
	ErrNotModified = errors.New("nothing has changed at the code host")
	// ErrGone says that the repository takes no calls: the App is not installed there,
	// the installation is suspended, or the repository is archived.
	ErrGone = fault.New(fault.Unavailable, "code-host-gone",
		"The code host does not let Yardmaster at the repository: the installation was removed or suspended, or the repository is archived.")
	ErrNoCommits      = errors.New("the head adds no commit to the base")
	ErrMerged         = errors.New("the pull request is merged already")
	ErrThreadGone     = errors.New("the thread is gone")
	ErrLocked         = errors.New("the conversation is locked")
	ErrNotRerunnable  = errors.New("the check cannot be run again from here")
	ErrTooOld         = errors.New("the code host does not run so old a check again")
	ErrNoLog          = errors.New("the code host keeps no log of the check")
	ErrAnchorRefused  = errors.New("the code host refused the place of a comment")
	ErrMethodRefused  = errors.New("the repository does not permit the method of the merge")
	ErrNotInstallable = errors.New("the code host does not know the installation")
)

// ForbiddenError says that the credential of the server lacks a permission.
type ForbiddenError struct {
	Permission string // as the host calls it, such as "workflows: write"; "" if the host did not say
	Asked      bool   // the App asks for it, and its owner has not granted it yet
}

// Error implements error.
func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("the code host requires the permission %q", e.Permission)
}

// As makes the error a fault for the callers of this server.
func (e *ForbiddenError) As(target any) bool {
	f, is := target.(**fault.Error)
	if is {
		lacks := "a permission"
		if e.Permission != "" {
			lacks = `the permission "` + e.Permission + `"`
		}
		*f = fault.New(fault.Unavailable, "code-host-permission", "The App of this server lacks "+lacks+" at the code host.").Because(e)
	}
	return is
}

// BusyError says that a call was not, or may not have been, carried out: a limit of
// the host, a failure of it, or of the network. The caller repeats it with the same Once.
type BusyError struct {
	After time.Duration // the least time to wait; 0: the host did not say
	Limit bool          // a limit of the host, which says when it ends
	Cause error
}

// Error implements error.
func (e *BusyError) Error() string {
	return fmt.Sprintf("the code host is busy, wait for %s: %v", e.After, e.Cause)
}

// RetryAfter is After: whatever makes the call again waits for so long.
func (e *BusyError) RetryAfter() time.Duration { return e.After }

// Unwrap returns the cause.
func (e *BusyError) Unwrap() error { return e.Cause }

// As makes the error a fault for the callers of this server, where nothing repeats the
// call.
func (e *BusyError) As(target any) bool {
	f, is := target.(**fault.Error)
	if is {
		*f = fault.New(fault.Unavailable, "code-host-busy", "The code host does not answer now. Try again later.").Because(e).After(e.After)
	}
	return is
}

// BlockedError says that a rule of the host holds a merge back.
type BlockedError struct{ Missing []string } // sentences or names of the host

// Error implements error.
func (e *BlockedError) Error() string {
	return fmt.Sprintf("a rule of the code host is not met: %q", e.Missing)
}

// As makes the error a fault for the callers of this server.
func (e *BlockedError) As(target any) bool {
	f, is := target.(**fault.Error)
	if is {
		*f = fault.Reason("code-host-rule", "A rule of the code host is not met: "+strings.Join(e.Missing, "; ")).Because(e)
	}
	return is
}

// AnchorError says that a comment of a review has no place in the diff of its head.
// Nothing was sent.
type AnchorError struct{ Index int } // of the first such comment

// Error implements error.
func (e *AnchorError) Error() string { return fmt.Sprintf("comment %d is not in the diff", e.Index) }

// Pulls are the pull requests of a host.
type Pulls interface {
	// OpenPull opens a pull request. An open one of the same head and base is
	// answered. It fails with ErrNoCommits.
	OpenPull(ctx context.Context, r Repo, once Once, n NewPull) (Pull, error)
	// Pull describes a pull request.
	Pull(ctx context.Context, r Repo, number int64, t Tag) (Pull, Tag, error)
	// OpenPulls lists the open pull requests, by number.
	OpenPulls(ctx context.Context, r Repo) ([]Pull, error)
	// EditPull changes what the edit names. It fails with ErrMerged if the edit is
	// about the state of a merged one.
	EditPull(ctx context.Context, r Repo, once Once, number int64, e PullEdit) (Pull, error)
	// PullFiles lists the changed files with their hunks; whole is false if the host
	// cut the list.
	PullFiles(ctx context.Context, r Repo, number int64) (files []PullFile, whole bool, err error)
	// MergePull merges a pull request whose head is at m.HeadSHA, and answers the
	// commit of the merge. One that is merged already answers its commit. It fails
	// with ErrHeadMoved, ErrConflict, ErrMethodRefused and *BlockedError.
	MergePull(ctx context.Context, r Repo, once Once, number int64, m PullMerge) (sha string, err error)
	// Enqueue adds a pull request to the merge queue of the host. It fails with
	// ErrHeadMoved and *BlockedError.
	Enqueue(ctx context.Context, r Repo, once Once, number int64, headSHA string) error
	// QueueEntry is the place of a pull request in the queue of the host; false if it is
	// not in it.
	QueueEntry(ctx context.Context, r Repo, number int64) (QueueEntry, bool, error)
	// Dequeue takes a pull request out of the queue of the host. One that is not in it
	// is no error.
	Dequeue(ctx context.Context, r Repo, once Once, number int64) error
}

// Reviews are the reviews of pull requests, and their threads.
type Reviews interface {
	// PostReview posts a review with all of its comments, or nothing. It fails with
	// *AnchorError before it calls the host, with ErrAnchorRefused after, and with
	// ErrHeadMoved.
	PostReview(ctx context.Context, r Repo, once Once, number int64, n NewReview) (Review, error)
	// ReviewsOf lists the submitted reviews of a pull request, oldest first, as they stand
	// now. Review.HeadSHA may be another commit than the one that was reviewed, see there.
	ReviewsOf(ctx context.Context, r Repo, number int64) ([]Review, error)
	// Threads lists the threads of a pull request.
	Threads(ctx context.Context, r Repo, number int64) ([]Thread, error)
	// Reply adds a comment to a thread. It fails with ErrThreadGone.
	Reply(ctx context.Context, r Repo, once Once, number int64, thread string, body string) (Comment, error)
	// Resolve closes a thread, or opens it again. One in that state already is no
	// error. It fails with ErrThreadGone.
	Resolve(ctx context.Context, r Repo, once Once, thread string, resolved bool) error
}

// Checks are the results that programs report about commits.
type Checks interface {
	// ChecksOf lists check runs and statuses of a commit, the latest of each source
	// and name.
	ChecksOf(ctx context.Context, r Repo, sha string, t Tag) (CheckSet, Tag, error)
	// SetCheck makes or moves on our check of a name on a commit, and answers its id
	// at the host. An ended check is begun anew.
	SetCheck(ctx context.Context, r Repo, once Once, c OwnCheck) (id string, err error)
	// RerunFailed runs the failed jobs of checks again. It fails with ErrTooOld and
	// ErrNotRerunnable.
	RerunFailed(ctx context.Context, r Repo, once Once, ids []string) error
	// CheckLog is the log of a check, from about last bytes before its end. It fails
	// with ErrNoLog. The caller closes it.
	CheckLog(ctx context.Context, r Repo, id string, last int64) (io.ReadCloser, error)
}

// Issues are the issues of a repository. For comments, labels and milestone a pull
// request is an issue.
type Issues interface {
	// Issue describes an issue.
	Issue(ctx context.Context, r Repo, number int64, t Tag) (Issue, Tag, error)
	// IssuesSince answers a page of the issues that have changed at or after a time, in
	// the order of their changes, and the cursor of the next page: "" after the last.
	// Pull requests are among them, see Issue.Pull. The first page takes the cursor "".
	// An issue that changes meanwhile is answered again, and none is left out. open
	// leaves out those that are closed.
	IssuesSince(ctx context.Context, r Repo, since time.Time, open bool, cursor string) ([]Issue, string, error)
	// CommentsOf lists the comments in the conversation of an issue or pull request that
	// were made or edited at or after a time, oldest first.
	CommentsOf(ctx context.Context, r Repo, number int64, since time.Time) ([]Comment, error)
	// AddComment comments on an issue or pull request. It fails with ErrLocked and
	// ErrTooLarge.
	AddComment(ctx context.Context, r Repo, once Once, number int64, body string) (Comment, error)
	// EditComment replaces the text of a comment of ours. It fails with ErrNotFound if
	// a person has deleted the comment.
	EditComment(ctx context.Context, r Repo, once Once, id string, body string) error
	// OpenIssue opens an issue, with labels that need not exist. It fails with
	// ErrTooLarge.
	OpenIssue(ctx context.Context, r Repo, once Once, title, body string, labels []string) (Issue, error)
	// EditIssue changes what the edit names.
	EditIssue(ctx context.Context, r Repo, once Once, number int64, e IssueEdit) error
	// Milestones lists the milestones of a repository, open and closed.
	Milestones(ctx context.Context, r Repo, t Tag) ([]Milestone, Tag, error)
	// RenameMilestone gives a milestone another title. It fails with ErrExists.
	RenameMilestone(ctx context.Context, r Repo, once Once, number int64, title string) error
}

// Rules are who may do what in a repository, and what its branches demand.
type Rules interface {
	// BranchRules are the rules of a branch.
	BranchRules(ctx context.Context, r Repo, branch string, t Tag) (BranchRules, Tag, error)
	// Permission is what a person may do in a repository now.
	Permission(ctx context.Context, r Repo, login string) (Permission, error)
	// CreateRepo makes an empty repository. It fails with ErrExists.
	CreateRepo(ctx context.Context, owner string, once Once, n NewRepo) (Repo, error)
}
