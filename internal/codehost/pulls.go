package codehost

import "time"

// Label is the kind of the label of somebody at a code host, which goes on with their login
// there if that is known.
const Label = "code-host"

// User is somebody at a code host.
type User struct {
	Login string
	ID    string // permanent at the host
	Bot   bool
	Own   bool // the server's own App
}

// NewPull describes a pull request to open.
type NewPull struct {
	Title, Body, Head, Base string // Head and Base are branches of the repository
	Draft                   bool
}

// Pull is a pull request at its host.
type Pull struct {
	Number      int64
	NodeID      string // for calls that go by it
	Title, Body string
	URL         string // for people
	Open        bool
	Merged      bool
	Draft       bool
	Author      User
	HeadRef     string
	HeadSHA     string
	HeadOwner   string // owner of the repository of the head; "" if that is deleted
	Fork        bool   // the head is in another repository, or in one that is deleted
	BaseRef     string
	BaseSHA     string
	Mergeable   *bool // nil: the host does not know yet
	MergeSHA    string
	MergedBy    *User // nil: not merged, or the host does not say
	Labels      []string
	CreatedAt   time.Time
	UpdatedAt   time.Time // whole seconds at some hosts
	MergedAt    *time.Time
	ClosedAt    *time.Time
}

// PullEdit are changes of a pull request. Nil leaves a field as it is.
type PullEdit struct {
	Title, Body, Base        *string
	Draft, Open              *bool
	AddLabels, RemoveLabels  []string
	DeleteBranch, ExpectHead string // after a close: a branch of the repository to delete while it is at the commit
}

// PullFile is a changed file of a pull request.
type PullFile struct {
	Path, OldPath string // OldPath: before a rename, else ""
	Status        string // added, modified, removed, renamed
	Added         int
	Deleted       int
	Hunks         []Hunk // none: the file is binary, or the host left them out
}

// PullMerge describes the merge of a pull request.
type PullMerge struct {
	HeadSHA     string
	Method      Method
	Title, Body string
}

// Side is of which commit a line of a diff is.
type Side string

// Sides of a diff.
const (
	SideBase = "LEFT"
	SideHead = "RIGHT"
)

// Values lists both sides.
func (Side) Values() []string { return []string{SideHead, SideBase} }

// NewReview is a review to post.
type NewReview struct {
	HeadSHA  string // the commit that was reviewed
	Body     string
	Comments []NewComment
}

// NewComment is a comment on lines of a review.
type NewComment struct {
	Path, Side      string
	StartLine, Line int // StartLine 0: one line. Lines count in the file of the side
	Body            string
}

// Review is a review at its host.
type Review struct {
	ID          string
	Author      User
	State       string // approved, changes_requested, commented, dismissed
	HeadSHA     string // as the first delivery said; a host may name a later head after a force push
	Body        string
	URL         string
	SubmittedAt time.Time
	Comments    []Comment // of a review that was posted, in the order of NewReview
}

// Thread is a conversation about lines of a pull request.
type Thread struct {
	ID                 string
	Path, Side         string
	Line               int // 0: the place is gone
	Resolved, Outdated bool
	ResolvedBy         User // the zero User if nobody has, or the host does not say who
	Comments           []Comment
}

// Comment is one text of a conversation.
type Comment struct {
	ID        string
	Author    User
	Body      string
	URL       string
	ThreadID  string // of a comment on lines
	ReviewID  string // of the review that a comment on lines is of, in the threads of a pull request
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Conclusions of a check.
const (
	CheckPending = "pending" // it has not ended
	CheckPassed  = "passed"  // success, neutral or skipped
	CheckFailed  = "failed"
)

// CheckEnd is how a check ended, where more is known of it than its state.
type CheckEnd string

// Ends of a check.
const (
	EndPlain     CheckEnd = ""
	EndLeftOut   CheckEnd = "left_out"  // it passes because it did not judge
	EndTimedOut  CheckEnd = "timed_out" // it took too long
	EndCancelled CheckEnd = "cancelled"
	EndHeld      CheckEnd = "action_required" // a person has to let it run first; the word is that of stored rows
)

// HostCheck is a check of a commit at its host.
type HostCheck struct {
	ID        string
	Name      string
	Source    string // id of the App that reports it; "status" for a commit status
	Own       bool   // ours
	State     string // CheckPending, CheckPassed, CheckFailed
	End       CheckEnd
	Job       string // id of the job behind it, for RerunFailed and CheckLog; "" if there is none
	Workflow  string
	Attempt   int
	URL       string
	StartedAt *time.Time
	EndedAt   *time.Time
}

// CheckSet are the checks of a commit.
type CheckSet struct {
	SHA    string
	Checks []HostCheck
}

// OwnCheck is the state of a check of ours.
type OwnCheck struct {
	Name, SHA      string
	State          string // queued, running, or a conclusion: success, failure, neutral, cancelled
	Title, Summary string
	DetailsURL     string
	Annotations    []Annotation
}

// Annotation is a remark of a check about lines.
type Annotation struct {
	Path            string
	StartLine, Line int
	Level           string // notice, warning, failure
	Title, Message  string
}

// Issue is an issue at its host.
type Issue struct {
	Key       string // the permanent name of the issue at its host; unique in the repository
	Number    int64
	NodeID    string
	Title     string
	Body      string
	URL       string
	Open      bool
	Pull      bool // it is a pull request
	Author    User
	Labels    []string
	Milestone string
	Comments  int
	CreatedAt time.Time
	UpdatedAt time.Time
	ClosedAt  *time.Time
}

// IssueEdit are changes of an issue.
type IssueEdit struct {
	AddLabels, RemoveLabels []string
	Close                   string // "completed" or "not_planned"; "": leave it
	Reopen                  bool
}

// Milestone is a goal of a repository.
type Milestone struct {
	Number      int64
	Title       string
	Description string
	URL         string
	Open        bool
	OpenIssues  int
	Closed      int // issues that are closed
	DueOn       *time.Time
	UpdatedAt   time.Time
}

// BranchRules are what a host demands of a branch.
type BranchRules struct {
	Required  []RequiredCheck
	Strict    bool // the head must contain the base
	Approvals int  // reviews that approve
	LastPush  bool // the last push must be approved by somebody else
	Queue     bool // merges go through the queue of the host
	Methods   []Method
}

// RequiredCheck is a check that must pass before a merge.
type RequiredCheck struct {
	Name   string
	Source string // id of the App that must report it; "": any
}

// Permission is what a person may do in a repository.
type Permission int

// Permissions, each with those before it.
const (
	PermitNone Permission = iota
	PermitRead
	PermitTriage
	PermitWrite
	PermitMaintain
	PermitAdmin
)

// NewRepo describes a repository to make.
type NewRepo struct {
	Name, Description string
	Private           bool
	Installation      string // id of the installation that the owner must have; "" is any
}
