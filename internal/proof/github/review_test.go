package github_test

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/proof/github"
)

// opened makes a pull request that changes line 11 and line 25 of cart.go.
func (w *world) opened() (*github.Pull, string) {
	w.t.Helper()
	w.repo.Commit(w.ann, "feature", "A feature", map[string]string{
		"cart.go": lines(1, 10) + "changed\n" + lines(12, 24) + "also\n" + lines(26, 30),
	})
	p := w.repo.OpenPull(w.ann, github.NewPull{Head: "feature"})
	return p, fmt.Sprintf("/repos/acme/shop/pulls/%d", p.Number)
}

// TestAnchors holds GitHub's rules for lines of a diff: a review is posted whole or
// not at all.
func TestAnchors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	p, path := w.opened()
	good := object{"path": "cart.go", "line": 11, "body": "good"}
	for name, c := range map[string]struct {
		comment object
		status  int
	}{
		"a changed line":             {object{"path": "cart.go", "line": 11, "body": "b"}, 200},
		"the line that was replaced": {object{"path": "cart.go", "line": 11, "side": "LEFT", "body": "b"}, 200},
		"context before":             {object{"path": "cart.go", "line": 8, "body": "b"}, 200},
		"context after":              {object{"path": "cart.go", "line": 14, "side": "LEFT", "body": "b"}, 200},
		"a range":                    {object{"path": "cart.go", "start_line": 9, "line": 12, "body": "b"}, 200},
		"a position":                 {object{"path": "cart.go", "position": 5, "body": "b"}, 200},
		"outside of the hunk":        {object{"path": "cart.go", "line": 7, "body": "b"}, 422},
		"between hunks":              {object{"path": "cart.go", "line": 18, "body": "b"}, 422},
		"a range over two hunks":     {object{"path": "cart.go", "start_line": 9, "line": 25, "body": "b"}, 422},
		"a range that is no range":   {object{"path": "cart.go", "start_line": 11, "line": 11, "body": "b"}, 422},
		"a range that ends first":    {object{"path": "cart.go", "start_line": 12, "line": 11, "body": "b"}, 422},
		"a file that is not touched": {object{"path": "README.md", "line": 1, "body": "b"}, 422},
		"a whole file":               {object{"path": "cart.go", "subject_type": "file", "body": "b"}, 422},
		"a position outside":         {object{"path": "cart.go", "position": 90, "body": "b"}, 422},
		"no text":                    {object{"path": "cart.go", "line": 11, "body": ""}, 422},
		"a text that is too long":    {object{"path": "cart.go", "line": 11, "body": strings.Repeat("x", 65537)}, 422},
	} {
		before := len(p.Threads())
		a := w.ask(w.inst.Token(), "POST", path+"/reviews", object{"event": "COMMENT", "comments": []object{good, c.comment}})
		want := before
		if c.status == 200 {
			want += 2
		}
		if after := len(p.Threads()); a.status != c.status || after != want {
			t.Errorf("%s: %d %s, and %d threads became %d", name, a.status, a.text, before, after)
		}
	}
	w.do(422, "POST", path+"/reviews", object{"event": "COMMENT", "body": ""})
	w.do(422, "POST", path+"/reviews", object{"event": "COMMENT", "body": "b", "commit_id": w.repo.Head("main")})
	w.do(200, "POST", path+"/reviews", object{"event": "APPROVE"})
	own := w.do(201, "POST", "/repos/acme/shop/pulls", object{"title": "own", "head": "feature", "base": w.side()})
	w.do(422, "POST", fmt.Sprintf("/repos/acme/shop/pulls/%v/reviews", own.at("number")), object{"event": "APPROVE"})
}

// TestOrphanReviews holds the oddity that only the body of a refused review is kept.
func TestOrphanReviews(t *testing.T) {
	t.Parallel()
	for _, odd := range []bool{false, true} {
		w := newWorld(t, github.Options{OrphanReviews: odd})
		p, path := w.opened()
		w.do(422, "POST", path+"/reviews", object{"event": "COMMENT", "body": "b", "comments": []object{
			{"path": "cart.go", "line": 11, "body": "good"}, {"path": "cart.go", "line": 1, "body": "bad"},
		}})
		if kept := len(p.Reviews()) == 1; kept != odd || len(p.Threads()) != 0 {
			t.Errorf("odd is %v: %v, %v", odd, p.Reviews(), p.Threads())
		}
	}
}

// side makes another branch to merge into.
func (w *world) side() string {
	w.repo.Push(w.ann, "side", w.repo.Head("main"))
	return "side"
}

// TestForcePush holds what GitHub does to reviews when a head moves.
func TestForcePush(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	w.repo.Rules(w.ann, github.Ruleset{Branches: []string{"main"}, Reviews: 1, DismissStale: true})
	w.repo.Rules(w.ann, github.Ruleset{Branches: []string{"release/*"}, Checks: []github.Required{{Name: "never"}}})
	p, path := w.opened()
	first := p.Head()
	if _, err := p.Review(w.bob, github.NewReview{Event: "APPROVE", Body: "good", Comments: []github.NewComment{
		{Path: "cart.go", Line: 11, Body: "here"}, {Path: "cart.go", Line: 25, Body: "there"},
	}}); err != nil {
		t.Fatal(err)
	}
	// The base moves in another file, and the branch is rebased: the same patch.
	w.repo.Commit(w.ann, "main", "Elsewhere", map[string]string{"README.md": "# Store\n"})
	same := map[string]string{"cart.go": lines(1, 10) + "changed\n" + lines(12, 24) + "also\n" + lines(26, 30)}
	second := w.repo.Amend(w.ann, "feature", "main", "A feature", same)
	review := w.do(200, "GET", path+"/reviews", nil).list()[0]
	if review["commit_id"] != second || review["state"] != "APPROVED" {
		t.Errorf("the approval is of %v: %v, the head %s", review["commit_id"], review["state"], second)
	}
	for _, c := range w.do(200, "GET", path+"/comments", nil).list() {
		if c["commit_id"] != second || c["original_commit_id"] != first || c["line"] == nil {
			t.Errorf("the comment is of %v, once %v, at %v", c["commit_id"], c["original_commit_id"], c["line"])
		}
	}
	// Two lines come in front, and line 25 is changed again.
	third := w.repo.Amend(w.ann, "feature", "main", "A feature", map[string]string{
		"cart.go": "new\nnew\n" + lines(1, 10) + "changed\n" + lines(12, 24) + "other\n" + lines(26, 30),
	})
	review = w.do(200, "GET", path+"/reviews", nil).list()[0]
	if review["commit_id"] != second || review["state"] != "DISMISSED" { // as the rule wants of what is stale
		t.Errorf("the approval of another patch is of %v: %v", review["commit_id"], review["state"])
	}
	all := w.do(200, "GET", path+"/comments", nil).list()
	if all[0]["line"] != 13.0 || all[0]["original_line"] != 11.0 || all[1]["line"] != nil || all[1]["commit_id"] != third {
		t.Errorf("the comments are at %v and %v, of %v", all[0]["line"], all[1]["line"], all[1]["commit_id"])
	}
	if got := w.told(); strings.Count(got, "pull_request synchronize") != 2 || !strings.Contains(got, "pull_request_review submitted") {
		t.Errorf("told of %s", got)
	}
}

const threadsQuery = `query($id: ID!, $after: String) { node(id: $id) { ... on PullRequest { reviewThreads(first: 1, after: $after) {
	nodes { id isResolved isOutdated path line comments(first: 10) { nodes { databaseId body author { login } } } }
	pageInfo { hasNextPage endCursor } } } } }`

const wideQuery = `query($owner: String!, $name: String!, $number: Int!) { viewer { login } rateLimit { limit cost remaining resetAt }
	repository(owner: $owner, name: $name) { id databaseId nameWithOwner isArchived isPrivate pullRequest(number: $number) {
		__typename id databaseId number title body url isDraft state merged mergeable headRefOid headRefName baseRefName isInMergeQueue
		isMergeQueueEnabled author { login } updatedAt
		mergeQueueEntry { id position state enqueuedAt enqueuer { login } jump solo headCommit { oid } baseCommit { oid } pullRequest { number } }
		reviewThreads(first: 100) { totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor } nodes { id isResolved isOutdated
			isCollapsed path line originalLine startLine originalStartLine diffSide startDiffSide subjectType resolvedBy { login }
			viewerCanResolve viewerCanUnresolve viewerCanReply comments(last: 5) { totalCount nodes { id databaseId fullDatabaseId body
				author { login } path authorAssociation createdAt updatedAt url outdated line originalLine diffHunk commit { oid }
				originalCommit { oid } pullRequestReview { id databaseId state } } } } } } } }`

// TestWideQuery asks for all that the peer knows, which the judge holds against the
// types of GitHub's schema.
func TestWideQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	w.repo.Rules(w.ann, github.Ruleset{Queue: &github.QueueRule{}, Checks: []github.Required{{Name: "build"}}})
	p, path := w.opened()
	w.do(200, "POST", path+"/reviews", object{"event": "COMMENT", "comments": []object{
		{"path": "cart.go", "line": 11, "body": "one"}, {"path": "cart.go", "start_line": 23, "line": 25, "body": "two"},
	}})
	w.repo.Status(w.ann, p.Head(), "build", "success")
	p.Enqueue(w.ann)
	data, wrong := w.graph(w.inst.Token(), wideQuery, object{"owner": "acme", "name": "shop", "number": p.Number})
	if wrong != "" || at(data, "repository.pullRequest.mergeQueueEntry.headCommit.oid") != p.Group() {
		t.Errorf("%s %v", wrong, data)
	}
	missing := object{"owner": "acme", "name": "nothing", "number": 1}
	if _, wrong = w.graph(w.inst.Token(), wideQuery, missing); !strings.HasPrefix(wrong, "NOT_FOUND") {
		t.Errorf("an unknown repository: %s", wrong)
	}
}

// TestThreads holds that resolving takes contents: write, and that lists have pages.
func TestThreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	p, path := w.opened()
	w.do(200, "POST", path+"/reviews", object{"event": "COMMENT", "comments": []object{
		{"path": "cart.go", "line": 11, "body": "one"}, {"path": "cart.go", "line": 25, "body": "two"},
	}})
	node := w.do(200, "GET", path, nil).at("node_id")
	data, wrong := w.graph(w.inst.Token(), threadsQuery, object{"id": node, "after": nil})
	if wrong != "" {
		t.Fatal(wrong)
	}
	nodes, _ := at(data, "node.reviewThreads.nodes").([]any)
	if len(nodes) != 1 || at(data, "node.reviewThreads.pageInfo.hasNextPage") != true || at(nodes[0], "line") != 11.0 {
		t.Fatalf("the threads are %v", data)
	}
	rest, _ := w.graph(w.inst.Token(), threadsQuery, object{"id": node, "after": at(data, "node.reviewThreads.pageInfo.endCursor")})
	if more, _ := at(rest, "node.reviewThreads.nodes").([]any); len(more) != 1 || at(more[0], "line") != 25.0 {
		t.Errorf("the next page is %v", rest)
	}
	resolve := `mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
	thread := object{"id": at(nodes[0], "id")}
	w.take()
	_, wrong = w.graph(w.narrowed(map[string]string{"pull_requests": "write", "contents": "read"}), resolve, thread)
	if !strings.HasPrefix(wrong, "FORBIDDEN") || p.Threads()[0][0].Resolved {
		t.Errorf("without contents: write: %s", wrong)
	}
	data, wrong = w.graph(w.narrowed(map[string]string{"pull_requests": "write", "contents": "write"}), resolve, thread)
	if wrong != "" || at(data, "resolveReviewThread.thread.isResolved") != true {
		t.Errorf("with contents: write: %s %v", wrong, data)
	}
	if _, wrong = w.graph(w.inst.Token(), strings.Replace(resolve, "resolve", "unresolve", 1), thread); wrong != "" {
		t.Error(wrong)
	}
	if got := w.told(); got != "pull_request_review_thread resolved, pull_request_review_thread unresolved" {
		t.Errorf("told of %s", got)
	}
	if _, wrong = w.graph(w.inst.Token(), resolve, object{"id": "PRRT_nothing"}); !strings.HasPrefix(wrong, "NOT_FOUND") {
		t.Errorf("an unknown thread: %s", wrong)
	}
	p.DeleteComments(w.bob, p.Threads()[0][0].ID)
	if _, wrong = w.graph(w.inst.Token(), resolve, thread); !strings.HasPrefix(wrong, "NOT_FOUND") {
		t.Errorf("a deleted thread: %s", wrong)
	}
}
