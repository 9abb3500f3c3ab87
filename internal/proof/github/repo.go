package github

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"yardmaster/internal/lazy"
)

func (c *call) getRepo() (int, any) {
	if c.params["repository_id"] != "" {
		r := c.repos[c.number("repository_id")]
		if r == nil || !c.sees(r) {
			c.notFound()
		}
		return http.StatusOK, c.fullRepo(r)
	}
	return http.StatusOK, c.fullRepo(c.repo())
}

// patchRepo renames, describes, archives or hides a repository.
func (c *call) patchRepo() (int, any) {
	r := c.repo()
	var in struct {
		Name, Description, Visibility *string
		Archived, Private             *bool
		DefaultBranch                 *string `json:"default_branch"`
		AllowMerge                    *bool   `json:"allow_merge_commit"`
		AllowSquash                   *bool   `json:"allow_squash_merge"`
		AllowRebase                   *bool   `json:"allow_rebase_merge"`
		DeleteBranchOnMerge           *bool   `json:"delete_branch_on_merge"`
	}
	c.in(&in)
	by := c.who.account()
	if in.Name != nil && *in.Name != r.name {
		c.rename(r, *in.Name, by)
	}
	if in.Description != nil && *in.Description != r.description {
		from := r.description
		r.description = *in.Description
		c.emit(r, "repository", "edited", by, obj{"changes": obj{"description": obj{"from": null(from)}}})
	}
	if in.Archived != nil {
		c.archive(r, *in.Archived, by)
	}
	if in.Visibility != nil {
		hidden := *in.Visibility == "private"
		in.Private = &hidden
	}
	if in.Private != nil {
		c.hide(r, *in.Private, by)
	}
	if in.DefaultBranch != nil {
		if r.head(*in.DefaultBranch) == "" {
			c.refuse(http.StatusUnprocessableEntity, "The branch %s was not found.", *in.DefaultBranch)
		}
		c.choose(r, *in.DefaultBranch, by)
	}
	for name, set := range map[string]*bool{"merge": in.AllowMerge, "squash": in.AllowSquash, "rebase": in.AllowRebase} {
		if set != nil {
			r.methods[name] = *set
		}
	}
	if in.DeleteBranchOnMerge != nil {
		r.deleteHeads = *in.DeleteBranchOnMerge
	}
	r.updated = c.seconds()
	return http.StatusOK, c.fullRepo(r)
}

// choose makes a branch the default.
func (s *Server) choose(r *Repo, branch string, by *Account) {
	if branch == r.branch {
		return
	}
	from := r.branch
	r.branch = branch
	r.must("symbolic-ref", "HEAD", "refs/heads/"+branch)
	s.emit(r, "repository", "edited", by, obj{"changes": obj{"default_branch": obj{"from": from}}})
}

var repoName = lazy.New(`^[A-Za-z0-9._-]{1,100}$`)

// createRepo makes a repository in an organisation.
func (c *call) createRepo() (int, any) {
	org := c.accounts[strings.ToLower(c.params["org"])]
	if org == nil || org.Kind != "Organization" {
		c.notFound()
	}
	mine := c.who.inst != nil && c.who.inst.Account == org ||
		c.who.person != nil && org.members[c.who.person.ID] != ""
	if !mine {
		c.notFound()
	}
	c.header.Set("X-Accepted-GitHub-Permissions", "administration=write")
	if !c.who.has("administration=write") {
		c.noAccess()
	}
	var in struct {
		Name, Description, Visibility string
		Private                       bool
		AutoInit                      bool `json:"auto_init"`
	}
	c.in(&in)
	if !repoName.MatchString(in.Name) {
		c.invalid(wrong("Repository", "name", "missing_field"))
	}
	if c.byName(org.Login+"/"+in.Name) != nil {
		panic(&problem{status: http.StatusUnprocessableEntity, body: obj{
			"message": "Repository creation failed.", "documentation_url": manual, "status": "422",
			"errors": []obj{{
				"resource": "Repository", "code": "custom", "field": "name", "message": "name already exists on this account",
			}},
		}})
	}
	n := NewRepo{Private: in.Private || in.Visibility == "private", Description: in.Description}
	if in.AutoInit {
		n.Files = map[string]string{"README.md": "# " + in.Name + "\n"}
	}
	r := c.addRepo(org, in.Name, n)
	if c.who.person != nil {
		r.roles[c.who.person.ID] = "admin"
	}
	if i := c.who.inst; i != nil && !i.all { // an App has what it makes
		i.repos[r.ID] = true
		c.tellInstallation(i, "added", c.who.account(), obj{
			"repositories_added": []obj{brief(r)}, "repositories_removed": []obj{}, "repository_selection": "selected", "requester": nil,
		})
	}
	c.created(r, c.who.account())
	return http.StatusCreated, c.fullRepo(r)
}

// created tells of a new repository. Installations of all repositories get it added.
func (s *Server) created(r *Repo, by *Account) {
	for _, n := range slices.Sorted(maps.Keys(s.installs)) {
		if i := s.installs[n]; i.all && i.has(r) && i.suspended.IsZero() {
			s.tellInstallation(i, "added", by, obj{
				"repositories_added": []obj{brief(r)}, "repositories_removed": []obj{}, "repository_selection": "all", "requester": nil,
			})
		}
	}
	s.emit(r, "repository", "created", by, obj{})
}

func (s *Server) rename(r *Repo, name string, by *Account) {
	old := r.name
	s.moved[strings.ToLower(r.full())] = r.ID
	r.name, r.updated = name, s.seconds()
	delete(s.moved, strings.ToLower(r.full()))
	s.emit(r, "repository", "renamed", by, obj{"changes": obj{"repository": obj{"name": obj{"from": old}}}})
}

func (s *Server) archive(r *Repo, archived bool, by *Account) {
	if r.archived == archived {
		return
	}
	r.archived, r.updated = archived, s.seconds()
	action := "unarchived"
	if archived {
		action = "archived"
	}
	s.emit(r, "repository", action, by, obj{})
}

func (s *Server) hide(r *Repo, private bool, by *Account) {
	if r.private == private {
		return
	}
	r.private, r.updated = private, s.seconds()
	action := "publicized"
	if private {
		action = "privatized"
	}
	s.emit(r, "repository", action, by, obj{})
}

// collaborator answers what a person may do.
func (c *call) collaborator() (int, any) {
	r := c.repo()
	a := c.accounts[strings.ToLower(c.params["username"])]
	if a == nil {
		c.notFound()
	}
	role := r.role(a)
	if a.Kind == "Bot" {
		role = ""
	}
	user := c.showUser(a)
	user["permissions"], user["role_name"] = permissionsOf(role, false), role
	coarse := map[string]string{"": "none", "read": "read", "triage": "read", "write": "write", "maintain": "write", "admin": "admin"}[role]
	if role == "" {
		role = "none"
		user["role_name"] = "none"
	}
	return http.StatusOK, obj{"permission": coarse, "role_name": role, "user": user}
}

// branches lists the branches by name.
func (r *Repo) branches() []string {
	var out []string
	for line := range strings.Lines(r.must("for-each-ref", "--format=%(refname)", "refs/heads") + "\n") {
		if name := strings.TrimPrefix(strings.TrimSpace(line), "refs/heads/"); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func (c *call) listBranches() (int, any) {
	r := c.repo()
	names := slices.DeleteFunc(r.branches(), func(b string) bool {
		return c.query("protected") == "true" && !r.protected(b) || c.query("protected") == "false" && r.protected(b)
	})
	return http.StatusOK, each(list(c, names), func(b string) obj {
		sha := r.head(b)
		return obj{"name": b, "protected": r.protected(b), "commit": obj{"sha": sha, "url": c.at(r) + "/commits/" + sha}}
	})
}

func (c *call) getBranch() (int, any) {
	r, b := c.repo(), c.params["branch"]
	sha := r.head(b)
	if sha == "" {
		c.refuse(http.StatusNotFound, "Branch not found")
	}
	self := c.at(r) + "/branches/" + b
	return http.StatusOK, obj{
		"name": b, "commit": c.showCommit(r, sha), "protected": r.protected(b), "protection": r.showProtection(b, self),
		"_links":         obj{"self": self, "html": c.page(r) + "/tree/" + b},
		"protection_url": self + "/protection",
	}
}

func (c *call) showRef(r *Repo, full string) obj {
	sha := r.ref(full)
	kind := r.must("cat-file", "-t", sha)
	return obj{
		"ref": full, "node_id": nodeID("REF", r.ID) + full, "url": c.at(r) + "/git/" + full,
		"object": obj{"type": kind, "sha": sha, "url": c.at(r) + "/git/" + kind + "s/" + sha},
	}
}

func (c *call) getRef() (int, any) {
	r, full := c.repo(), "refs/"+strings.TrimPrefix(c.params["ref"], "refs/")
	if r.pushed.IsZero() {
		c.refuse(http.StatusConflict, "Git Repository is empty.")
	}
	if r.ref(full) == "" {
		c.notFound()
	}
	return http.StatusOK, c.showRef(r, full)
}

var sha1Name = lazy.New(`^[0-9a-f]{40}$`)

func (c *call) createRef() (int, any) {
	r := c.repo()
	var in struct{ Ref, SHA string }
	c.in(&in)
	switch {
	case r.pushed.IsZero():
		c.refuse(http.StatusConflict, "Git Repository is empty.")
	case !strings.HasPrefix(in.Ref, "refs/heads/") && !strings.HasPrefix(in.Ref, "refs/tags/"):
		c.refuse(http.StatusUnprocessableEntity, "Reference name must start with 'refs/' and contain at least two slashes.")
	case !sha1Name.MatchString(in.SHA) || r.ref(in.SHA+"^{object}") == "":
		c.refuse(http.StatusUnprocessableEntity, "Object does not exist")
	case r.ref(in.Ref) != "":
		c.refuse(http.StatusUnprocessableEntity, "Reference already exists")
	}
	c.moveRef(r, command{in.Ref, zero, in.SHA})
	return http.StatusCreated, c.showRef(r, in.Ref)
}

func (c *call) updateRef() (int, any) {
	r, full := c.repo(), "refs/"+c.params["ref"]
	var in struct {
		SHA   string
		Force bool
	}
	c.in(&in)
	old := r.ref(full)
	switch {
	case old == "":
		c.refuse(http.StatusUnprocessableEntity, "Reference does not exist")
	case r.resolve(in.SHA) == "":
		c.refuse(http.StatusUnprocessableEntity, "Object does not exist")
	case !in.Force && !r.contains(in.SHA, old):
		c.refuse(http.StatusUnprocessableEntity, "Update is not a fast forward")
	}
	c.moveRef(r, command{full, old, in.SHA})
	return http.StatusOK, c.showRef(r, full)
}

func (c *call) deleteRef() (int, any) {
	r, full := c.repo(), "refs/"+c.params["ref"]
	old := r.ref(full)
	if old == "" {
		c.refuse(http.StatusUnprocessableEntity, "Reference does not exist")
	}
	c.moveRef(r, command{full, old, zero})
	return http.StatusNoContent, nil
}

// moveRef moves a ref by the rules of a push.
func (c *call) moveRef(r *Repo, m command) {
	if why := c.refusal(r, c.who, m); why != "" {
		c.refuse(http.StatusUnprocessableEntity, "%s", why)
	}
	if err := r.setRef(m.ref, m.new, m.old); err != nil {
		c.refuse(http.StatusUnprocessableEntity, "Reference cannot be updated")
	}
	c.refMoved(r, c.who, m, 1)
}

// mergeBranch merges a branch into another one, which needs no pull request.
func (c *call) mergeBranch() (int, any) {
	r := c.repo()
	var in struct {
		Base, Head    string
		CommitMessage string `json:"commit_message"`
	}
	c.in(&in)
	if in.Base == "" || in.Head == "" {
		c.invalid(wrong("Merge", "base", "missing_field"))
	}
	base, head := r.head(in.Base), r.resolve(in.Head)
	switch {
	case base == "":
		c.refuse(http.StatusNotFound, "Base does not exist")
	case head == "":
		c.refuse(http.StatusNotFound, "Head does not exist")
	case r.contains(base, head):
		return http.StatusNoContent, nil
	}
	tree, clean := r.mergeTree(base, head)
	if !clean {
		c.refuse(http.StatusConflict, "Merge conflict")
	}
	if in.CommitMessage == "" {
		in.CommitMessage = fmt.Sprintf("Merge %s into %s", in.Head, in.Base)
	}
	sha, err := r.write(tree, in.CommitMessage, c.author(), c.committer(), base, head)
	if err != nil {
		panic(err)
	}
	c.moveRef(r, command{"refs/heads/" + in.Base, base, sha})
	return http.StatusCreated, c.showCommit(r, sha)
}

// author signs commits that the API makes for the caller.
func (c *call) author() signature { return c.signature(c.who.account()) }

func (s *Server) signature(a *Account) signature { return signature{a.Login, a.mail(), s.seconds()} }

// committer signs commits that GitHub makes itself.
func (s *Server) committer() signature { return signature{"GitHub", "noreply@github.com", s.seconds()} }
