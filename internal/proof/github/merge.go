package github

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

var zeroTime time.Time

// forgetMergeable is called when a head or base has moved.
func (p *Pull) forgetMergeable() { p.judged, p.reads, p.test = false, 0, "" }

// look is called for every read of a pull request: GitHub finds out in the background
// whether it can be merged, and says so at a later read.
func (p *Pull) look() {
	if p.judged || !p.closed.IsZero() {
		return
	}
	if p.reads++; p.reads > p.repo.s.o.MergeableAfter {
		p.judge()
	}
}

// judge tries the merge.
func (p *Pull) judge() {
	if p.judged {
		return
	}
	r := p.repo
	base := r.head(p.baseRef)
	if base == "" {
		return
	}
	tree, clean := r.mergeTree(base, p.head)
	p.judged, p.clean = true, clean
	if !clean {
		return
	}
	sha, err := r.write(tree, fmt.Sprintf("Merge %s into %s", p.head, base), r.s.committer(), r.s.committer(), base, p.head)
	if err != nil {
		panic(err)
	}
	if err := r.setRef(fmt.Sprintf("refs/pull/%d/merge", p.Number), sha, ""); err != nil {
		panic(err)
	}
	p.test = sha
}

// mergeable tells whether it is known that the pull request can be merged, and
// whether it can.
func (p *Pull) mergeable() (known, clean bool) {
	if p.repo.s.o.MergeableAfter == 0 && p.closed.IsZero() {
		p.judge()
	}
	return p.judged && p.closed.IsZero(), p.clean
}

// mergeableState is GitHub's advice.
func (s *Server) mergeableState(p *Pull, known, clean bool) string {
	switch {
	case !p.closed.IsZero() || !known:
		return "unknown"
	case !clean:
		return "dirty"
	case p.draft:
		return "draft"
	case s.behind(p):
		return "behind"
	case len(s.missing(p, nil)) > 0:
		return "blocked"
	case s.failing(p):
		return "unstable"
	}
	return "clean"
}

// failing tells whether a check that nobody requires is not well.
func (s *Server) failing(p *Pull) bool {
	for _, c := range p.repo.latestChecks(p.head) {
		if c.status != "completed" || !satisfies(c.conclusion) {
			return true
		}
	}
	for _, t := range p.repo.latestStatuses(p.head) {
		if t.state != "success" {
			return true
		}
	}
	return false
}

func (c *call) isMerged() (int, any) {
	if c.pull().merged.IsZero() {
		c.notFound()
	}
	return http.StatusNoContent, nil
}

// mergePull merges if the head is still the given one and all rules are met.
func (c *call) mergePull() (int, any) {
	p := c.pull()
	var in struct {
		SHA     string
		Title   string `json:"commit_title"`
		Message string `json:"commit_message"`
		Method  string `json:"merge_method"`
	}
	c.in(&in)
	if in.Method == "" {
		in.Method = "merge"
	}
	sha, status, why := c.merge(p, c.who, in.SHA, in.Method, in.Title, in.Message)
	if status != 0 {
		c.refuse(status, "%s", why)
	}
	return http.StatusOK, obj{"sha": sha, "merged": true, "message": "Pull Request successfully merged"}
}

// notAllowed is what GitHub says of methods that a repository or a rule forbids.
var notAllowed = map[string]string{
	"merge":  "Merge commits are not allowed on this repository.",
	"squash": "Squash merges are not allowed on this repository.",
	"rebase": "Rebase merges are not allowed on this repository.",
}

// merge merges a pull request, or returns the status and message of GitHub's refusal.
func (s *Server) merge(p *Pull, by who, sha, method, title, message string) (merged string, status int, why string) {
	r := p.repo
	switch {
	case notAllowed[method] == "":
		return "", http.StatusUnprocessableEntity, "Invalid merge method: " + method
	case !r.methods[method], r.rulesOf(p.baseRef).forbidden[method]:
		return "", http.StatusMethodNotAllowed, notAllowed[method]
	case !p.closed.IsZero():
		return "", http.StatusMethodNotAllowed, "Pull Request is not mergeable"
	case p.draft:
		return "", http.StatusMethodNotAllowed, "Pull Request is still a draft"
	case sha != "" && sha != p.head:
		return "", http.StatusConflict, "Head branch was modified. Review and try the merge again."
	}
	if by.token != nil && !by.has("workflows=write") {
		for _, f := range p.files() {
			if strings.HasPrefix(f.path, ".github/workflows/") || strings.HasPrefix(f.old, ".github/workflows/") {
				return "", http.StatusForbidden, workflowRefusal(by, f.path)
			}
		}
	}
	if missing := s.missing(p, &by); len(missing) > 0 {
		return "", http.StatusMethodNotAllowed, missing[0]
	}
	base := r.head(p.baseRef)
	commit, ok := r.combine(base, p, method, title, message, s.signature(by.account()))
	if !ok {
		return "", http.StatusMethodNotAllowed, "Pull Request is not mergeable"
	}
	m := command{"refs/heads/" + p.baseRef, base, commit}
	if err := r.setRef(m.ref, m.new, m.old); err != nil {
		return "", http.StatusConflict, "Base branch was modified. Review and try the merge again."
	}
	s.nowMerged(p, by, commit)
	s.refMoved(r, by, m, 1)
	s.deleteHead(p, by)
	return commit, 0, ""
}

// deleteHead deletes the branch of a merged pull request if the repository says so.
func (s *Server) deleteHead(p *Pull, by who) {
	if r := p.headRepo; r == p.repo && r.deleteHeads && r.head(p.headRef) != "" {
		m := command{"refs/heads/" + p.headRef, p.head, zero}
		if r.setRef(m.ref, zero, m.old) == nil {
			s.refMoved(r, by, m, 1)
		}
	}
}

// combine makes the commits of a merge on a base, without moving the branch. It
// returns the last one, or false if there is a conflict.
func (r *Repo) combine(base string, p *Pull, method, title, message string, by signature) (string, bool) {
	s := r.s
	switch method {
	case "rebase":
		tip := base
		for _, sha := range r.commits(base + ".." + p.head) {
			c := r.show(sha)
			if len(c.parents) != 1 {
				return "", false
			}
			tree, clean := r.pick(tip, sha)
			if !clean {
				return "", false
			}
			next, err := r.write(tree, c.message, c.author, by, tip)
			if err != nil {
				return "", false
			}
			tip = next
		}
		return tip, true
	case "squash":
		if title == "" {
			title = fmt.Sprintf("%s (#%d)", p.title, p.Number)
		}
		if message == "" {
			for _, sha := range r.commits(base + ".." + p.head) {
				message += "* " + r.show(sha).message + "\n\n"
			}
		}
	default:
		if title == "" {
			title = fmt.Sprintf("Merge pull request #%d from %s/%s", p.Number, p.headOwner.Login, p.headRef)
		}
		if message == "" {
			message = p.title
		}
	}
	tree, clean := r.mergeTree(base, p.head)
	if !clean {
		return "", false
	}
	parents := []string{base, p.head}
	author := by
	if method == "squash" {
		parents = parents[:1]
		author = s.signature(p.author)
	}
	sha, err := r.write(tree, strings.TrimRight(title+"\n\n"+message, "\n"), author, s.committer(), parents...)
	return sha, err == nil
}

// nowMerged notes that a pull request was merged.
func (s *Server) nowMerged(p *Pull, by who, commit string) {
	p.merged, p.closed, p.updated = s.seconds(), s.seconds(), s.seconds()
	p.mergedBy, p.closedBy, p.mergeSHA = by.account(), by.account(), commit
	s.pullEvent(p, "closed", by, nil)
	for _, n := range closes(p.body) {
		if i := p.repo.issues[n]; i != nil && i.pull == nil && i.closed.IsZero() && p.baseRef == p.repo.branch {
			s.closeIssue(i, by, "completed")
		}
	}
}
