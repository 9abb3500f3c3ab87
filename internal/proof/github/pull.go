package github

import (
	"net/http"
	"slices"
	"strings"
)

// longestBody is how many characters GitHub takes for a body.
const longestBody = 65536

// mayIssue ends the call unless the caller may read or write an issue: for a pull
// request one of two permissions is enough.
func (c *call) mayIssue(i *Issue) {
	level := "=read"
	if c.r.Method != http.MethodGet {
		level = "=write"
	}
	if i.pull != nil {
		c.may(i.repo, "issues"+level+"|pull_requests"+level)
		return
	}
	c.may(i.repo, "issues"+level)
}

// pull is the pull request of the path.
func (c *call) pull() *Pull {
	r := c.repo()
	i := r.issues[int(c.number("pull_number"))]
	if i == nil || i.pull == nil || i.deleted {
		c.notFound()
	}
	return i.pull
}

func (c *call) listPulls() (int, any) {
	r := c.repo()
	state, head, base := c.query("state"), c.query("head"), c.query("base")
	all := slices.DeleteFunc(r.pulls(), func(p *Pull) bool {
		label := p.headRef
		if p.headOwner != nil {
			label = p.headOwner.Login + ":" + p.headRef
		}
		return (state == "" || state == "open") && !p.closed.IsZero() || state == "closed" && p.closed.IsZero() ||
			head != "" && strings.Contains(head, ":") && !strings.EqualFold(head, label) || base != "" && base != p.baseRef
	})
	order(c, all, func(p *Pull) *Issue { return p.Issue })
	return http.StatusOK, each(list(c, all), c.simplePull)
}

// order sorts by what the caller asks for. Newest is first unless the caller says
// otherwise, or wants pull requests by another time than that of their creation.
func order[T any](c *call, all []T, issue func(T) *Issue) {
	by, up := c.query("sort"), c.query("direction") == "asc"
	if c.query("direction") == "" && strings.HasSuffix(c.route.operation, "/pulls") {
		up = by != "" && by != "created"
	}
	slices.SortStableFunc(all, func(a, b T) int {
		x, y := issue(a), issue(b)
		n := x.created.Compare(y.created)
		if by == "updated" {
			n = x.updated.Compare(y.updated)
		}
		if n == 0 {
			n = x.Number - y.Number
		}
		if !up {
			n = -n
		}
		return n
	})
}

// NewPull is what a pull request is opened with.
type NewPull struct {
	Title, Body string
	Head        string // a branch, or "owner:branch" of a fork
	Base        string // empty: the default branch
	Draft       bool
	Maintainer  bool  // maintainers may push to the fork's branch
	HeadRepo    *Repo // of Head; nil: found by the owner
}

func (c *call) createPull() (int, any) {
	r := c.repo()
	var in struct {
		Title, Head, Base, Body string
		HeadRepo                string `json:"head_repo"`
		Draft                   bool
		Maintainer              *bool `json:"maintainer_can_modify"`
		Issue                   int
	}
	c.in(&in)
	if in.Title == "" && in.Issue == 0 {
		c.invalid(wrong("PullRequest", "title", "missing_field"))
	}
	if len(in.Body) > longestBody {
		c.invalid(custom("PullRequest", "body is too long (maximum is 65536 characters)"))
	}
	n := NewPull{Title: in.Title, Body: in.Body, Head: in.Head, Base: in.Base, Draft: in.Draft}
	n.Maintainer = in.Maintainer == nil || *in.Maintainer
	if in.HeadRepo != "" {
		n.HeadRepo = c.byName(in.HeadRepo)
	}
	p, wrong := c.openPull(r, c.who, n)
	if wrong != nil {
		c.invalid(wrong)
	}
	return http.StatusCreated, c.showPull(p)
}

// openPull opens a pull request, or returns the error that GitHub answers.
func (s *Server) openPull(r *Repo, by who, n NewPull) (*Pull, obj) {
	if n.Base == "" {
		n.Base = r.branch
	}
	from, branch := n.HeadRepo, n.Head
	if owner, name, ok := strings.Cut(n.Head, ":"); ok {
		branch = name
		for _, other := range s.repos {
			if from == nil && strings.EqualFold(other.owner.Login, owner) && (other == r || other.fork == r) {
				from = other
			}
		}
	} else if from == nil {
		from = r
	}
	base := r.head(n.Base)
	if base == "" {
		return nil, wrong("PullRequest", "base", "invalid")
	}
	if from == nil || from.head(branch) == "" {
		return nil, wrong("PullRequest", "head", "invalid")
	}
	for _, p := range r.pulls() {
		if p.closed.IsZero() && p.headRepo == from && p.headRef == branch && p.baseRef == n.Base {
			return nil, custom("PullRequest", "A pull request already exists for "+from.owner.Login+":"+branch+".")
		}
	}
	head := from.head(branch)
	if from != r {
		r.must("fetch", "--quiet", from.dir, head)
	}
	if r.contains(base, head) {
		return nil, custom("PullRequest", "No commits between "+n.Base+" and "+branch)
	}
	if r.mergeBase(base, head) == "" {
		return nil, custom("PullRequest", "The "+branch+" branch has no history in common with "+n.Base)
	}
	i := s.addIssue(r, by, n.Title, n.Body)
	p := &Pull{Issue: i, headRepo: from, headOwner: from.owner, headRef: branch, baseRef: n.Base, draft: n.Draft}
	p.maintainer = n.Maintainer && from != r
	i.pull = p
	s.fetchHead(p, head)
	s.pullEvent(p, "opened", by, nil)
	return p, nil
}

// pullEvent sends an event of a pull request.
func (s *Server) pullEvent(p *Pull, action string, by who, more obj) {
	payload := obj{"number": p.Number, "pull_request": s.showPull(p)}
	for name, value := range more {
		payload[name] = value
	}
	s.emit(p.repo, "pull_request", action, by.account(), payload)
}

func (c *call) getPull() (int, any) {
	p := c.pull()
	p.look()
	return http.StatusOK, c.showPull(p)
}

func (c *call) patchPull() (int, any) {
	p := c.pull()
	var in struct {
		Title, Body, State, Base *string
		Maintainer               *bool `json:"maintainer_can_modify"`
	}
	c.in(&in)
	if in.Body != nil && len(*in.Body) > longestBody {
		c.invalid(custom("PullRequest", "body is too long (maximum is 65536 characters)"))
	}
	if in.Base != nil && *in.Base != p.baseRef {
		if !p.closed.IsZero() {
			c.invalid(custom("PullRequest", "Cannot change the base branch of a closed pull request."))
		}
		if p.repo.head(*in.Base) == "" {
			c.invalid(wrong("PullRequest", "base", "invalid"))
		}
		c.retarget(p, c.who, *in.Base)
	}
	if in.Maintainer != nil {
		p.maintainer = *in.Maintainer
	}
	c.edit(p.Issue, c.who, in.Title, in.Body, obj{})
	if in.State != nil {
		c.setState(p.Issue, *in.State, "")
	}
	return http.StatusOK, c.showPull(p)
}

// edit changes the title and body of an issue, and tells of it if anything changed.
func (s *Server) edit(i *Issue, by who, title, body *string, changes obj) {
	if title != nil && *title != i.title {
		changes["title"] = obj{"from": i.title}
		i.title = *title
	}
	if body != nil && *body != i.body {
		changes["body"] = obj{"from": i.body}
		i.body = *body
	}
	if len(changes) == 0 {
		return
	}
	i.updated = s.seconds()
	s.issueEvent(i, "edited", by, obj{"changes": changes})
}

// setState opens or closes an issue as the caller asks.
func (c *call) setState(i *Issue, state, reason string) {
	switch state {
	case "closed":
		if i.closed.IsZero() {
			c.closeIssue(i, c.who, reason)
		}
	case "open":
		if i.closed.IsZero() {
			return
		}
		if p := i.pull; p != nil && (!p.merged.IsZero() || p.headRepo == nil || p.headRepo.head(p.headRef) == "") {
			c.invalid(custom("PullRequest", "state cannot be changed. The "+p.headRef+" branch has been deleted."))
		}
		if p := i.pull; p != nil && !p.headRepo.contains(p.headRepo.head(p.headRef), p.head) {
			c.invalid(custom("PullRequest", "state cannot be changed. The "+p.headRef+" branch was force-pushed or recreated."))
		}
		c.reopen(i, c.who)
	default:
		c.invalid(wrong("Issue", "state", "invalid"))
	}
}

func (s *Server) reopen(i *Issue, by who) {
	i.closed, i.closedBy, i.updated = zeroTime, nil, s.seconds()
	i.reason = "reopened"
	if p := i.pull; p != nil {
		i.reason = ""
		s.fetchHead(p, p.headRepo.head(p.headRef))
	}
	s.issueEvent(i, "reopened", by, nil)
}

// closeIssue closes an issue or pull request.
func (s *Server) closeIssue(i *Issue, by who, reason string) {
	i.closed, i.updated, i.closedBy = s.seconds(), s.seconds(), by.account()
	if i.pull == nil {
		if i.reason = reason; reason == "" {
			i.reason = "completed"
		}
	} else if i.pull.entry != nil {
		s.leaveQueue(i.pull, by.account(), "dequeued", "UNKNOWN_REMOVAL_REASON")
	}
	s.issueEvent(i, "closed", by, nil)
}

func (c *call) pullFiles() (int, any) {
	p := c.pull()
	files := p.files()
	files = files[:min(len(files), c.o.MaxFiles)]
	return http.StatusOK, each(list(c, files), func(f change) obj { return c.showFile(p.repo, p.head, f) })
}

// files lists what a pull request changes.
func (p *Pull) files() []change { return p.filesAt(p.head) }

func (p *Pull) filesAt(head string) []change {
	middle := p.repo.mergeBase(p.base, head)
	if middle == "" {
		return nil
	}
	return p.repo.diff(middle, head)
}

// pullCommits lists the commits, of which GitHub shows 250.
func (c *call) pullCommits() (int, any) {
	p := c.pull()
	all := p.repo.commits(p.base + ".." + p.head)
	all = all[:min(len(all), 250)]
	return http.StatusOK, each(list(c, all), func(sha string) obj { return c.showCommit(p.repo, sha) })
}

func (c *call) listRequested() (int, any) {
	return http.StatusOK, obj{"users": each(c.pull().requested, c.showUser), "teams": []obj{}}
}

func (c *call) reviewers() []*Account {
	var in struct{ Reviewers []string }
	c.in(&in)
	var out []*Account
	for _, name := range in.Reviewers {
		a := c.accounts[strings.ToLower(name)]
		if a == nil || c.pull().repo.role(a) == "" {
			c.refuse(http.StatusUnprocessableEntity, "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the %s repository.", c.pull().repo.full())
		}
		out = append(out, a)
	}
	return out
}

func (c *call) request() (int, any) {
	p := c.pull()
	for _, a := range c.reviewers() {
		if a == p.author {
			c.refuse(http.StatusUnprocessableEntity, "Review cannot be requested from pull request author.")
		}
		if !slices.Contains(p.requested, a) {
			p.requested = append(p.requested, a)
			p.updated = c.seconds()
			c.pullEvent(p, "review_requested", c.who, obj{"requested_reviewer": c.showUser(a)})
		}
	}
	return http.StatusCreated, c.simplePull(p)
}

func (c *call) unrequest() (int, any) {
	p := c.pull()
	for _, a := range c.reviewers() {
		if at := slices.Index(p.requested, a); at >= 0 {
			p.requested = slices.Delete(p.requested, at, at+1)
			p.updated = c.seconds()
			c.pullEvent(p, "review_request_removed", c.who, obj{"requested_reviewer": c.showUser(a)})
		}
	}
	return http.StatusOK, c.simplePull(p)
}
