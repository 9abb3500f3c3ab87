package github

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
)

func (q *query) actor(a *Account) gnode {
	if a == nil {
		return nil
	}
	return gnode{
		"__typename": map[string]string{"User": "User", "Organization": "Organization", "Bot": "Bot"}[a.Kind],
		"login":      a.Login, "id": nodeID("U", a.ID), "databaseId": a.ID, "url": q.Web + "/" + a.Login,
	}
}

func (q *query) repository(r *Repo) gnode {
	return gnode{
		"__typename": "Repository", "id": nodeID("R", r.ID), "databaseId": r.ID, "nameWithOwner": r.full(), "name": r.name,
		"isArchived": r.archived, "isPrivate": r.private,
		"pullRequest": field(func(args map[string]any) any {
			q.need(r, "pull_requests=read")
			n, _ := strconv.Atoi(fmt.Sprint(args["number"]))
			i := r.issues[n]
			if i == nil || i.pull == nil || i.deleted {
				panic(gfault{"NOT_FOUND", fmt.Sprintf("Could not resolve to a PullRequest with the number of %d.", n)})
			}
			return q.pullNode(i.pull)
		}),
	}
}

func (q *query) pullNode(p *Pull) gnode {
	known, clean := p.mergeable()
	mergeable, state := "UNKNOWN", "OPEN"
	if known {
		mergeable = map[bool]string{true: "MERGEABLE", false: "CONFLICTING"}[clean]
	}
	if !p.closed.IsZero() {
		state = "CLOSED"
	}
	if !p.merged.IsZero() {
		state = "MERGED"
	}
	n := gnode{
		"__typename": "PullRequest", "id": nodeID("PR", p.ID), "databaseId": p.ID, "number": p.Number, "title": p.title, "body": p.body,
		"url": q.pullPage(p), "isDraft": p.draft, "state": state, "merged": !p.merged.IsZero(), "mergeable": mergeable,
		"headRefOid": p.head, "headRefName": p.headRef, "baseRefName": p.baseRef, "isInMergeQueue": p.entry != nil,
		"isMergeQueueEnabled": p.repo.rulesOf(p.baseRef).queue != nil,
		"author":              q.actor(p.author), "updatedAt": stamp(p.updated), "repository": q.repository(p.repo),
		"mergeQueueEntry": gnode(nil),
		"reviewThreads": field(func(args map[string]any) any {
			threads := slices.DeleteFunc(slices.Clone(p.threads), func(t *Thread) bool { return t.gone })
			return connection("PullRequestReviewThreadConnection", args, each(threads, q.thread))
		}),
	}
	if p.entry != nil {
		n["mergeQueueEntry"] = q.entry(p.entry)
	}
	return n
}

func (q *query) thread(t *Thread) gnode {
	subject := "LINE"
	if t.file {
		subject = "FILE"
	}
	can := q.who.covers(t.pull.repo) && q.who.has("pull_requests=write") && q.who.has("contents=write")
	return gnode{
		"__typename": "PullRequestReviewThread", "id": nodeID("PRRT", t.id), "isResolved": t.resolved, "isOutdated": !t.file && t.now == 0,
		"isCollapsed": t.resolved, "path": t.path, "line": zeroNull(t.now), "originalLine": zeroNull(t.line),
		"startLine": zeroNull(t.startNow), "originalStartLine": zeroNull(t.startLine), "diffSide": t.side,
		"startDiffSide": null(t.startSide), "subjectType": subject, "resolvedBy": q.actor(t.resolvedBy),
		"viewerCanResolve": can && !t.resolved, "viewerCanUnresolve": can && t.resolved, "viewerCanReply": can,
		"comments": field(func(args map[string]any) any {
			return connection("PullRequestReviewCommentConnection", args, each(t.comments, func(m *comment) gnode {
				n := gnode{
					"__typename": "PullRequestReviewComment", "id": nodeID("PRRC", m.id), "databaseId": m.id,
					"fullDatabaseId": strconv.FormatInt(m.id, 10), "body": m.body, "author": q.actor(m.author), "path": t.path,
					"authorAssociation": t.pull.repo.association(m.author), "createdAt": stamp(m.created), "updatedAt": stamp(m.updated),
					"url": fmt.Sprintf("%s#discussion_r%d", q.pullPage(t.pull), m.id), "outdated": !t.file && t.now == 0,
					"line": zeroNull(t.now), "originalLine": zeroNull(t.line), "diffHunk": t.hunk,
					"commit":            gnode{"__typename": "Commit", "oid": m.commit},
					"originalCommit":    gnode{"__typename": "Commit", "oid": m.original},
					"pullRequestReview": gnode(nil),
				}
				if m.review != nil {
					n["pullRequestReview"] = gnode{
						"__typename": "PullRequestReview", "id": nodeID("PRR", m.review.ID), "databaseId": m.review.ID,
						"state": m.review.state,
					}
				}
				return n
			}))
		}),
	}
}

func (q *query) entry(e *entry) gnode {
	state := "QUEUED"
	if e.sha != "" {
		state = "AWAITING_CHECKS"
	}
	n := gnode{
		"__typename": "MergeQueueEntry", "id": nodeID("MQE", e.id), "position": e.position, "state": state,
		"enqueuedAt": stamp(e.at), "enqueuer": q.actor(e.by.account()), "jump": false, "solo": false,
		"headCommit": gnode(nil), "baseCommit": gnode(nil),
		"pullRequest": field(func(map[string]any) any { return q.pullNode(e.pull) }),
	}
	if e.sha != "" {
		n["headCommit"] = gnode{"__typename": "Commit", "oid": e.sha}
		n["baseCommit"] = gnode{"__typename": "Commit", "oid": e.base}
	}
	return n
}

// connection answers a page of a list. GitHub wants first or last, 100 at most.
func connection(kind string, args map[string]any, all []gnode) gnode {
	count := func(name string) int {
		n, _ := strconv.Atoi(fmt.Sprint(args[name]))
		return n
	}
	n := count("first") + count("last")
	if n < 1 {
		panic(gfault{"MISSING_PAGINATION_BOUNDARIES", "You must provide a `first` or `last` value to properly paginate the connection."})
	}
	if n > 100 {
		panic(gfault{"EXCESSIVE_PAGINATION", fmt.Sprintf("Requesting %d records on the connection exceeds the `first` limit of 100 records.", n)})
	}
	from := 0
	if after, ok := args["after"].(string); ok && after != "" {
		text, _ := base64.StdEncoding.DecodeString(after)
		from, _ = strconv.Atoi(string(text))
	}
	to := min(from+n, len(all))
	if count("last") > 0 {
		from, to = max(0, len(all)-n), len(all)
	}
	from = min(from, to)
	cursor := func(n int) any { return base64.StdEncoding.EncodeToString([]byte(strconv.Itoa(n))) }
	return gnode{
		"__typename": kind, "totalCount": len(all), "nodes": all[from:to],
		"edges": each(all[from:to], func(g gnode) gnode { return gnode{"__typename": "Edge", "node": g, "cursor": cursor(to)} }),
		"pageInfo": gnode{
			"__typename": "PageInfo", "hasNextPage": to < len(all), "hasPreviousPage": from > 0,
			"endCursor": cursor(to), "startCursor": cursor(from),
		},
	}
}
