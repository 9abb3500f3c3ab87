package github

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// call is a request to the API while it is carried out. Server.mu is held.
type call struct {
	*Server
	r      *http.Request
	route  *route
	params map[string]string
	body   []byte
	who    who
	header http.Header // of the answer
	free   func()      // takes the charge back: a 304 costs nothing
}

// problem is an answer that ends a call. Functions of call panic with it.
type problem struct {
	status int
	body   obj
	header http.Header
}

// obj is a JSON object.
type obj = map[string]any

const manual = "https://docs.github.com/rest"

// refuse ends the call with a status and GitHub's message.
func (c *call) refuse(status int, format string, args ...any) {
	panic(&problem{status: status, body: obj{
		"message":           fmt.Sprintf(format, args...),
		"documentation_url": manual,
		"status":            strconv.Itoa(status),
	}})
}

// invalid ends the call with 422 and the errors of single fields.
func (c *call) invalid(errs ...obj) {
	panic(&problem{status: http.StatusUnprocessableEntity, body: obj{
		"message":           "Validation Failed",
		"errors":            errs,
		"documentation_url": manual,
		"status":            "422",
	}})
}

// invalidTexts ends the call with 422 and errors that are plain texts, as reviews do.
func (c *call) invalidTexts(errs ...string) {
	panic(&problem{status: http.StatusUnprocessableEntity, body: obj{
		"message":           "Unprocessable Entity",
		"errors":            errs,
		"documentation_url": manual,
		"status":            "422",
	}})
}

func wrong(resource, field, code string) obj {
	return obj{"resource": resource, "field": field, "code": code}
}

func custom(resource, message string) obj {
	return obj{"resource": resource, "code": "custom", "message": message}
}

// notFound ends the call as GitHub does for what there is not and for what is hidden.
func (c *call) notFound() { c.refuse(http.StatusNotFound, "Not Found") }

// noAccess ends the call for a token that lacks a permission.
func (c *call) noAccess() {
	by := "integration"
	if c.who.person != nil {
		by = "personal access token"
	}
	c.refuse(http.StatusForbidden, "Resource not accessible by %s", by)
}

// in reads the body.
func (c *call) in(into any) {
	if len(c.body) == 0 {
		return
	}
	if err := json.Unmarshal(c.body, into); err != nil {
		c.refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
}

// has tells whether the body has a member, be it null.
func (c *call) has(name string) bool {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(c.body, &members)
	_, ok := members[name]
	return ok
}

// number reads a number of the path.
func (c *call) number(name string) int64 {
	n, err := strconv.ParseInt(c.params[name], 10, 64)
	if err != nil {
		c.notFound()
	}
	return n
}

func (c *call) query(name string) string { return c.r.URL.Query().Get(name) }

// list answers one page of a list and links to the others.
func list[T any](c *call, all []T) []T {
	per, page := 30, 1
	if n, err := strconv.Atoi(c.query("per_page")); err == nil && n > 0 {
		per = min(n, 100)
	}
	if n, err := strconv.Atoi(c.query("page")); err == nil && n > 0 {
		page = n
	}
	last := max(1, (len(all)+per-1)/per)
	var links []string
	link := func(rel string, n int) {
		u := url.URL{Path: c.r.URL.Path}
		q := c.r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		links = append(links, fmt.Sprintf(`<%s%s?%s>; rel="%s"`, c.API, u.EscapedPath(), q.Encode(), rel))
	}
	if page > 1 {
		link("prev", page-1)
	}
	if page < last {
		link("next", page+1)
		link("last", last)
	}
	if page > 1 {
		link("first", 1)
	}
	if links != nil {
		c.header.Set("Link", strings.Join(links, ", "))
	}
	from, to := min((page-1)*per, len(all)), min(page*per, len(all))
	return append([]T{}, all[from:to]...)
}

// each maps a list. It is never nil, so that it is [] and not null.
func each[T, U any](all []T, f func(T) U) []U {
	out := make([]U, 0, len(all))
	for _, e := range all {
		out = append(out, f(e))
	}
	return out
}

// etag is the tag of an answer: it changes when the answer does.
func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + hex.EncodeToString(sum[:]) + `"`
}

// matches tells whether a request already has the answer with a tag.
func matches(r *http.Request, tag string) bool {
	for t := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if t = strings.TrimSpace(t); t == "*" || strings.TrimPrefix(t, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// repo returns the repository of the path, or ends the call: 404 for what is hidden,
// 301 by an old name, 403 for a missing permission or an archived repository.
func (c *call) repo() *Repo {
	r := c.find(c.params["owner"] + "/" + c.params["repo"])
	c.allowed(r)
	return r
}

// find returns a repository that the caller may see.
func (c *call) find(full string) *Repo {
	r := c.byName(full)
	if r == nil {
		id, moved := c.moved[strings.ToLower(full)]
		if r = c.repos[id]; !moved || r == nil || !c.sees(r) {
			c.notFound()
		}
		c.redirect(r)
	}
	if !c.sees(r) {
		c.notFound()
	}
	return r
}

// redirect ends the call with the permanent address of a repository.
func (c *call) redirect(r *Repo) {
	rest := c.r.URL.EscapedPath()
	for range 3 { // the slash, repos, owner, name
		_, rest, _ = strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	}
	to := fmt.Sprintf("%s/repositories/%d", c.API, r.ID)
	if rest != "" {
		to += "/" + rest
	}
	if c.r.URL.RawQuery != "" {
		to += "?" + c.r.URL.RawQuery
	}
	status := http.StatusMovedPermanently
	if c.r.Method != http.MethodGet && c.r.Method != http.MethodHead {
		status = c.o.MovedWrites
	}
	message := http.StatusText(status)
	panic(&problem{status: status, header: http.Header{"Location": {to}}, body: obj{
		"message": message, "url": to, "documentation_url": manual,
	}})
}

// byName finds a repository by its present name.
func (s *Server) byName(full string) *Repo {
	for _, r := range s.repos {
		if strings.EqualFold(r.full(), full) {
			return r
		}
	}
	return nil
}

// sees tells whether the caller may know that a repository is there.
func (c *call) sees(r *Repo) bool { return !r.private || c.who.covers(r) }

// allowed ends the call unless the caller has the permission that the operation needs
// in a repository.
func (c *call) allowed(r *Repo) { c.may(r, c.route.need) }

// may ends the call unless the caller has one of the permissions: "issues=write" or
// "issues=write|pull_requests=write".
func (c *call) may(r *Repo, need string) {
	if need != "" {
		c.header.Set("X-Accepted-GitHub-Permissions", strings.ReplaceAll(need, "|", "; "))
	}
	writes := c.r.Method != http.MethodGet && c.r.URL.Path != "/graphql" || strings.Contains(need, "=write")
	switch {
	case c.who.covers(r):
		// What is public may be read without the permission (the page of each operation).
		if !c.who.has(need) && (r.private || writes) {
			c.noAccess()
		}
		if c.who.person != nil && writes && !atLeast(r.role(c.who.person), roleFor(need)) {
			c.refuse(http.StatusForbidden, "Must have push access to repository")
		}
	case writes, strings.Contains(need, "administration="):
		c.noAccess()
	}
	if r.archived && writes {
		c.refuse(http.StatusForbidden, "Repository was archived so is read-only.")
	}
}

// roleFor is the role that a person needs for a permission.
func roleFor(need string) string {
	switch {
	case strings.Contains(need, "contents=write"), strings.Contains(need, "checks=write"), strings.Contains(need, "actions=write"):
		return "write"
	case strings.Contains(need, "administration="):
		return "admin"
	}
	return "read"
}
