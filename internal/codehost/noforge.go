package codehost

import (
	"context"
	"io"
	"time"
)

// NoForge is a Forge that has no capability. A host that keeps only repositories
// embeds it.
type NoForge struct{}

var _ Forge = NoForge{}

// Can implements Forge. It is always false.
func (NoForge) Can(Capability) bool { return false }

// OpenPull implements Forge. It fails with ErrCannot, as all methods of NoForge do.
func (NoForge) OpenPull(context.Context, Repo, Once, NewPull) (Pull, error) {
	return Pull{}, ErrCannot
}

// Pull implements Forge.
func (NoForge) Pull(context.Context, Repo, int64, Tag) (Pull, Tag, error) {
	return Pull{}, "", ErrCannot
}

// OpenPulls implements Forge.
func (NoForge) OpenPulls(context.Context, Repo) ([]Pull, error) { return nil, ErrCannot }

// EditPull implements Forge.
func (NoForge) EditPull(context.Context, Repo, Once, int64, PullEdit) (Pull, error) {
	return Pull{}, ErrCannot
}

// PullFiles implements Forge.
func (NoForge) PullFiles(context.Context, Repo, int64) ([]PullFile, bool, error) {
	return nil, false, ErrCannot
}

// MergePull implements Forge.
func (NoForge) MergePull(context.Context, Repo, Once, int64, PullMerge) (string, error) {
	return "", ErrCannot
}

// Enqueue implements Forge.
func (NoForge) Enqueue(context.Context, Repo, Once, int64, string) error { return ErrCannot }

// QueueEntry implements Forge.
func (NoForge) QueueEntry(context.Context, Repo, int64) (QueueEntry, bool, error) {
	return QueueEntry{}, false, ErrCannot
}

// Dequeue implements Forge.
func (NoForge) Dequeue(context.Context, Repo, Once, int64) error { return ErrCannot }

// PostReview implements Forge.
func (NoForge) PostReview(context.Context, Repo, Once, int64, NewReview) (Review, error) {
	return Review{}, ErrCannot
}

// ReviewsOf implements Forge.
func (NoForge) ReviewsOf(context.Context, Repo, int64) ([]Review, error) { return nil, ErrCannot }

// Threads implements Forge.
func (NoForge) Threads(context.Context, Repo, int64) ([]Thread, error) { return nil, ErrCannot }

// Reply implements Forge.
func (NoForge) Reply(context.Context, Repo, Once, int64, string, string) (Comment, error) {
	return Comment{}, ErrCannot
}

// Resolve implements Forge.
func (NoForge) Resolve(context.Context, Repo, Once, string, bool) error { return ErrCannot }

// ChecksOf implements Forge.
func (NoForge) ChecksOf(context.Context, Repo, string, Tag) (CheckSet, Tag, error) {
	return CheckSet{}, "", ErrCannot
}

// SetCheck implements Forge.
func (NoForge) SetCheck(context.Context, Repo, Once, OwnCheck) (string, error) { return "", ErrCannot }

// RerunFailed implements Forge.
func (NoForge) RerunFailed(context.Context, Repo, Once, []string) error { return ErrCannot }

// CheckLog implements Forge.
func (NoForge) CheckLog(context.Context, Repo, string, int64) (io.ReadCloser, error) {
	return nil, ErrCannot
}

// Issue implements Forge.
func (NoForge) Issue(context.Context, Repo, int64, Tag) (Issue, Tag, error) {
	return Issue{}, "", ErrCannot
}

// IssuesSince implements Forge.
func (NoForge) IssuesSince(context.Context, Repo, time.Time, bool, string) ([]Issue, string, error) {
	return nil, "", ErrCannot
}

// CommentsOf implements Forge.
func (NoForge) CommentsOf(context.Context, Repo, int64, time.Time) ([]Comment, error) {
	return nil, ErrCannot
}

// AddComment implements Forge.
func (NoForge) AddComment(context.Context, Repo, Once, int64, string) (Comment, error) {
	return Comment{}, ErrCannot
}

// EditComment implements Forge.
func (NoForge) EditComment(context.Context, Repo, Once, string, string) error { return ErrCannot }

// OpenIssue implements Forge.
func (NoForge) OpenIssue(context.Context, Repo, Once, string, string, []string) (Issue, error) {
	return Issue{}, ErrCannot
}

// EditIssue implements Forge.
func (NoForge) EditIssue(context.Context, Repo, Once, int64, IssueEdit) error { return ErrCannot }

// Milestones implements Forge.
func (NoForge) Milestones(context.Context, Repo, Tag) ([]Milestone, Tag, error) {
	return nil, "", ErrCannot
}

// RenameMilestone implements Forge.
func (NoForge) RenameMilestone(context.Context, Repo, Once, int64, string) error { return ErrCannot }

// BranchRules implements Forge.
func (NoForge) BranchRules(context.Context, Repo, string, Tag) (BranchRules, Tag, error) {
	return BranchRules{}, "", ErrCannot
}

// Permission implements Forge.
func (NoForge) Permission(context.Context, Repo, string) (Permission, error) {
	return PermitNone, ErrCannot
}

// CreateRepo implements Forge.
func (NoForge) CreateRepo(context.Context, string, Once, NewRepo) (Repo, error) {
	return Repo{}, ErrCannot
}
