package github

import (
	"fmt"
	"slices"
	"time"
)

// queue is the merge queue of a branch.
type queue struct {
	entries []*entry
}

// entry is a pull request in a queue. Its group is the base, all entries before it,
// and itself.
type entry struct {
	id       int64
	pull     *Pull
	by       who
	position int
	branch   string // gh-readonly-queue/…
	base     string
	sha      string
	at       time.Time
}

// enqueue puts a pull request at the end of its queue, or returns why not.
func (s *Server) enqueue(p *Pull, by who, head string, jump bool) (*entry, string) {
	rule := p.repo.rulesOf(p.baseRef).queue
	p.judge()
	switch {
	case rule == nil:
		return nil, "The base branch does not have a merge queue"
	case !p.closed.IsZero():
		return nil, "Pull request is closed"
	case p.draft:
		return nil, "Pull request is a draft"
	case head != "" && head != p.head:
		return nil, "Head branch was modified. Review and try the merge again."
	case p.entry != nil:
		return nil, "Pull request is already in the merge queue"
	case !p.clean:
		return nil, "Pull request has merge conflicts"
	}
	if missing := s.missing(p, nil); len(missing) > 0 {
		return nil, missing[0]
	}
	q := p.repo.queue[p.baseRef]
	if q == nil {
		q = &queue{}
		p.repo.queue[p.baseRef] = q
	}
	e := &entry{id: s.next(), pull: p, by: by, at: s.seconds()}
	if jump {
		q.entries = slices.Insert(q.entries, 0, e)
	} else {
		q.entries = append(q.entries, e)
	}
	p.entry, p.updated = e, s.seconds()
	s.pullEvent(p, "enqueued", by, nil)
	s.build(p.repo, p.baseRef)
	return e, ""
}

// leaveQueue takes a pull request out of its queue. The groups after it are built
// anew.
func (s *Server) leaveQueue(p *Pull, sender *Account, reason, why string) {
	e := p.entry
	if e == nil {
		return
	}
	q := p.repo.queue[p.baseRef]
	s.destroy(e, reason)
	q.entries = slices.DeleteFunc(q.entries, func(o *entry) bool { return o == e })
	p.entry, p.updated = nil, s.seconds()
	s.emit(p.repo, "pull_request", "dequeued", sender, obj{"number": p.Number, "reason": why, "pull_request": s.showPull(p)})
	s.build(p.repo, p.baseRef)
}

// build makes the groups of a queue that are missing or that stand on another base
// than they should.
func (s *Server) build(r *Repo, branch string) {
	q := r.queue[branch]
	rule := r.rulesOf(branch).queue
	if q == nil || rule == nil {
		return
	}
	base := r.head(branch)
	for i := 0; i < len(q.entries) && i < rule.group(); i++ {
		e := q.entries[i]
		e.position = i + 1
		if e.sha != "" && e.base == base {
			base = e.sha
			continue
		}
		s.destroy(e, "invalidated")
		method := map[string]string{"MERGE": "merge", "SQUASH": "squash", "REBASE": "rebase"}[rule.method()]
		sha, ok := r.combine(base, e.pull, method, "", "", s.signature(e.by.account()))
		if !ok {
			s.leaveQueue(e.pull, e.by.account(), "dequeued", "MERGE_CONFLICT")
			return
		}
		e.base, e.sha, e.at = base, sha, s.seconds()
		e.branch = fmt.Sprintf("gh-readonly-queue/%s/pr-%d-%s", branch, e.pull.Number, base)
		if err := r.setRef("refs/heads/"+e.branch, sha, ""); err != nil {
			panic(err)
		}
		s.emit(r, "merge_group", "checks_requested", e.by.account(), obj{"merge_group": s.showGroup(e)})
		base = sha
	}
	for i, e := range q.entries {
		e.position = i + 1
	}
	s.queueMoves(r)
}

func (s *Server) showGroup(e *entry) obj {
	r := e.pull.repo
	return obj{
		"head_sha": e.sha, "head_ref": "refs/heads/" + e.branch, "base_sha": e.base, "base_ref": "refs/heads/" + e.pull.baseRef,
		"head_commit": s.simpleCommit(r, e.sha),
	}
}

// destroy removes the group of an entry and tells why: merged, invalidated, dequeued.
func (s *Server) destroy(e *entry, reason string) {
	if e.sha == "" {
		return
	}
	group := s.showGroup(e)
	if err := e.pull.repo.setRef("refs/heads/"+e.branch, zero, ""); err != nil {
		panic(err)
	}
	e.sha = ""
	s.emit(e.pull.repo, "merge_group", "destroyed", e.by.account(), obj{"merge_group": group, "reason": reason})
}

// queueMoves merges the groups whose checks have passed, from the front, and drops the
// first entry if its checks have failed or take too long.
func (s *Server) queueMoves(r *Repo) {
	for branch, q := range r.queue {
		rule := r.rulesOf(branch)
		if rule.queue == nil || len(q.entries) == 0 || q.entries[0].sha == "" {
			continue
		}
		var good []*entry
		for _, e := range q.entries {
			if e.sha == "" || len(unmet(r, e.sha, rule.checks)) > 0 {
				break
			}
			good = append(good, e)
		}
		if len(good) > 0 {
			s.mergeGroups(r, branch, q, good)
			continue
		}
		first := q.entries[0]
		late := s.now().Sub(first.at) > time.Duration(rule.queue.minutes())*time.Minute
		switch {
		case hasFailed(r, first.sha, rule.checks):
			s.leaveQueue(first.pull, first.by.account(), "dequeued", "CI_FAILURE")
		case late:
			s.leaveQueue(first.pull, first.by.account(), "dequeued", "CI_TIMEOUT")
		}
	}
}

// hasFailed tells whether a required check of a commit has ended badly.
func hasFailed(r *Repo, sha string, checks []Required) bool {
	for _, q := range checks {
		for _, c := range r.latestChecks(sha) {
			if c.name == q.Name && (q.App == nil || q.App == c.suite.app) && c.status == "completed" && !satisfies(c.conclusion) {
				return true
			}
		}
		for _, t := range r.latestStatuses(sha) {
			if t.context == q.Name && q.App == nil && (t.state == "failure" || t.state == "error") {
				return true
			}
		}
	}
	return false
}

// mergeGroups moves the base to the last good group and merges all entries up to it.
func (s *Server) mergeGroups(r *Repo, branch string, q *queue, good []*entry) {
	last := good[len(good)-1]
	m := command{"refs/heads/" + branch, r.head(branch), last.sha}
	q.entries = q.entries[len(good):]
	if err := r.setRef(m.ref, m.new, m.old); err != nil {
		panic(err)
	}
	for _, e := range good {
		sha := e.sha
		s.destroy(e, "merged")
		e.pull.entry = nil
		s.nowMerged(e.pull, e.by, sha)
	}
	s.refMoved(r, last.by, m, 1)
	for _, e := range good {
		s.deleteHead(e.pull, e.by)
	}
	s.build(r, branch)
}
