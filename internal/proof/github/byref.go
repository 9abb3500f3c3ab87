package github

import (
	"net/http"
	"slices"
)

// commitPulls lists the pull requests that a commit belongs to.
func (c *call) commitPulls() (int, any) {
	r := c.repo()
	sha := r.resolve(c.params["commit_sha"])
	if sha == "" {
		c.refuse(http.StatusUnprocessableEntity, "No commit found for SHA: %s", c.params["commit_sha"])
	}
	all := slices.DeleteFunc(r.pulls(), func(p *Pull) bool {
		return p.mergeSHA != sha && (p.head == "" || !r.contains(p.head, sha) || r.contains(p.base, sha))
	})
	return http.StatusOK, each(list(c, all), c.simplePull)
}

// patchPullComment changes the text of a comment on lines.
func (c *call) patchPullComment() (int, any) {
	r, n := c.repo(), c.number("comment_id")
	for _, p := range r.pulls() {
		for _, m := range p.comments() {
			if m.id != n {
				continue
			}
			m.body, m.updated, p.updated = c.bodyIn(), c.seconds(), c.seconds()
			return http.StatusOK, c.showReviewComment(m)
		}
	}
	c.notFound()
	return 0, nil
}
