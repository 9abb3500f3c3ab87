package github

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What people do with issues and pull requests.

// OpenPull opens a pull request.
func (r *Repo) OpenPull(by *Account, n NewPull) *Pull {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if n.Title == "" {
		n.Title = n.Head
	}
	p, wrong := r.s.openPull(r, as(by), n)
	if wrong != nil {
		panic(fmt.Sprintf("the pull request cannot be opened: %v", wrong))
	}
	return p
}

// Pull returns a pull request, or nil.
func (r *Repo) Pull(number int) *Pull {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if i := r.issues[number]; i != nil {
		return i.pull
	}
	return nil
}

// Issue returns an issue or pull request, or nil.
func (r *Repo) Issue(number int) *Issue {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return r.issues[number]
}

// OpenIssue opens an issue.
func (r *Repo) OpenIssue(by *Account, title, body string, labels ...string) *Issue {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.addIssue(r, as(by), title, body)
	for _, name := range labels {
		i.labels = append(i.labels, s.label(r, name, as(by)))
	}
	s.issueEvent(i, "opened", as(by), nil)
	for _, l := range i.labels {
		s.issueEvent(i, "labeled", as(by), obj{"label": s.showLabel(r, l)})
	}
	return i
}

// do runs a function on an issue with the lock held.
func (i *Issue) do(f func(s *Server)) {
	i.repo.s.mu.Lock()
	defer i.repo.s.mu.Unlock()
	f(i.repo.s)
}

// Edit changes the title and the body.
func (i *Issue) Edit(by *Account, title, body string) {
	i.do(func(s *Server) { s.edit(i, as(by), &title, &body, obj{}) })
}

// Close closes the issue or pull request. Reason is completed or not_planned.
func (i *Issue) Close(by *Account, reason string) {
	i.do(func(s *Server) { s.closeIssue(i, as(by), reason) })
}

// Reopen opens it again.
func (i *Issue) Reopen(by *Account) { i.do(func(s *Server) { s.reopen(i, as(by)) }) }

// Label gives the issue exactly these labels.
func (i *Issue) Label(by *Account, names ...string) {
	i.do(func(s *Server) { s.relabel(i, as(by), names) })
}

// Lock lets only people with write access comment.
func (i *Issue) Lock(locked bool) { i.do(func(*Server) { i.locked = locked }) }

// Delete deletes the issue: it answers 410.
func (i *Issue) Delete(by *Account) {
	i.do(func(s *Server) {
		i.deleted = true
		s.issueEvent(i, "deleted", as(by), nil)
	})
}

// Comment comments, and returns the id of the comment.
func (i *Issue) Comment(by *Account, body string) (id int64) {
	i.do(func(s *Server) { id = s.addComment(i, as(by), body).id })
	return id
}

// EditComment changes a comment of anybody.
func (i *Issue) EditComment(by *Account, id int64, body string) {
	i.do(func(s *Server) { s.editComment(i.repo.comments[id], as(by), body) })
}

// DeleteComment deletes a comment of anybody.
func (i *Issue) DeleteComment(by *Account, id int64) {
	i.do(func(s *Server) { s.dropComment(i.repo.comments[id], as(by)) })
}

// Said is a comment as a test sees it.
type Said struct {
	ID       int64
	By, Body string
	Path     string // of a thread
	Line     int    // in the present head; 0: outdated
	Resolved bool
}

// Comments lists the comments, oldest first; for a pull request without those of
// threads.
func (i *Issue) Comments() (out []Said) {
	i.do(func(*Server) {
		out = each(i.sorted(), func(c *comment) Said { return Said{ID: c.id, By: c.author.Login, Body: c.body} })
	})
	return out
}

// IssueState is an issue or pull request as a test sees it.
type IssueState struct {
	Title, Body, State, Reason string
	Labels                     []string
	Milestone                  string
}

// State returns what the issue is like now.
func (i *Issue) State() (out IssueState) {
	i.do(func(*Server) {
		out = IssueState{Title: i.title, Body: i.body, State: openOr(i.closed.IsZero()), Reason: i.reason}
		out.Labels = each(i.labels, func(l *label) string { return l.name })
		if i.milestone != nil {
			out.Milestone = i.milestone.title
		}
	})
	return out
}

// Head is the present head of the pull request.
func (p *Pull) Head() (sha string) {
	p.do(func(*Server) { sha = p.head })
	return sha
}

// Base is the name of the branch that the pull request is to be merged into.
func (p *Pull) Base() (branch string) {
	p.do(func(*Server) { branch = p.baseRef })
	return branch
}

// Merged returns the commit that the pull request was merged by, or "".
func (p *Pull) Merged() (sha string) {
	p.do(func(*Server) {
		if !p.merged.IsZero() {
			sha = p.mergeSHA
		}
	})
	return sha
}

// Queued tells whether the pull request is in a merge queue.
func (p *Pull) Queued() (in bool) {
	p.do(func(*Server) { in = p.entry != nil })
	return in
}

// Group returns the head of the pull request's merge group, or "".
func (p *Pull) Group() (sha string) {
	p.do(func(*Server) {
		if p.entry != nil {
			sha = p.entry.sha
		}
	})
	return sha
}

// Draft makes the pull request a draft, or ready.
func (p *Pull) Draft(by *Account, draft bool) {
	p.do(func(s *Server) { s.setDraft(p, as(by), draft) })
}

// Retarget gives the pull request another base.
func (p *Pull) Retarget(by *Account, base string) {
	p.do(func(s *Server) { s.retarget(p, as(by), base) })
}

// Request asks a person for a review.
func (p *Pull) Request(by, of *Account) {
	p.do(func(s *Server) {
		if !slices.Contains(p.requested, of) {
			p.requested = append(p.requested, of)
			s.pullEvent(p, "review_requested", as(by), obj{"requested_reviewer": s.showUser(of)})
		}
	})
}

// Review posts a review, or returns why GitHub refuses it.
func (p *Pull) Review(by *Account, n NewReview) (id int64, err error) {
	p.do(func(s *Server) {
		v, why := s.postReview(p, as(by), n)
		if why != nil {
			err = fmt.Errorf("the review is refused: %s", strings.Join(why, "; "))
			return
		}
		id = v.ID
	})
	return id, err
}

// Approve posts an approval of the head.
func (p *Pull) Approve(by *Account) {
	if _, err := p.Review(by, NewReview{Event: "APPROVE"}); err != nil {
		panic(err)
	}
}

// Dismiss dismisses a review.
func (p *Pull) Dismiss(by *Account, review int64) {
	p.do(func(s *Server) {
		for _, v := range p.reviews {
			if v.ID == review {
				s.dismiss(v, as(by))
			}
		}
	})
}

// ReviewState is a review as a test sees it.
type ReviewState struct {
	ID                        int64
	By, State, Body, CommitID string
	Submitted                 time.Time
}

// Reviews lists the reviews, oldest first.
func (p *Pull) Reviews() (out []ReviewState) {
	p.do(func(*Server) {
		out = each(p.reviews, func(v *Review) ReviewState {
			return ReviewState{v.ID, v.author.Login, v.state, v.body, v.commit, v.submitted}
		})
	})
	return out
}

// Threads lists the conversations, by all their comments.
func (p *Pull) Threads() (out [][]Said) {
	p.do(func(*Server) {
		for _, t := range p.threads {
			if t.gone {
				continue
			}
			out = append(out, each(t.comments, func(c *comment) Said {
				return Said{ID: c.id, By: c.author.Login, Body: c.body, Path: t.path, Line: t.now, Resolved: t.resolved}
			}))
		}
	})
	return out
}

// thread finds the thread of a comment.
func (p *Pull) thread(comment1 int64) *Thread {
	for _, t := range p.threads {
		for _, c := range t.comments {
			if c.id == comment1 {
				return t
			}
		}
	}
	panic(fmt.Sprintf("there is no comment %d", comment1))
}

// Answer answers in the thread of a comment.
func (p *Pull) Answer(by *Account, comment int64, body string) (id int64) {
	p.do(func(s *Server) { id = s.answer(p.thread(comment), as(by), body).id })
	return id
}

// Resolve resolves the thread of a comment, or reopens it.
func (p *Pull) Resolve(by *Account, comment int64, resolved bool) {
	p.do(func(s *Server) { s.resolve(p.thread(comment), as(by), resolved) })
}

// DeleteComments deletes all comments of the thread of a comment.
func (p *Pull) DeleteComments(by *Account, comment int64) {
	p.do(func(s *Server) {
		t := p.thread(comment)
		for _, c := range t.comments {
			s.commentEvent(c, "deleted", as(by))
		}
		t.gone = true
	})
}

// Merge merges by hand, without asking for rules, as an administrator may.
func (p *Pull) Merge(by *Account, method string) (sha string) {
	p.do(func(s *Server) {
		rules, protections := p.repo.rulesets, p.repo.protections
		p.repo.rulesets, p.repo.protections = nil, map[string]*Protection{}
		defer func() { p.repo.rulesets, p.repo.protections = rules, protections }()
		var why string
		var status int
		if sha, status, why = s.merge(p, as(by), "", method, "", ""); status != 0 {
			panic(fmt.Sprintf("the pull request cannot be merged: %s", why))
		}
	})
	return sha
}

// Enqueue puts the pull request into its queue by hand.
func (p *Pull) Enqueue(by *Account) {
	p.do(func(s *Server) {
		if _, why := s.enqueue(p, as(by), "", false); why != "" {
			panic("the pull request cannot be queued: " + why)
		}
	})
}

// Dequeue takes the pull request out of its queue by hand.
func (p *Pull) Dequeue(by *Account) {
	p.do(func(s *Server) { s.leaveQueue(p, by, "dequeued", "MANUAL") })
}

// NewMilestone makes a milestone.
func (r *Repo) NewMilestone(by *Account, title string) *Milestone {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &Milestone{
		ID: s.next(), Number: len(r.milestones) + 1, repo: r, title: title, created: s.seconds(), updated: s.seconds(), creator: by,
	}
	r.milestones = append(r.milestones, m)
	s.emit(r, "milestone", "created", by, obj{"milestone": s.showMilestone(m)})
	return m
}

// Close closes the milestone, or opens it.
func (m *Milestone) Close(by *Account, closed bool) {
	m.repo.s.mu.Lock()
	defer m.repo.s.mu.Unlock()
	m.repo.s.closeMilestone(m, closed, as(by))
}

// Add puts an issue into the milestone.
func (m *Milestone) Add(by *Account, i *Issue) {
	i.do(func(s *Server) {
		i.milestone, i.updated = m, s.seconds()
		s.issueEvent(i, "milestoned", as(by), obj{"milestone": s.showMilestone(m)})
	})
}
