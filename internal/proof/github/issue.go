package github

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/lazy"
)

var closing = lazy.New(`\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+#(\d+)\b`)

// addIssue makes an issue without telling of it.
func (s *Server) addIssue(r *Repo, by who, title, body string) *Issue {
	r.lastNumber++
	i := &Issue{
		ID: s.next(), Number: r.lastNumber, repo: r, title: title, body: body, author: by.account(), app: by.via(),
		created: s.seconds(), updated: s.seconds(),
	}
	r.issues[i.Number] = i
	return i
}

// issueEvent sends an event of an issue, or of a pull request if it is one.
func (s *Server) issueEvent(i *Issue, action string, by who, more obj) {
	if i.pull != nil {
		s.pullEvent(i.pull, action, by, more)
		return
	}
	payload := obj{"issue": s.showIssue(i)}
	for name, value := range more {
		payload[name] = value
	}
	s.emit(i.repo, "issues", action, by.account(), payload)
}

// issue is the issue of the path, of which the caller has the permission.
func (c *call) issue() *Issue {
	r := c.find(c.params["owner"] + "/" + c.params["repo"])
	i := r.issues[int(c.number("issue_number"))]
	if i == nil {
		c.allowed(r)
		c.notFound()
	}
	c.mayIssue(i)
	if i.deleted {
		c.refuse(http.StatusGone, "This issue was deleted")
	}
	return i
}

func (c *call) listIssues() (int, any) {
	r := c.repo()
	state, since := c.query("state"), c.query("since")
	var all []*Issue
	for _, i := range r.issues {
		switch {
		case i.deleted, (state == "" || state == "open") && !i.closed.IsZero(), state == "closed" && i.closed.IsZero():
		case since != "" && i.updated.Before(parsed(since)):
		case !c.who.has("issues=read") && i.pull == nil && r.private, !c.who.has("pull_requests=read") && i.pull != nil && r.private:
		case !hasLabels(i, c.query("labels")):
		default:
			all = append(all, i)
		}
	}
	order(c, all, func(i *Issue) *Issue { return i })
	return http.StatusOK, each(list(c, all), c.showIssue)
}

func parsed(s string) time.Time {
	t, _ := time.Parse(time.RFC3339, s)
	return t
}

func hasLabels(i *Issue, names string) bool {
	for name := range strings.SplitSeq(names, ",") {
		if name != "" && !slices.ContainsFunc(i.labels, func(l *label) bool { return strings.EqualFold(l.name, name) }) {
			return false
		}
	}
	return true
}

func (c *call) getIssue() (int, any) { return http.StatusOK, c.showIssue(c.issue()) }

func (c *call) createIssue() (int, any) {
	r := c.repo()
	var in struct {
		Title, Body string
		Labels      []any
	}
	c.in(&in)
	switch {
	case strings.TrimSpace(in.Title) == "":
		c.invalid(wrong("Issue", "title", "missing_field"))
	case len([]rune(in.Title)) > 256:
		c.invalid(custom("Issue", "title is too long (maximum is 256 characters)"))
	case len([]rune(in.Body)) > longestBody:
		c.invalid(custom("Issue", "body is too long (maximum is 65536 characters)"))
	}
	i := c.addIssue(r, c.who, in.Title, in.Body)
	for _, name := range c.named(in.Labels) {
		i.labels = append(i.labels, c.label(r, name, c.who))
	}
	c.issueEvent(i, "opened", c.who, nil)
	return http.StatusCreated, c.showIssue(i)
}

func (c *call) patchIssue() (int, any) {
	i := c.issue()
	var in struct {
		Title, Body, State *string
		StateReason        *string `json:"state_reason"`
		Milestone          *int
		Labels             *[]any
		Assignees          *[]string
	}
	c.in(&in)
	c.edit(i, c.who, in.Title, in.Body, obj{})
	if in.Labels != nil {
		c.relabel(i, c.who, c.named(*in.Labels))
	}
	if c.has("milestone") {
		c.setMilestone(i, in.Milestone)
	}
	if in.Assignees != nil {
		i.assignees = nil
		for _, name := range *in.Assignees {
			if a := c.accounts[strings.ToLower(name)]; a != nil {
				i.assignees = append(i.assignees, a)
			}
		}
	}
	if in.State != nil {
		reason := ""
		if in.StateReason != nil {
			reason = *in.StateReason
		}
		c.setState(i, *in.State, reason)
	}
	return http.StatusOK, c.showIssue(i)
}

func (c *call) setMilestone(i *Issue, number *int) {
	former := i.milestone
	i.milestone = nil
	if number != nil {
		for _, m := range i.repo.milestones {
			if m.Number == *number {
				i.milestone = m
			}
		}
		if i.milestone == nil {
			i.milestone = former
			c.invalid(wrong("Issue", "milestone", "invalid"))
		}
	}
	if i.milestone == former {
		return
	}
	i.updated = c.seconds()
	if former != nil {
		c.issueEvent(i, "demilestoned", c.who, obj{"milestone": c.showMilestone(former)})
	}
	if i.milestone != nil {
		c.issueEvent(i, "milestoned", c.who, obj{"milestone": c.showMilestone(i.milestone)})
	}
}

// named reads labels of a body: texts, or objects with a name.
func (c *call) named(in []any) (out []string) {
	for _, one := range in {
		switch v := one.(type) {
		case string:
			out = append(out, v)
		case obj:
			name, _ := v["name"].(string)
			out = append(out, name)
		}
	}
	return out
}

// label returns the repository's label of a name and makes it if there is none, as
// GitHub does when an issue is given one.
func (s *Server) label(r *Repo, name string, by who) *label {
	for _, l := range r.labels {
		if strings.EqualFold(l.name, name) {
			return l
		}
	}
	l := &label{id: s.next(), name: name, color: "ededed"}
	r.labels = append(r.labels, l)
	s.emit(r, "label", "created", by.account(), obj{"label": s.showLabel(r, l)})
	return l
}

// relabel gives an issue exactly some labels, and tells of each that is new or gone.
func (s *Server) relabel(i *Issue, by who, names []string) {
	var next []*label
	for _, name := range names {
		if l := s.label(i.repo, name, by); !slices.Contains(next, l) {
			next = append(next, l)
		}
	}
	former := i.labels
	i.labels = next
	for _, l := range former {
		if !slices.Contains(next, l) {
			i.updated = s.seconds()
			s.issueEvent(i, "unlabeled", by, obj{"label": s.showLabel(i.repo, l)})
		}
	}
	for _, l := range next {
		if !slices.Contains(former, l) {
			i.updated = s.seconds()
			s.issueEvent(i, "labeled", by, obj{"label": s.showLabel(i.repo, l)})
		}
	}
}

func (c *call) showLabels(i *Issue) []obj {
	return each(i.labels, func(l *label) obj { return c.showLabel(i.repo, l) })
}

func (c *call) issueLabels() (int, any) {
	i := c.issue()
	return http.StatusOK, list(c, c.showLabels(i))
}

// labelsIn reads the labels of a body, which may be an object, a list or a text.
func (c *call) labelsIn() []string {
	var in struct{ Labels []any }
	var plain []any
	if len(c.body) > 0 && c.body[0] == '[' {
		c.in(&plain)
		return c.named(plain)
	}
	c.in(&in)
	return c.named(in.Labels)
}

func (c *call) addLabels() (int, any) {
	i := c.issue()
	names := each(i.labels, func(l *label) string { return l.name })
	c.relabel(i, c.who, append(names, c.labelsIn()...))
	return http.StatusOK, c.showLabels(i)
}

func (c *call) setLabels() (int, any) {
	i := c.issue()
	c.relabel(i, c.who, c.labelsIn())
	return http.StatusOK, c.showLabels(i)
}

func (c *call) removeLabel() (int, any) {
	i := c.issue()
	names := each(i.labels, func(l *label) string { return l.name })
	left := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.EqualFold(n, c.params["name"]) })
	if len(left) == len(names) {
		c.refuse(http.StatusNotFound, "Label does not exist")
	}
	c.relabel(i, c.who, left)
	return http.StatusOK, c.showLabels(i)
}

func (c *call) listLabels() (int, any) {
	r := c.repo()
	return http.StatusOK, each(list(c, r.labels), func(l *label) obj { return c.showLabel(r, l) })
}

func (c *call) listComments() (int, any) {
	i := c.issue()
	all := i.sorted()
	if since := c.query("since"); since != "" {
		all = slices.DeleteFunc(all, func(m *comment) bool { return m.updated.Before(parsed(since)) })
	}
	return http.StatusOK, each(list(c, all), c.showComment)
}

func (c *call) bodyIn() string {
	var in struct{ Body string }
	c.in(&in)
	if strings.TrimSpace(in.Body) == "" {
		c.invalid(wrong("IssueComment", "body", "missing_field"))
	}
	if len([]rune(in.Body)) > longestBody {
		c.invalid(custom("IssueComment", "body is too long (maximum is 65536 characters)"))
	}
	return in.Body
}

func (c *call) createComment() (int, any) {
	i := c.issue()
	if i.locked && !atLeast(i.repo.role(c.who.account()), "write") && c.who.inst == nil {
		c.refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	return http.StatusCreated, c.showComment(c.addComment(i, c.who, c.bodyIn()))
}

func (s *Server) addComment(i *Issue, by who, body string) *comment {
	m := &comment{
		id: s.next(), issue: i, author: by.account(), app: by.via(), body: body, created: s.seconds(), updated: s.seconds(),
	}
	i.repo.comments[m.id] = m
	i.updated = s.seconds()
	s.commentOf(m, "created", by, nil)
	return m
}

// commentOf sends an event about a comment of an issue.
func (s *Server) commentOf(m *comment, action string, by who, more obj) {
	payload := obj{"issue": s.showIssue(m.issue), "comment": s.showComment(m)}
	if m.issue.pull != nil {
		payload["pull"] = true
	}
	for name, value := range more {
		payload[name] = value
	}
	s.emit(m.issue.repo, "issue_comment", action, by.account(), payload)
}

// comment is the comment of the path.
func (c *call) comment() *comment {
	r := c.find(c.params["owner"] + "/" + c.params["repo"])
	m := r.comments[c.number("comment_id")]
	if m == nil {
		c.allowed(r)
		c.notFound()
	}
	c.mayIssue(m.issue)
	return m
}

func (c *call) getComment() (int, any) { return http.StatusOK, c.showComment(c.comment()) }

func (c *call) patchComment() (int, any) {
	m := c.comment()
	if m.author != c.who.account() && c.who.inst == nil && !atLeast(m.issue.repo.role(c.who.person), "write") {
		c.refuse(http.StatusForbidden, "Must have write access to edit another's comment.")
	}
	c.editComment(m, c.who, c.bodyIn())
	return http.StatusOK, c.showComment(m)
}

func (s *Server) editComment(m *comment, by who, body string) {
	from := m.body
	m.body, m.updated, m.issue.updated = body, s.seconds(), s.seconds()
	s.commentOf(m, "edited", by, obj{"changes": obj{"body": obj{"from": from}}})
}

func (c *call) deleteComment() (int, any) {
	m := c.comment()
	c.dropComment(m, c.who)
	return http.StatusNoContent, nil
}

func (s *Server) dropComment(m *comment, by who) {
	delete(m.issue.repo.comments, m.id)
	m.issue.updated = s.seconds()
	s.commentOf(m, "deleted", by, nil)
}

func (c *call) listMilestones() (int, any) {
	r := c.repo()
	state := c.query("state")
	all := slices.DeleteFunc(slices.Clone(r.milestones), func(m *Milestone) bool {
		return (state == "" || state == "open") && !m.closed.IsZero() || state == "closed" && m.closed.IsZero()
	})
	return http.StatusOK, each(list(c, all), c.showMilestone)
}

func (c *call) milestone() *Milestone {
	r, n := c.repo(), int(c.number("milestone_number"))
	for _, m := range r.milestones {
		if m.Number == n {
			return m
		}
	}
	c.notFound()
	return nil
}

func (c *call) getMilestone() (int, any) { return http.StatusOK, c.showMilestone(c.milestone()) }

func (c *call) patchMilestone() (int, any) {
	m := c.milestone()
	var in struct {
		Title, State, Description *string
		DueOn                     *time.Time `json:"due_on"`
	}
	c.in(&in)
	changes := obj{}
	if in.Title != nil && *in.Title != m.title {
		if slices.ContainsFunc(m.repo.milestones, func(o *Milestone) bool { return o.title == *in.Title }) {
			c.invalid(wrong("Milestone", "title", "already_exists"))
		}
		changes["title"] = obj{"from": m.title}
		m.title = *in.Title
	}
	if in.Description != nil && *in.Description != m.description {
		changes["description"] = obj{"from": m.description}
		m.description = *in.Description
	}
	if in.DueOn != nil {
		m.due = *in.DueOn
	}
	m.updated = c.seconds()
	if len(changes) > 0 {
		c.emit(m.repo, "milestone", "edited", c.who.account(), obj{"milestone": c.showMilestone(m), "changes": changes})
	}
	if in.State != nil {
		c.closeMilestone(m, *in.State == "closed", c.who)
	}
	return http.StatusOK, c.showMilestone(m)
}

func (s *Server) closeMilestone(m *Milestone, closed bool, by who) {
	if m.closed.IsZero() != closed {
		return
	}
	m.closed, m.updated = zeroTime, s.seconds()
	action := "opened"
	if closed {
		m.closed, action = s.seconds(), "closed"
	}
	s.emit(m.repo, "milestone", action, by.account(), obj{"milestone": s.showMilestone(m)})
}
