package github

import (
	"fmt"
	"slices"
	"strings"
)

// association is what a person is to a repository. A private membership is not shown,
// so that members look like strangers.
func (r *Repo) association(a *Account) string {
	switch {
	case a == nil:
		return "NONE"
	case r.owner == a:
		return "OWNER"
	case r.owner.members[a.ID] != "" && !r.owner.private[a.ID]:
		return "MEMBER"
	case r.roles[a.ID] != "" && r.owner.members[a.ID] == "":
		return "COLLABORATOR"
	}
	for _, p := range r.pulls() {
		if p.author == a && !p.merged.IsZero() {
			return "CONTRIBUTOR"
		}
	}
	return "NONE"
}

func reactions(at string) obj {
	o := obj{"url": at + "/reactions", "total_count": 0}
	for _, name := range []string{"+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes"} {
		o[name] = 0
	}
	return o
}

func (s *Server) showLabel(r *Repo, l *label) obj {
	return obj{
		"id": l.id, "node_id": nodeID("LA", l.id), "url": s.at(r) + "/labels/" + l.name, "name": l.name, "color": l.color,
		"default": l.name == "bug" || l.name == "enhancement", "description": l.description,
	}
}

func (s *Server) showMilestone(m *Milestone) any {
	if m == nil {
		return nil
	}
	at := fmt.Sprintf("%s/milestones/%d", s.at(m.repo), m.Number)
	open, closed := 0, 0
	for _, i := range m.repo.issues {
		switch {
		case i.milestone != m:
		case i.closed.IsZero():
			open++
		default:
			closed++
		}
	}
	return obj{
		"url": at, "html_url": fmt.Sprintf("%s/milestone/%d", s.page(m.repo), m.Number), "labels_url": at + "/labels", "id": m.ID,
		"node_id": nodeID("MI", m.ID), "number": m.Number, "state": openOr(m.closed.IsZero()), "title": m.title,
		"description": null(m.description), "creator": s.userOrNull(m.creator), "open_issues": open, "closed_issues": closed,
		"created_at": stamp(m.created), "updated_at": stamp(m.updated), "closed_at": stamp(m.closed), "due_on": stamp(m.due),
	}
}

func openOr(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

// showIssue is GitHub's "issue". A pull request has a member that says so.
func (s *Server) showIssue(i *Issue) obj {
	r := i.repo
	at, page := fmt.Sprintf("%s/issues/%d", s.at(r), i.Number), fmt.Sprintf("%s/issues/%d", s.page(r), i.Number)
	var assignee any
	if len(i.assignees) > 0 {
		assignee = s.showUser(i.assignees[0])
	}
	comments := 0
	for _, c := range r.comments {
		if c.issue == i {
			comments++
		}
	}
	o := obj{
		"id": i.ID, "node_id": nodeID("I", i.ID), "url": at, "repository_url": s.at(r), "labels_url": at + "/labels{/name}",
		"comments_url": at + "/comments", "events_url": at + "/events", "html_url": page, "number": i.Number,
		"state": openOr(i.closed.IsZero()), "state_reason": null(i.reason), "title": i.title, "body": null(i.body),
		"user": s.userOrNull(i.author), "labels": each(i.labels, func(l *label) obj { return s.showLabel(r, l) }),
		"assignee": assignee, "assignees": each(i.assignees, s.showUser), "milestone": s.showMilestone(i.milestone),
		"locked": i.locked, "active_lock_reason": nil, "comments": comments, "closed_at": stamp(i.closed),
		"created_at": stamp(i.created), "updated_at": stamp(i.updated), "author_association": r.association(i.author),
		"reactions": reactions(at), "timeline_url": at + "/timeline", "performed_via_github_app": s.viaOrNull(i.app),
		"closed_by": s.userOrNull(i.closedBy),
	}
	if p := i.pull; p != nil {
		o["html_url"] = s.pullPage(p)
		o["node_id"], o["draft"] = nodeID("PR", i.ID), p.draft
		o["pull_request"] = obj{
			"url": s.pullAt(p), "html_url": s.pullPage(p), "diff_url": s.pullPage(p) + ".diff",
			"patch_url": s.pullPage(p) + ".patch", "merged_at": stamp(p.merged),
		}
	}
	return o
}

func (s *Server) viaOrNull(a *App) any {
	if a == nil {
		return nil
	}
	return s.appObject(a)
}

func (s *Server) pullAt(p *Pull) string { return fmt.Sprintf("%s/pulls/%d", s.at(p.repo), p.Number) }

func (s *Server) pullPage(p *Pull) string { return fmt.Sprintf("%s/pull/%d", s.page(p.repo), p.Number) }

func href(to string) obj { return obj{"href": to} }

// simplePull is GitHub's "pull request simple", which lists have.
func (s *Server) simplePull(p *Pull) obj {
	r := p.repo
	at, page, issue := s.pullAt(p), s.pullPage(p), fmt.Sprintf("%s/issues/%d", s.at(r), p.Number)
	statuses := s.at(r) + "/statuses/" + p.head
	asIssue := s.showIssue(p.Issue)
	o := obj{
		"url": at, "id": p.ID, "node_id": nodeID("PR", p.ID), "html_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"issue_url": issue, "commits_url": at + "/commits", "review_comments_url": at + "/comments",
		"review_comment_url": s.at(r) + "/pulls/comments{/number}", "comments_url": issue + "/comments", "statuses_url": statuses,
		"merge_commit_sha": null(p.mergeSHA), "merged_at": stamp(p.merged), "draft": p.draft,
		"requested_reviewers": each(p.requested, s.showUser), "requested_teams": []obj{}, "auto_merge": nil,
		"base": obj{
			"label": r.owner.Login + ":" + p.baseRef, "ref": p.baseRef, "sha": p.base, "user": s.showUser(r.owner), "repo": s.showRepo(r),
		},
		"_links": obj{
			"self": href(at), "html": href(page), "issue": href(issue), "comments": href(issue + "/comments"),
			"review_comments": href(at + "/comments"), "review_comment": href(s.at(r) + "/pulls/comments{/number}"),
			"commits": href(at + "/commits"), "statuses": href(statuses),
		},
	}
	for _, name := range []string{
		"number", "state", "locked", "title", "user", "body", "labels", "milestone", "active_lock_reason", "created_at", "updated_at",
		"closed_at", "assignee", "assignees", "author_association",
	} {
		o[name] = asIssue[name]
	}
	head := obj{"ref": p.headRef, "sha": p.head, "label": nil, "user": nil, "repo": nil}
	if p.headOwner != nil {
		head["user"], head["label"] = s.showUser(p.headOwner), p.headOwner.Login+":"+p.headRef
	}
	if p.headRepo != nil {
		head["repo"] = s.showRepo(p.headRepo)
	} else {
		head["ref"] = p.headRef
	}
	o["head"] = head
	return o
}

// showPull is GitHub's "pull request".
func (s *Server) showPull(p *Pull) obj {
	r := p.repo
	o := s.simplePull(p)
	comments := 0
	for _, t := range p.threads {
		if !t.gone {
			comments += len(t.comments)
		}
	}
	middle := r.mergeBase(p.base, p.head)
	files := []change{}
	commits := 0
	if middle != "" {
		files, commits = r.diff(middle, p.head), r.count(middle+".."+p.head)
	}
	added, deleted := sums(files)
	known, clean := p.mergeable()
	var mergeable, rebaseable any
	if known {
		mergeable, rebaseable = clean, clean
	}
	asIssue := s.showIssue(p.Issue)
	for name, value := range map[string]any{
		"merged": !p.merged.IsZero(), "merged_by": s.userOrNull(p.mergedBy), "mergeable": mergeable, "rebaseable": rebaseable,
		"mergeable_state": s.mergeableState(p, known, clean), "comments": asIssue["comments"], "review_comments": comments,
		"maintainer_can_modify": p.maintainer, "commits": commits, "additions": added, "deletions": deleted,
		"changed_files": len(files),
	} {
		o[name] = value
	}
	if p.merged.IsZero() {
		o["merge_commit_sha"] = null(p.test)
	}
	return o
}

// showReview is GitHub's "pull request review".
func (s *Server) showReview(v *Review) obj {
	page := fmt.Sprintf("%s#pullrequestreview-%d", s.pullPage(v.pull), v.ID)
	o := obj{
		"id": v.ID, "node_id": nodeID("PRR", v.ID), "user": s.userOrNull(v.author), "body": v.body, "state": v.state, "html_url": page,
		"pull_request_url": s.pullAt(v.pull), "commit_id": v.commit, "author_association": v.pull.repo.association(v.author),
		"_links": obj{"html": href(page), "pull_request": href(s.pullAt(v.pull))},
	}
	if !v.submitted.IsZero() {
		o["submitted_at"] = stamp(v.submitted)
	}
	return o
}

// hookReview is a review in deliveries, where the state is in lower case.
func (s *Server) hookReview(v *Review) obj {
	o := s.showReview(v)
	o["state"], o["submitted_at"], o["body"] = strings.ToLower(v.state), stamp(v.submitted), null(v.body)
	o["updated_at"] = o["submitted_at"]
	return o
}

// showReviewComment is GitHub's "pull request review comment".
func (s *Server) showReviewComment(c *comment) obj {
	t := c.thread
	r := t.pull.repo
	at, page := fmt.Sprintf("%s/pulls/comments/%d", s.at(r), c.id), fmt.Sprintf("%s#discussion_r%d", s.pullPage(t.pull), c.id)
	o := obj{
		"url": at, "id": c.id, "node_id": nodeID("PRRC", c.id), "diff_hunk": t.hunk, "path": t.path, "commit_id": c.commit,
		"original_commit_id": c.original, "user": s.userOrNull(c.author), "body": c.body, "created_at": stamp(c.created),
		"updated_at": stamp(c.updated), "html_url": page, "pull_request_url": s.pullAt(t.pull), "pull_request_review_id": nil,
		"author_association": r.association(c.author), "reactions": reactions(at), "subject_type": "line",
		"_links": obj{"self": href(at), "html": href(page), "pull_request": href(s.pullAt(t.pull))},
		"line":   zeroNull(t.now), "original_line": t.line, "side": t.side, "start_line": zeroNull(t.startNow),
		"original_start_line": zeroNull(t.startLine), "start_side": null(t.startSide),
		"position": zeroNull(t.position), "original_position": t.position,
	}
	if t.now == 0 {
		o["position"] = nil
	}
	if t.file {
		o["subject_type"], o["position"], o["original_position"], o["original_line"] = "file", 1, 1, 1
		o["line"] = 1
	}
	if c.review != nil {
		o["pull_request_review_id"] = c.review.ID
	}
	if c.reply != 0 {
		o["in_reply_to_id"] = c.reply
	}
	return o
}

func zeroNull(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// minimalPulls are the open pull requests of a commit, as checks list them. Those
// from forks are left out.
func (s *Server) minimalPulls(r *Repo, sha string) []obj {
	out := []obj{}
	repo := func(r *Repo) obj { return obj{"id": r.ID, "url": s.at(r), "name": r.name} }
	for _, p := range r.pulls() {
		if p.head == sha && p.headRepo == r && p.closed.IsZero() {
			out = append(out, obj{
				"id": p.ID, "number": p.Number, "url": s.pullAt(p),
				"head": obj{"ref": p.headRef, "sha": p.head, "repo": repo(r)},
				"base": obj{"ref": p.baseRef, "sha": p.base, "repo": repo(r)},
			})
		}
	}
	return out
}

// showComment is GitHub's "issue comment".
func (s *Server) showComment(c *comment) obj {
	r := c.issue.repo
	at, page := fmt.Sprintf("%s/issues/comments/%d", s.at(r), c.id), fmt.Sprintf("%s/issues/%d", s.page(r), c.issue.Number)
	if c.issue.pull != nil {
		page = s.pullPage(c.issue.pull)
	}
	return obj{
		"id": c.id, "node_id": nodeID("IC", c.id), "url": at, "html_url": fmt.Sprintf("%s#issuecomment-%d", page, c.id), "body": c.body,
		"user": s.userOrNull(c.author), "created_at": stamp(c.created), "updated_at": stamp(c.updated),
		"issue_url":          fmt.Sprintf("%s/issues/%d", s.at(r), c.issue.Number),
		"author_association": r.association(c.author), "reactions": reactions(at), "performed_via_github_app": s.viaOrNull(c.app),
	}
}

// sorted lists the comments of an issue, oldest first.
func (i *Issue) sorted() (out []*comment) {
	for _, c := range i.repo.comments {
		if c.issue == i {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *comment) int { return int(a.id - b.id) })
	return out
}
