package review

import (
	"slices"

	"yardmaster/internal/domain/repo"
)

// Status is how far a review is.
type Status string

// States of a run.
const (
	Queued    = "queued"    // the finder waits
	Looking   = "finding"   // the finder works
	Sorting   = "sorting"   // its answer is held against the code and earlier findings
	Verifying = "verifying" // the verifier waits or works
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled" // the head has moved, the pull request is over, or a person cancelled it
)

// Values lists all statuses.
func (Status) Values() []string {
	return []string{Queued, Looking, Sorting, Verifying, Completed, Failed, Cancelled}
}

// Verdict is what the code host is told of a review.
type Verdict string

// Verdicts that the code host is told.
const (
	VerdictSuccess = "success" // nothing that holds the merge
	VerdictFailure = "failure" // findings that hold the merge
	VerdictNeutral = "neutral" // nobody looked: no model, or nothing but a rebase
)

// Values lists all verdicts.
func (Verdict) Values() []string { return []string{VerdictSuccess, VerdictFailure, VerdictNeutral} }

// FindingState is the state of a finding that was posted.
type FindingState string

// States of a finding.
const (
	Raw       = "raw"       // the finder named it
	Refuted   = "refuted"   // the verifier could not confirm it, or it names no line
	Duplicate = "duplicate" // it was found before, or a rule dismisses it
	Below     = "below"     // below the threshold, or beyond the limits
	Kept      = "kept"      // confirmed
	Posted    = "posted"
	Answered  = "answered"  // somebody answered in its thread
	Fixed     = "fixed"     // a later head does not have it any more
	Dismissed = "dismissed" // a person says that it is none
	Stale     = "stale"     // its place is gone, or the pull request is over
)

// Values lists the states of those that people see.
func (FindingState) Values() []string { return []string{Posted, Answered, Fixed, Dismissed, Stale} }

// moves are the moves of a finding.
var moves = map[string][]string{
	Raw:      {Refuted, Duplicate, Below, Kept},
	Kept:     {Posted, Below},
	Posted:   {Answered, Fixed, Dismissed, Stale},
	Answered: {Posted, Fixed, Dismissed, Stale},
	Stale:    {Posted, Answered}, // the pull request is opened again
}

// allowed tells whether a finding may move from one state to another.
func allowed(from, to string) bool { return slices.Contains(moves[from], to) }

// shown tells whether people see findings of a state.
func shown(state string) bool {
	return slices.Contains([]string{Posted, Answered, Fixed, Dismissed, Stale}, state)
}

// isOpen tells whether findings of a state are looked at again.
func isOpen(state string) bool { return state == Posted || state == Answered }

// atLeast tells whether a severity is as bad as another one.
func atLeast(severity, least repo.Severity) bool {
	at := severity.Rank()
	return at >= 0 && at <= least.Rank()
}

// holds tells whether a finding holds the merge, under review.block of the policy.
func holds(state string, severity repo.Severity, block string) bool {
	return state == Posted && block != "never" && atLeast(severity, repo.Severity(block))
}
