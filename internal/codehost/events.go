package codehost

import "time"

// Event is something that has happened at a host: a delivery or a sweep tells of it. It
// is a hint with a payload: events come late, doubled, in any order, and before the
// answer of the call that caused them. The types of events are the structs of this file.
type Event interface{ About() Happening }

// Happening is what all events have.
type Happening struct {
	Repo   Repo // zero for an event about an installation
	Action Action
	By     User // zero from a sweep
	// At is when the object was changed last, as the host says; zero if it does not.
	At time.Time
}

// About implements Event.
func (h Happening) About() Happening { return h }

// Action is what was done to the object of an event, as far as anything depends on it. A host's
// own word for it stays in its adapter.
type Action int

// Actions.
const (
	ActionUnsaid Action = iota // a sweep tells how the object is, and not what was done to it
	ActionOther
	ActionCreated // a comment, a check
	ActionEdited
	ActionDeleted
	ActionTransferred // an issue, to another repository
	ActionLabeled     // an issue
	ActionSubmitted   // a review
	ActionDismissed   // a review
	ActionDequeued    // a pull request, from the merge queue of the host
	ActionGrouped     // a group of that queue waits for its checks
	ActionUngrouped   // the group is gone
)

// String is for logs and tests.
func (a Action) String() string {
	return [...]string{
		"", "other", "created", "edited", "deleted", "transferred", "labeled", "submitted", "dismissed", "dequeued", "grouped", "ungrouped",
	}[a]
}

// Exit is why a pull request left the merge queue of its host.
type Exit int

// Exits.
const (
	ExitUnsaid Exit = iota
	ExitOther
	ExitMerged
	ExitConflict
	ExitFailed // a check
	ExitSlow   // a check took too long
)

type (
	// InstallationEvent tells that an installation began, changed or ended, or which
	// repositories it has gained or lost.
	InstallationEvent struct {
		Happening
		Installation Installation
		Added        []RepoInfo
		Removed      []Repo
	}
	// RepoEvent tells that a repository was renamed, transferred, archived, made
	// private or public, or deleted.
	RepoEvent struct {
		Happening
		Info RepoInfo
		Was  string // its full name before; "" unless that changed
		Gone bool   // deleted, or out of reach
	}
	// PushedEvent tells of moved refs. A sweep does not know which: it names none.
	PushedEvent struct {
		Happening
		Updates []RefUpdate
	}
	// PullChanged tells of the state of a pull request.
	PullChanged struct {
		Happening
		Pull Pull
		Exit Exit   // of ActionDequeued
		Says string // the host's word for the exit, for people
	}
	// ReviewPosted tells of a review.
	ReviewPosted struct {
		Happening
		Number int64
		Review Review
	}
	// Commented tells of a comment on an issue or pull request, on its lines if Thread
	// is not "".
	Commented struct {
		Happening
		Number  int64
		Pull    bool
		Comment Comment
		Thread  string // path and line of the comment's place; "" for the conversation
		Deleted bool
	}
	// ThreadChanged tells that the threads of a pull request are to be read again; of a
	// sweep, all that was said there since Happening.At.
	ThreadChanged struct {
		Happening
		Number int64
		Thread Thread
	}
	// ChecksChanged tells that the checks of a commit are to be read again.
	ChecksChanged struct {
		Happening
		SHA   string
		Check *HostCheck // nil: several, or a status
	}
	// CheckRequested tells that a person asked to run a check of ours again.
	CheckRequested struct {
		Happening
		SHA, Name string
	}
	// IssueChanged tells of the state of an issue.
	IssueChanged struct {
		Happening
		Issue Issue
		Label string // that was put on or taken off; "" for other actions
	}
	// MilestoneChanged tells that the milestones are to be read again.
	MilestoneChanged struct{ Happening }
	// QueueChanged tells of a group of the host's merge queue.
	QueueChanged struct {
		Happening
		HeadSHA, BaseRef string
		Number           int64 // of the last pull request in the group; 0: unknown
	}
	// RulesChanged tells that the rules of the branches are to be read again.
	RulesChanged struct{ Happening }
)

// Installation is the permission of an owner at a host to work in repositories.
type Installation struct {
	ID          string
	Owner       User // organisation or person
	OwnerKind   string
	Permissions map[string]string // as the host calls them
	Suspended   bool
	Gone        bool
	Chosen      bool // the owner chose some repositories; false: all of them
}

// RepoInfo is a repository as its host describes it.
type RepoInfo struct {
	Repo          Repo
	OwnerID       string
	DefaultBranch string
	Private       bool
	Archived      bool
	Description   string
}

// Delivery is a message of a host that was accepted.
type Delivery struct {
	Host string
	GUID string // the same for each redelivery
	Kind string // the host's name of the event
	Body []byte // JSON
}

// Marks are what a sweep has seen of a repository. The caller keeps them.
type Marks struct {
	Issues, Repo Tag
	Since        time.Time // of the last change that was walked
	Turn         int
}
