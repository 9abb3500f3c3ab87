package github

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func (c *call) listReviews() (int, any) {
	p := c.pull()
	seen := slices.DeleteFunc(slices.Clone(p.reviews), func(v *Review) bool { return v.state == "PENDING" && v.author != c.who.account() })
	return http.StatusOK, each(list(c, seen), c.showReview)
}

// review is the review of the path.
func (c *call) review() *Review {
	p, n := c.pull(), c.number("review_id")
	for _, v := range p.reviews {
		if v.ID == n {
			return v
		}
	}
	c.notFound()
	return nil
}

func (c *call) getReview() (int, any) { return http.StatusOK, c.showReview(c.review()) }

func (c *call) reviewComments() (int, any) {
	v := c.review()
	all := slices.DeleteFunc(v.pull.comments(), func(m *comment) bool { return m.review != v })
	return http.StatusOK, each(list(c, all), c.showReviewComment)
}

// comments lists what was said in the threads, oldest first.
func (p *Pull) comments() (out []*comment) {
	for _, t := range p.threads {
		if !t.gone {
			out = append(out, t.comments...)
		}
	}
	slices.SortFunc(out, func(a, b *comment) int { return int(a.id - b.id) })
	return out
}

// NewReview is a review that is to be posted.
type NewReview struct {
	Event    string       `json:"event"` // APPROVE, REQUEST_CHANGES, COMMENT; empty: it stays pending
	Body     string       `json:"body"`
	CommitID string       `json:"commit_id"` // empty: the head
	Comments []NewComment `json:"comments"`
}

// NewComment is a comment at a line of a diff.
type NewComment struct {
	Path        string `json:"path"`
	Body        string `json:"body"`
	Line        int    `json:"line"`
	Side        string `json:"side"` // RIGHT (the default) or LEFT
	StartLine   int    `json:"start_line"`
	StartSide   string `json:"start_side"`
	Position    int    `json:"position"`     // in the diff, instead of a line
	SubjectType string `json:"subject_type"` // file: only for single comments
	CommitID    string `json:"commit_id"`
	InReplyTo   int64  `json:"in_reply_to"`
}

func (c *call) createReview() (int, any) {
	p := c.pull()
	var in NewReview
	c.in(&in)
	v, why := c.postReview(p, c.who, in)
	if why != nil {
		c.invalidTexts(why...)
	}
	return http.StatusOK, c.showReview(v)
}

// postReview posts a review whole, or returns why GitHub refuses all of it.
func (s *Server) postReview(p *Pull, by who, in NewReview) (*Review, []string) {
	author := by.account()
	states := map[string]string{"": "PENDING", "APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}
	state, known := states[in.Event]
	if in.CommitID == "" {
		in.CommitID = p.head
	}
	switch {
	case !known:
		return nil, []string{"Variable $event of type PullRequestReviewEvent was provided invalid value"}
	case author == p.author && in.Event == "APPROVE":
		return nil, []string{"Can not approve your own pull request"}
	case author == p.author && in.Event == "REQUEST_CHANGES":
		return nil, []string{"Can not request changes on your own pull request"}
	case in.Body == "" && (in.Event == "REQUEST_CHANGES" || in.Event == "COMMENT" && len(in.Comments) == 0):
		return nil, []string{"Body can't be blank"}
	case len(in.Body) > longestBody:
		return nil, []string{"Body is too long (maximum is 65536 characters)"}
	case !p.has(in.CommitID):
		return nil, []string{"The commit_id is not part of the pull request"}
	case state != "PENDING" && slices.ContainsFunc(p.reviews, func(v *Review) bool { return v.author == author && v.state == "PENDING" }):
		return nil, []string{"User can only have one pending review per pull request"}
	}
	var threads []*Thread
	for _, one := range in.Comments {
		if one.SubjectType == "file" {
			return nil, []string{"Pull request review thread subject type is not included in the list"}
		}
		t, why := p.place(one, in.CommitID)
		if why != "" {
			if s.o.OrphanReviews && in.Body != "" {
				v := &Review{ID: s.next(), pull: p, author: author, body: in.Body, state: state, commit: in.CommitID, original: in.CommitID}
				p.reviews = append(p.reviews, v)
				s.submit(v, by)
			}
			return nil, []string{why}
		}
		threads = append(threads, t)
	}
	v := &Review{ID: s.next(), pull: p, author: author, body: in.Body, state: state, commit: in.CommitID, original: in.CommitID}
	v.patch = p.change(in.CommitID)
	p.reviews = append(p.reviews, v)
	for i, t := range threads {
		s.say(t, v, by, in.Comments[i].Body, in.CommitID)
	}
	if state != "PENDING" {
		s.submit(v, by)
	}
	return v, nil
}

// submit makes a review public.
func (s *Server) submit(v *Review, by who) {
	p := v.pull
	v.submitted, p.updated = s.seconds(), s.seconds()
	if at := slices.Index(p.requested, v.author); at >= 0 {
		p.requested = slices.Delete(p.requested, at, at+1)
	}
	s.emit(p.repo, "pull_request_review", "submitted", v.author, obj{"review": s.hookReview(v), "pull_request": s.simplePull(p)})
	for _, m := range p.comments() {
		if m.review == v {
			s.commentEvent(m, "created", by)
		}
	}
}

// commentEvent sends an event about a comment in a thread.
func (s *Server) commentEvent(m *comment, action string, by who) {
	p := m.thread.pull
	s.emit(p.repo, "pull_request_review_comment", action, by.account(), obj{
		"comment": s.showReviewComment(m), "pull_request": s.simplePull(p),
	})
}

// has tells whether a commit is one of the pull request's.
func (p *Pull) has(sha string) bool {
	return sha == p.head || p.repo.resolve(sha) == sha && (p.repo.contains(p.head, sha) && !p.repo.contains(p.base, sha))
}

// change names what a pull request changes as of a head.
func (p *Pull) change(head string) string {
	return p.repo.patchID(p.repo.mergeBase(p.base, head), head)
}

// place finds the lines of a comment in the diff as of a commit, by GitHub's rules:
// every line must be in a hunk, a range in one hunk, and it starts before it ends.
func (p *Pull) place(n NewComment, head string) (*Thread, string) {
	t := &Thread{pull: p, path: n.Path, side: n.Side, line: n.Line, startLine: n.StartLine, startSide: n.StartSide}
	if t.side == "" {
		t.side = "RIGHT"
	}
	files := p.filesAt(head)
	at1 := slices.IndexFunc(files, func(f change) bool { return f.path == n.Path })
	switch {
	case len(n.Body) > longestBody:
		return nil, "Body is too long (maximum is 65536 characters)"
	case n.Body == "":
		return nil, "Body can't be blank"
	case at1 < 0:
		return nil, "Path could not be resolved"
	case t.side != "RIGHT" && t.side != "LEFT":
		return nil, "Side is not included in the list"
	case n.SubjectType == "file":
		t.file, t.position = true, 1
		return t, ""
	}
	all := hunks(files[at1].patch)
	if n.Line == 0 && n.Position > 0 {
		side, line, ok := at(all, n.Position)
		if !ok {
			return nil, "Position could not be resolved"
		}
		t.side, t.line = side, line
	}
	end, ok := find(all, t.side, t.line)
	if !ok {
		return nil, "Line could not be resolved"
	}
	if t.startLine != 0 {
		if t.startSide == "" {
			t.startSide = t.side
		}
		start, ok := find(all, t.startSide, t.startLine)
		switch {
		case !ok:
			return nil, "Start line could not be resolved"
		case start.hunk != end.hunk:
			return nil, "Pull request review thread start line must be part of the same hunk as the line."
		case start.at >= end.at:
			return nil, "Pull request review thread start line must precede the end line."
		}
	}
	t.position, t.hunk = end.position, excerpt(all[end.hunk], end.at)
	t.now, t.startNow = t.line, t.startLine
	return t, ""
}

// say adds a comment to a thread, and the thread to the pull request if it is new.
func (s *Server) say(t *Thread, v *Review, by who, body, commit string) *comment {
	if t.id == 0 {
		t.id = s.next()
		t.pull.threads = append(t.pull.threads, t)
	}
	m := &comment{
		id: s.next(), thread: t, review: v, author: by.account(), app: by.via(), body: body,
		created: s.seconds(), updated: s.seconds(), commit: commit, original: commit,
	}
	if len(t.comments) > 0 {
		m.reply = t.comments[0].id
	}
	t.comments = append(t.comments, m)
	t.pull.updated = s.seconds()
	return m
}

func (c *call) pullComments() (int, any) {
	p := c.pull()
	all := p.comments()
	if c.query("direction") == "desc" {
		slices.Reverse(all)
	}
	if since := c.query("since"); since != "" {
		all = slices.DeleteFunc(all, func(m *comment) bool { return fmt.Sprint(stamp(m.updated)) < since })
	}
	return http.StatusOK, each(list(c, all), c.showReviewComment)
}

func (c *call) createPullComment() (int, any) {
	p := c.pull()
	var in NewComment
	c.in(&in)
	if in.InReplyTo != 0 {
		return c.replyTo(p, in.InReplyTo, in.Body)
	}
	if !p.has(in.CommitID) {
		c.invalid(wrong("PullRequestReviewComment", "commit_id", "invalid"))
	}
	t, why := p.place(in, in.CommitID)
	if why != "" {
		panic(&problem{status: http.StatusUnprocessableEntity, body: obj{
			"message": "Validation Failed", "documentation_url": manual, "status": "422",
			"errors": []obj{{
				"resource": "PullRequestReviewComment", "code": "custom", "field": "pull_request_review_thread.line",
				"message": "pull_request_review_thread.line must be part of the diff: " + why,
			}},
		}})
	}
	v := &Review{ID: c.next(), pull: p, author: c.who.account(), state: "COMMENTED", commit: in.CommitID, original: in.CommitID}
	p.reviews = append(p.reviews, v)
	m := c.say(t, v, c.who, in.Body, in.CommitID)
	c.submit(v, c.who)
	return http.StatusCreated, c.showReviewComment(m)
}

func (c *call) reply() (int, any) {
	var in struct{ Body string }
	c.in(&in)
	return c.replyTo(c.pull(), c.number("comment_id"), in.Body)
}

func (c *call) replyTo(p *Pull, to int64, body string) (int, any) {
	if body == "" || len(body) > longestBody {
		c.invalid(custom("PullRequestReviewComment", "body is missing or too long (maximum is 65536 characters)"))
	}
	for _, t := range p.threads {
		if t.gone || t.comments[0].id != to {
			continue
		}
		return http.StatusCreated, c.showReviewComment(c.answer(t, c.who, body))
	}
	c.notFound()
	return 0, nil
}

// answer says something in a thread, which is a review of its own.
func (s *Server) answer(t *Thread, by who, body string) *comment {
	p := t.pull
	v := &Review{ID: s.next(), pull: p, author: by.account(), state: "COMMENTED", commit: p.head, original: p.head}
	p.reviews = append(p.reviews, v)
	m := s.say(t, v, by, body, p.head)
	s.submit(v, by)
	return m
}

func (c *call) getPullComment() (int, any) {
	r, n := c.repo(), c.number("comment_id")
	for _, p := range r.pulls() {
		for _, m := range p.comments() {
			if m.id == n {
				return http.StatusOK, c.showReviewComment(m)
			}
		}
	}
	c.notFound()
	return 0, nil
}

// repoint does what GitHub does to reviews when a head has moved: the commit of every
// comment in a thread is the new head, also that of an approval whose patch stayed the
// same; lines move along or are outdated.
func (s *Server) repoint(p *Pull, former string) {
	same := p.change(p.head)
	for _, v := range p.reviews {
		if v.state == "APPROVED" && v.patch == same {
			v.commit = p.head
		}
	}
	files := p.files()
	for _, t := range p.threads {
		for _, m := range t.comments {
			m.commit = p.head
		}
		if t.file || t.now == 0 {
			continue
		}
		from, to := former, p.head
		if t.side == "LEFT" {
			from, to = p.repo.mergeBase(p.base, former), p.repo.mergeBase(p.base, p.head)
		}
		move := func(line int) int {
			if line == 0 {
				return 0
			}
			line = p.repo.carry(from, to, t.path, line)
			at := slices.IndexFunc(files, func(f change) bool { return f.path == t.path })
			if at < 0 {
				return 0
			}
			if _, there := find(hunks(files[at].patch), t.side, line); !there {
				return 0
			}
			return line
		}
		t.now, t.startNow = move(t.now), move(t.startNow)
	}
	s.dismissStale(p, same)
}

// dismissStale dismisses approvals where a rule says so and the change is another.
func (s *Server) dismissStale(p *Pull, same string) {
	if !p.repo.rulesOf(p.baseRef).dismissStale {
		return
	}
	for _, v := range p.reviews {
		if v.state == "APPROVED" && v.patch != same {
			s.dismiss(v, who{person: p.author})
		}
	}
}

func (s *Server) dismiss(v *Review, by who) {
	v.state = "DISMISSED"
	s.emit(v.pull.repo, "pull_request_review", "dismissed", by.account(), obj{
		"review": s.hookReview(v), "pull_request": s.simplePull(v.pull),
	})
}

// approvals are the people with write access whose last verdict is an approval, and
// those who ask for changes.
func (p *Pull) approvals() (yes, no []*Account) {
	last := map[*Account]string{}
	for _, v := range p.reviews {
		if v.state == "APPROVED" || v.state == "CHANGES_REQUESTED" || v.state == "DISMISSED" {
			last[v.author] = v.state
		}
	}
	for a, state := range last {
		if !atLeast(p.repo.role(a), "write") {
			continue
		}
		switch state {
		case "APPROVED":
			yes = append(yes, a)
		case "CHANGES_REQUESTED":
			no = append(no, a)
		}
	}
	return yes, no
}

// resolve ends or reopens a conversation.
func (s *Server) resolve(t *Thread, by who, resolved bool) {
	if t.resolved == resolved {
		return
	}
	t.resolved, t.resolvedBy = resolved, nil
	action := "unresolved"
	if resolved {
		t.resolvedBy, action = by.account(), "resolved"
	}
	s.emit(t.pull.repo, "pull_request_review_thread", action, by.account(), obj{
		"pull_request": s.simplePull(t.pull),
		"thread":       obj{"node_id": nodeID("PRRT", t.id), "comments": each(t.comments, s.showReviewComment)},
	})
}

// closes are the numbers of the issues that a text says it closes.
func closes(text string) (out []int) {
	for _, m := range closing.FindAllStringSubmatch(strings.ToLower(text), -1) {
		out = append(out, number(m[1], 0))
	}
	return out
}
