package codehost

import (
	"context"
	"errors"
)

// Forge is the part of a code host that is not git: the records that the host keeps
// about the work in a repository. Hosts differ in the records that they keep; Can
// tells whether a host has a capability.
//
// A Forge is safe for concurrent use.
type Forge interface {
	// Can tells whether the host has a capability. The answer never changes.
	Can(Capability) bool

	// Issues lists the open issues of a repository. It fails with ErrCannot unless
	// the host can KeepIssues.
	Issues(ctx context.Context, r Repo) ([]Issue, error)
}

// Capability is an ability that some hosts lack.
type Capability string

// KeepIssues is the capability of a host that keeps issues.
const KeepIssues Capability = "issues"

// ErrCannot says that a Forge was asked for a capability that its host lacks.
var ErrCannot = errors.New("the code host lacks the capability")

// Issue is an open issue of a repository.
type Issue struct {
	Key   string // the permanent name of the issue at its host; unique in the repository
	Title string
	Body  string
}
