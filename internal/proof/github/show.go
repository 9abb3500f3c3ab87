package github

import (
	"fmt"
	"strings"
)

// showUser is GitHub's "simple user".
func (s *Server) showUser(a *Account) obj {
	if a == nil {
		return nil
	}
	at := s.API + "/users/" + a.Login
	return obj{
		"login": a.Login, "id": a.ID, "node_id": nodeID("U", a.ID), "avatar_url": fmt.Sprintf("%s/avatars/%d", s.Web, a.ID),
		"gravatar_id": "", "url": at, "html_url": s.Web + "/" + strings.TrimSuffix(a.Login, "[bot]"),
		"followers_url": at + "/followers", "following_url": at + "/following{/other_user}",
		"gists_url": at + "/gists{/gist_id}", "starred_url": at + "/starred{/owner}{/repo}",
		"subscriptions_url": at + "/subscriptions", "organizations_url": at + "/orgs", "repos_url": at + "/repos",
		"events_url": at + "/events{/privacy}", "received_events_url": at + "/received_events",
		"type": a.Kind, "user_view_type": "public", "site_admin": false,
	}
}

// userOrNull is null for nobody.
func (s *Server) userOrNull(a *Account) any {
	if a == nil {
		return nil
	}
	return s.showUser(a)
}

// showPerson is a user with what the page of a person has.
func (s *Server) showPerson(a *Account) obj {
	o := s.showUser(a)
	for _, name := range []string{"name", "company", "location", "email", "hireable", "bio", "twitter_username"} {
		o[name] = nil
	}
	for _, name := range []string{"public_repos", "public_gists", "followers", "following"} {
		o[name] = 0
	}
	o["blog"], o["created_at"], o["updated_at"] = "", "2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"
	return o
}

func (s *Server) showOrganization(a *Account) obj {
	at := s.API + "/orgs/" + a.Login
	return obj{
		"login": a.Login, "id": a.ID, "node_id": nodeID("O", a.ID), "url": at, "repos_url": at + "/repos",
		"events_url": at + "/events", "hooks_url": at + "/hooks", "issues_url": at + "/issues",
		"members_url": at + "/members{/member}", "public_members_url": at + "/public_members{/member}",
		"avatar_url": fmt.Sprintf("%s/avatars/%d", s.Web, a.ID), "description": "",
	}
}

// addresses are the members of a repository that hold addresses of its parts.
var addresses = map[string]string{
	"archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}", "blobs_url": "/git/blobs{/sha}",
	"branches_url": "/branches{/branch}", "collaborators_url": "/collaborators{/collaborator}",
	"comments_url": "/comments{/number}", "commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}",
	"contents_url": "/contents/{+path}", "contributors_url": "/contributors", "deployments_url": "/deployments",
	"downloads_url": "/downloads", "events_url": "/events", "forks_url": "/forks", "git_commits_url": "/git/commits{/sha}",
	"git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}", "hooks_url": "/hooks",
	"issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
	"issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}",
	"languages_url": "/languages", "merges_url": "/merges", "milestones_url": "/milestones{/number}",
	"notifications_url": "/notifications{?since,all,participating}", "pulls_url": "/pulls{/number}",
	"releases_url": "/releases{/id}", "stargazers_url": "/stargazers", "statuses_url": "/statuses/{sha}",
	"subscribers_url": "/subscribers", "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams",
	"trees_url": "/git/trees{/sha}",
}

// at is the address of a repository in the API.
func (s *Server) at(r *Repo) string { return s.API + "/repos/" + r.full() }

// page is the address of a repository for people.
func (s *Server) page(r *Repo) string { return s.Web + "/" + r.full() }

// minimalRepo has what every form of a repository has.
func (s *Server) minimalRepo(r *Repo) obj {
	o := obj{
		"id": r.ID, "node_id": nodeID("R", r.ID), "name": r.name, "full_name": r.full(), "owner": s.showUser(r.owner),
		"private": r.private, "html_url": s.page(r), "description": null(r.description), "fork": r.fork != nil, "url": s.at(r),
	}
	for name, path := range addresses {
		o[name] = s.at(r) + path
	}
	return o
}

// showRepo is GitHub's "repository".
func (s *Server) showRepo(r *Repo) obj {
	o := s.minimalRepo(r)
	open, forks := 0, 0
	for _, i := range r.issues {
		if i.closed.IsZero() && !i.deleted {
			open++
		}
	}
	for _, other := range s.repos {
		if other.fork == r {
			forks++
		}
	}
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	for name, value := range map[string]any{
		"git_url": "git:" + strings.TrimPrefix(s.page(r), "http:") + ".git", "ssh_url": "git@localhost:" + r.full() + ".git",
		"clone_url": s.page(r) + ".git", "svn_url": s.page(r), "mirror_url": nil, "homepage": nil, "language": nil, "license": nil,
		"forks": forks, "forks_count": forks, "stargazers_count": 0, "watchers_count": 0, "watchers": 0, "size": 1,
		"open_issues": open, "open_issues_count": open, "default_branch": r.branch, "visibility": visibility,
		"has_issues": true, "has_projects": true, "has_wiki": false, "has_pages": false, "has_downloads": true, "has_discussions": false,
		"archived": r.archived, "disabled": false, "allow_forking": true, "is_template": false, "web_commit_signoff_required": false,
		"topics":     []string{},
		"created_at": stamp(r.created), "updated_at": stamp(r.updated), "pushed_at": stamp(r.pushed),
	} {
		o[name] = value
	}
	return o
}

// fullRepo is what GET of one repository answers.
func (c *call) fullRepo(r *Repo) obj {
	o := c.showRepo(r)
	o["subscribers_count"], o["network_count"] = 0, 0
	o["allow_merge_commit"], o["allow_squash_merge"], o["allow_rebase_merge"] = r.methods["merge"], r.methods["squash"], r.methods["rebase"]
	o["allow_auto_merge"], o["delete_branch_on_merge"], o["allow_update_branch"] = false, r.deleteHeads, false
	if r.pushed.IsZero() {
		o["pushed_at"] = stamp(r.created)
	}
	if r.owner.Kind == "Organization" {
		o["organization"] = c.showUser(r.owner)
	}
	if r.fork != nil {
		o["parent"], o["source"] = c.showRepo(r.fork), c.showRepo(r.fork)
	}
	if a := c.who.account(); a != nil {
		o["permissions"] = permissionsOf(r.role(a), c.who.inst != nil)
	}
	return o
}

// permissionsOf are the permissions of a role in the form of a repository. For an
// installation GitHub shows all of them as false but pull.
func permissionsOf(role string, installation bool) obj {
	if installation {
		role = "read"
	}
	o := obj{}
	for name, need := range map[string]string{
		"admin": "admin", "maintain": "maintain", "push": "write", "triage": "triage", "pull": "read",
	} {
		o[name] = role != "" && atLeast(role, need)
	}
	return o
}

// showPushedRepo is the repository of a push, which counts times in seconds.
func (s *Server) showPushedRepo(r *Repo) obj {
	o := s.showRepo(r)
	o["created_at"], o["pushed_at"] = r.created.Unix(), r.pushed.Unix()
	o["url"] = s.page(r)
	o["stargazers"], o["master_branch"] = 0, r.branch
	if r.owner.Kind == "Organization" {
		o["organization"] = r.owner.Login
	}
	owner := s.showUser(r.owner)
	owner["name"], owner["email"] = r.owner.Login, nil
	o["owner"] = owner
	return o
}

func showSignature(g signature) obj {
	return obj{"name": g.name, "email": g.mail, "date": stamp(g.at)}
}

// showCommit is GitHub's "commit".
func (s *Server) showCommit(r *Repo, sha string) obj {
	c := r.show(sha)
	at := s.at(r)
	return obj{
		"url": at + "/commits/" + sha, "sha": sha, "node_id": nodeID("C", r.ID) + sha[:12], "html_url": s.page(r) + "/commit/" + sha,
		"comments_url": at + "/commits/" + sha + "/comments",
		"commit": obj{
			"url": at + "/git/commits/" + sha, "author": showSignature(c.author), "committer": showSignature(c.committer),
			"message": c.message, "comment_count": 0, "tree": obj{"sha": c.tree, "url": at + "/git/trees/" + c.tree},
			"verification": obj{"verified": false, "reason": "unsigned", "payload": nil, "signature": nil, "verified_at": nil},
		},
		"author": s.userOrNull(s.byMail(c.author.mail)), "committer": s.userOrNull(s.byMail(c.committer.mail)),
		"parents": each(c.parents, func(p string) obj {
			return obj{"sha": p, "url": at + "/commits/" + p, "html_url": s.page(r) + "/commit/" + p}
		}),
	}
}

// byMail finds the account of an address, which GitHub knows by it.
func (s *Server) byMail(mail string) *Account {
	for _, a := range s.accounts {
		if a.mail() == mail {
			return a
		}
	}
	return nil
}

// mail is the address in an account's commits.
func (a *Account) mail() string { return fmt.Sprintf("%d+%s@users.noreply.github.com", a.ID, a.Login) }

// simpleCommit is the commit of suites, runs and groups.
func (s *Server) simpleCommit(r *Repo, sha string) obj {
	c := r.show(sha)
	return obj{
		"id": sha, "tree_id": c.tree, "message": c.message, "timestamp": stamp(c.committer.at),
		"author":    obj{"name": c.author.name, "email": c.author.mail},
		"committer": obj{"name": c.committer.name, "email": c.committer.mail},
	}
}

// showPush is the payload of a push, whose commits are cut after 2,048.
func (s *Server) showPush(r *Repo, by who, c command) obj {
	pusher := by.account()
	o := obj{
		"ref": c.ref, "before": c.old, "after": c.new, "created": c.old == zero, "deleted": c.new == zero, "base_ref": nil,
		"forced":  c.old != zero && c.new != zero && !r.contains(c.new, c.old),
		"compare": s.page(r) + "/compare/" + c.old[:12] + "..." + c.new[:12], "commits": []obj{}, "head_commit": nil,
		"pusher": obj{"name": pusher.Login, "email": pusher.mail()},
	}
	sha := r.resolve(c.new)
	if c.new == zero || sha == "" {
		return o
	}
	span := c.old + ".." + c.new
	if c.old == zero {
		span = sha
		if main := r.head(r.branch); main != "" && c.ref != "refs/heads/"+r.branch {
			span = main + ".." + sha
		}
	}
	list := r.commits(span)
	o["commits"] = each(list[:min(len(list), 2048)], func(sha string) obj { return s.pushedCommit(r, sha) })
	o["head_commit"] = s.pushedCommit(r, sha)
	return o
}

func (s *Server) pushedCommit(r *Repo, sha string) obj {
	o := s.simpleCommit(r, sha)
	o["url"], o["distinct"] = s.page(r)+"/commit/"+sha, true
	added, removed, modified := []string{}, []string{}, []string{}
	if c := r.show(sha); len(c.parents) > 0 {
		for _, f := range r.diff(c.parents[0], sha) {
			switch f.status {
			case "added":
				added = append(added, f.path)
			case "removed":
				removed = append(removed, f.path)
			default:
				modified = append(modified, f.path)
			}
		}
	}
	o["added"], o["removed"], o["modified"] = added, removed, modified
	return o
}
