package app

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// cluster starts nodes of one database, the first of which is set up.
func cluster(t *testing.T, count int, more ...string) (all []*yard) {
	t.Helper()
	flags := []string{"--database", dbtest.DSN(t, db.Postgres), "--cluster", "on", "--blob", "off",
		"--master-key", strings.Repeat("cd", 32)}
	flags = append(flags, more...)
	all = append(all, start(t, db.SQLite, flags...))
	for range count - 1 {
		y := boot(t, db.SQLite, flags...)
		y.owner, y.user, y.acct = all[0].owner, all[0].user, all[0].acct
		all = append(all, y)
	}
	for i, y := range all {
		patience.Until(t, fmt.Sprintf("node %d has all routes", i), func() bool { return len(y.bus.Routed()) == count-1 })
		patience.Until(t, fmt.Sprintf("node %d names all nodes to boxes", i), func() bool {
			return strings.Count(y.bus.URL(), ",") == count-1
		})
	}
	return all
}

// TestThreeNodes walks one task over three nodes: the repository is at one, the box at another,
// the task is filed at the third, and each step is heard of and seen elsewhere.
func TestThreeNodes(t *testing.T) {
	t.Parallel()
	all := cluster(t, 3)
	a, b, c := all[0], all[1], all[2]
	c.push("acme/web", map[string]string{"README": "hello\n",
		".svc/policy.yml": "version: 1\nreview: {mode: off}\nchecks: {command: 'test -f done', timeout: 5m}\n"})
	if _, here, err := c.nodeHome("acme", "web"); !here || err != nil {
		t.Fatalf("the repository is not where it was pushed: %v", err)
	}
	for _, y := range all {
		y.send("GET", "/readyz", "", "").want(http.StatusOK)
		if got, err := y.host.Head(t.Context(), builtIn("acme", "web"), "main"); err != nil || len(got) != 40 {
			t.Errorf("the head of a repository elsewhere: %q, %v", got, err)
		}
	}
	a.send("PUT", "/v1/templates/script", a.owner,
		`{"agent": "command", "isolation": "none", "command": ["sh", "-c", "echo yes >done && git add -A && git commit -qm done && echo Done."]}`).want(200)
	var enrolled struct{ Token string }
	decode(t, a.send("POST", "/v1/runners/enrollments", a.owner, `{}`).want(201), &enrolled)
	a.box(enrolled.Token)
	var made struct {
		ID string `json:"task_id"`
	}
	decode(t, b.send("POST", "/v1/tasks", b.owner,
		`{"repo": "acme/web", "title": "Work", "problem": "Do it.", "template": "script"}`).want(202), &made)
	var p shownPull
	patience.Until(t, "the check has passed, as seen at the node of the repository", func() bool {
		var page struct{ Data []shownPull }
		decode(t, c.send("GET", "/v1/repos/acme/web/prs", c.owner, "").want(200), &page)
		if why := c.failure(made.ID); why != "" {
			t.Fatal(why)
		}
		if len(page.Data) > 0 {
			p = page.Data[0]
		}
		return p.Checks == "passed"
	})
	merged := a.hear("/v1/streams?topics=tasks", a.owner, nil, func(heard answer) bool {
		if p.ID != "" && bytes.Contains(heard.body, []byte("event: ready")) {
			c.send("POST", "/v1/prs/"+p.ID+"/approve-pending", c.owner, fmt.Sprintf(`{"head_sha": %q}`, p.HeadSHA)).want(200)
			p.ID = ""
		}
		return bytes.Contains(heard.body, []byte("merged"))
	})
	if merged.StatusCode != http.StatusOK {
		t.Errorf("the stream answers %d: %s", merged.StatusCode, merged.body)
	}
	if content, _, err := b.host.ReadFile(t.Context(), builtIn("acme", "web"), "main", "done"); err != nil || string(content) != "yes\n" {
		t.Errorf("what was merged: %q, %v", content, err)
	}

	// The node of the repository stops: the others go on, and say which one has it.
	name := c.nodes.Self.Name
	c.stop()
	patience.Until(t, "the node is not live", func() bool { return len(a.nodes.Live()) == 2 })
	_, err := a.host.Head(t.Context(), builtIn("acme", "web"), "main")
	if f := fault.From(err); f.Slug != "repository-away" || f.Kind != fault.Unavailable || !strings.Contains(f.Detail, name) {
		t.Errorf("a repository that is away: %v", err)
	}
	const refs = "/git/acme/web.git/info/refs?service=git-upload-pack"
	as := func(token string) []string {
		return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+token))}
	}
	away := a.send("GET", refs, "", "", as(a.owner)...).want(http.StatusServiceUnavailable)
	if !strings.Contains(string(away.body), name) || away.Header.Get("Retry-After") == "" {
		t.Errorf("a git client is told %s", away.body)
	}
	rival := a.tenant("rival")
	bob := a.person("bob", rival, policy.Owner)
	for status, header := range map[int][]string{401: nil, 404: as(a.mint(rival, &bob, policy.Owner.Ceiling(), nil))} {
		hidden := a.send("GET", refs, "", "", header...).want(status)
		none := a.send("GET", strings.Replace(refs, "web", "none", 1), "", "", header...).want(status)
		if string(hidden.body) != string(none.body) {
			t.Errorf("who may not read a repository is told %s when it is away, and %s of none", hidden.body, none.body)
		}
	}
	b.push("acme/other", map[string]string{"README": "hello\n"})
	if _, here, err := b.nodeHome("acme", "other"); !here || err != nil {
		t.Error("a repository is not made where it is pushed", err)
	}
	for _, y := range []*yard{a, b} {
		y.send("GET", "/readyz", "", "").want(http.StatusOK)
	}
}

// nodeHome answers whether a repository is at this node.
func (y *yard) nodeHome(owner, name string) (node string, here bool, err error) {
	n, ok, err := nodeList{y.App, ""}.Home(y.t.Context(), owner, name)
	if err == nil && !ok {
		err = fmt.Errorf("%s/%s has no home", owner, name)
	}
	return n.ID, n.ID == y.nodes.Self.ID, err
}

// TestNodesHaveOneLimit holds that what a credential has used up at one node it has not at another, without Redis.
func TestNodesHaveOneLimit(t *testing.T) {
	t.Parallel()
	all := cluster(t, 2, "--rate-limits", "on")
	a, b := all[0], all[1]
	const most = 120 // writes that name no conversation
	bob := a.person("bob", a.acct, policy.Owner)
	token := a.mint(a.acct, &bob, policy.Owner.Ceiling(), nil)
	write := func(y *yard) answer { return y.send("POST", "/v1/tasks/none/cancel", token, "{}") }
	let := 0
	patience.Until(t, "all that one credential may write is written, some at each node", func() bool {
		for _, y := range []*yard{a, b} {
			switch got := write(y); got.StatusCode {
			case http.StatusNotFound:
				let++
			case http.StatusTooManyRequests: // the last ones may be held for the other node for a moment
			default:
				got.want(http.StatusNotFound)
			}
		}
		return let >= most
	})
	if let > most {
		t.Errorf("%d got in", let)
	}
	for _, y := range []*yard{a, b} {
		refused := write(y).want(http.StatusTooManyRequests)
		if refused.Header.Get("Retry-After") == "" {
			t.Errorf("a refusal does not say when to try again: %s", refused.body)
		}
	}
}
