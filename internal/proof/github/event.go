package github

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// permissionFor lists the permission that an installation needs to be told of an
// event. Events that are not listed need none.
var permissionFor = map[string]string{
	"push": "contents", "create": "contents", "delete": "contents",
	"pull_request": "pull_requests", "pull_request_review": "pull_requests",
	"pull_request_review_comment": "pull_requests", "pull_request_review_thread": "pull_requests",
	"issues": "issues", "issue_comment": "issues", "milestone": "issues",
	"check_run": "checks", "check_suite": "checks", "status": "statuses",
	"workflow_run": "actions", "workflow_job": "actions", "merge_group": "merge_queues",
	"branch_protection_rule": "administration", "repository_ruleset": "administration",
	"repository": "metadata", "label": "metadata", "member": "members",
}

// emit tells every installation with the repository that subscribes to an event.
func (s *Server) emit(r *Repo, event, action string, sender *Account, payload obj) {
	for _, i := range s.installed(r) {
		s.emitTo(i, r, event, action, sender, payload)
	}
}

// installed lists the installations that include a repository, oldest first.
func (s *Server) installed(r *Repo) (out []*Installation) {
	for _, n := range slices.Sorted(maps.Keys(s.installs)) {
		if i := s.installs[n]; i.has(r) && i.suspended.IsZero() {
			out = append(out, i)
		}
	}
	return out
}

// emitTo tells one installation, if it subscribes to the event and has its permission.
func (s *Server) emitTo(i *Installation, r *Repo, event, action string, sender *Account, payload obj) {
	need := permissionFor[event]
	ok := slices.Contains(i.events, event) && (need == "" || atLeast(i.permissions[need], "read"))
	if event == "issue_comment" && payload["pull"] != nil {
		either := atLeast(i.permissions["issues"], "read") || atLeast(i.permissions["pull_requests"], "read")
		ok = slices.Contains(i.events, event) && either
	}
	if !ok {
		return
	}
	full := maps.Clone(payload)
	delete(full, "pull")
	full["repository"] = s.showRepo(r)
	if event == "push" {
		full["repository"] = s.showPushedRepo(r)
	}
	full["installation"] = obj{"id": i.ID, "node_id": nodeID("INS", i.ID)}
	if r.owner.Kind == "Organization" {
		full["organization"] = s.showOrganization(r.owner)
	}
	if sender != nil {
		full["sender"] = s.showUser(sender)
	}
	s.notify(i.App, i, r, event, action, full)
}

// refMoved does what follows a push of one ref; many is how many refs it moved.
func (s *Server) refMoved(r *Repo, by who, c command, many int) {
	r.pushed, r.updated = s.seconds(), s.seconds()
	branch, isBranch := strings.CutPrefix(c.ref, "refs/heads/")
	tag, isTag := strings.CutPrefix(c.ref, "refs/tags/")
	if !isBranch && !isTag {
		return
	}
	sender := by.account()
	told := isBranch && many <= 5000 || isTag && many <= 3
	if told {
		s.emit(r, "push", "", sender, s.showPush(r, by, c))
	}
	name, kind := branch, "branch"
	if isTag {
		name, kind = tag, "tag"
	}
	pusher := "user"
	switch {
	case !told:
	case c.old == zero:
		s.emit(r, "create", "", sender, obj{
			"ref": name, "ref_type": kind, "master_branch": r.branch, "description": null(r.description), "pusher_type": pusher,
		})
	case c.new == zero:
		s.emit(r, "delete", "", sender, obj{"ref": name, "ref_type": kind, "pusher_type": pusher})
	}
	if !isBranch {
		return
	}
	if c.new != zero && !strings.HasPrefix(branch, "gh-readonly-queue/") {
		s.requestSuites(r, branch, c.old, c.new, sender)
	}
	for _, p := range s.pulls() {
		if p.headRepo == r && p.headRef == branch && p.closed.IsZero() {
			s.headMoved(p, by, c)
		}
		if p.repo == r && p.baseRef == branch && p.closed.IsZero() {
			s.baseMoved(p, by, c)
		}
	}
}

// pulls lists all pull requests, by repository and number.
func (s *Server) pulls() (out []*Pull) {
	for _, n := range slices.Sorted(maps.Keys(s.repos)) {
		out = append(out, s.repos[n].pulls()...)
	}
	return out
}

// pulls lists the pull requests of a repository by number.
func (r *Repo) pulls() (out []*Pull) {
	for _, n := range slices.Sorted(maps.Keys(r.issues)) {
		if i := r.issues[n]; i.pull != nil && !i.deleted {
			out = append(out, i.pull)
		}
	}
	return out
}

// headMoved takes a new head over into a pull request.
func (s *Server) headMoved(p *Pull, by who, c command) {
	if c.new == zero {
		s.closeIssue(p.Issue, by, "")
		return
	}
	before := p.head
	s.fetchHead(p, c.new)
	p.updated = s.seconds()
	if p.entry != nil {
		s.leaveQueue(p, by.account(), "dequeued", "INVALID_MERGE_COMMIT")
	}
	s.emit(p.repo, "pull_request", "synchronize", by.account(), obj{
		"number": p.Number, "before": before, "after": c.new, "pull_request": s.showPull(p),
	})
}

// fetchHead makes a commit the head of a pull request, and finds the new places of
// what refers to the former one.
func (s *Server) fetchHead(p *Pull, sha string) {
	if p.headRepo != nil && p.headRepo != p.repo {
		p.repo.must("fetch", "--quiet", p.headRepo.dir, sha)
	}
	if err := p.repo.setRef(fmt.Sprintf("refs/pull/%d/head", p.Number), sha, ""); err != nil {
		panic(err)
	}
	former := p.head
	p.head, p.base = sha, p.repo.head(p.baseRef)
	p.forgetMergeable()
	if former != "" && former != sha {
		s.repoint(p, former)
	}
}

// baseMoved notes that a base has moved. A pull request whose head is in its base now
// counts as merged.
func (s *Server) baseMoved(p *Pull, by who, c command) {
	p.forgetMergeable()
	if c.new == zero {
		s.baseGone(p, by)
		return
	}
	if p.merged.IsZero() && c.old != zero && p.repo.contains(c.new, p.head) && !p.repo.contains(c.old, p.head) {
		s.nowMerged(p, by, c.new)
	}
}

// baseGone does what GitHub does when the base of a pull request is deleted. If the
// base was the head of a pull request that was merged, its base is the new one (Merging
// a pull request, "Indirect merges"); otherwise the pull request is closed.
func (s *Server) baseGone(p *Pull, by who) {
	for _, other := range p.repo.pulls() {
		if other.headRepo == p.repo && other.headRef == p.baseRef && !other.merged.IsZero() && p.repo.head(other.baseRef) != "" {
			s.retarget(p, by, other.baseRef)
			return
		}
	}
	s.closeIssue(p.Issue, by, "")
}

// retarget gives a pull request another base.
func (s *Server) retarget(p *Pull, by who, base string) {
	changes := obj{"base": obj{"ref": obj{"from": p.baseRef}, "sha": obj{"from": p.base}}}
	p.baseRef, p.base = base, p.repo.head(base)
	p.forgetMergeable()
	s.edit(p.Issue, by, nil, nil, changes)
}

// null is a text, or null if it is empty.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
