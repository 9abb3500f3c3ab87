package github_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/proof/github"
)

// TestMergeability holds that a conflict and a base that moves are seen late.
func TestMergeability(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{MergeableAfter: 2})
	p, path := w.opened()
	states := func() (out []string) {
		for range 3 {
			a := w.do(200, "GET", path, nil)
			out = append(out, fmt.Sprint(a.at("mergeable"), " ", a.at("mergeable_state")))
		}
		return out
	}
	if got := fmt.Sprint(states()); got != "[<nil> unknown <nil> unknown true clean]" {
		t.Errorf("mergeable is %s", got)
	}
	w.repo.Commit(w.ann, "main", "In the way", map[string]string{"cart.go": lines(1, 10) + "mine\n" + lines(12, 30)})
	if got := fmt.Sprint(states()); got != "[<nil> unknown <nil> unknown false dirty]" {
		t.Errorf("after a conflict mergeable is %s", got)
	}
	w.do(405, "PUT", path+"/merge", object{"sha": p.Head()})
	w.do(409, "POST", "/repos/acme/shop/merges", object{"base": "feature", "head": "main"})
}

// TestMergeMethods holds what each method leaves in git.
func TestMergeMethods(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]string{
		"merge":  "Merge pull request #1 from acme/feature|Second|First|The first files",
		"squash": "feature (#1)|The first files",
		"rebase": "Second|First|The first files",
	} {
		w := newWorld(t, github.Options{})
		w.repo.Commit(w.bob, "feature", "First", map[string]string{"a": "1\n"})
		w.repo.Commit(w.bob, "feature", "Second", map[string]string{"b": "2\n"})
		p := w.repo.OpenPull(w.bob, github.NewPull{Head: "feature"})
		w.repo.DeleteHeads(true)
		path := fmt.Sprintf("/repos/acme/shop/pulls/%d", p.Number)
		merged := w.do(200, "PUT", path+"/merge", object{"sha": p.Head(), "merge_method": method})
		subjects := mustGit(t, w.repo.Dir(), "log", "--topo-order", "--format=%s", "main")
		if got := strings.ReplaceAll(subjects, "\n", "|"); got != want {
			t.Errorf("%s left %s, want %s", method, got, want)
		}
		if w.repo.Head("feature") != "" || w.repo.Head("main") != merged.at("sha") || p.Merged() != merged.at("sha") {
			t.Errorf("%s: main is at %s, feature at %q, merged %v", method, w.repo.Head("main"), w.repo.Head("feature"), merged.at("sha"))
		}
	}
	w := newWorld(t, github.Options{})
	p, path := w.opened()
	w.repo.Methods("squash")
	refused := func(method string) {
		t.Helper()
		a := w.do(405, "PUT", path+"/merge", object{"sha": p.Head(), "merge_method": method})
		if !strings.Contains(string(a.text), "not allowed on this repository") {
			t.Errorf("refused with %s", a.text)
		}
	}
	w.do(422, "PUT", path+"/merge", object{"sha": p.Head(), "merge_method": "octopus"})
	refused("merge")
	w.repo.Methods("merge", "squash", "rebase")
	w.repo.Rules(w.ann, github.Ruleset{Methods: []string{"merge", "squash"}})
	w.repo.Rules(w.ann, github.Ruleset{Linear: true})
	refused("rebase")
	refused("merge")
	w.do(200, "GET", "/repos/acme/shop/rules/branches/main", nil)
	w.repo.ClearRules()
	w.repo.Push(w.ann, "main", p.Head()) // merged by a push
	if got := w.do(200, "GET", path, nil); got.at("merged") != true || got.at("state") != "closed" {
		t.Errorf("after a push of its head it is %v", got.at("state"))
	}
}

// TestStacks holds what becomes of a pull request whose base is the head of another.
func TestStacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	w.repo.Commit(w.ann, "low", "Low", map[string]string{"low": "1\n"})
	w.repo.Push(w.ann, "high", w.repo.Head("low"))
	w.repo.Commit(w.ann, "high", "High", map[string]string{"high": "1\n"})
	w.repo.Push(w.ann, "odd", w.repo.Head("low"))
	low := w.repo.OpenPull(w.ann, github.NewPull{Head: "low"})
	high := w.repo.OpenPull(w.ann, github.NewPull{Head: "high", Base: "low"})
	onOdd := w.repo.OpenPull(w.ann, github.NewPull{Head: "high", Base: "odd"})
	w.repo.DeleteHeads(true)
	low.Merge(w.ann, "merge")
	if high.Base() != "main" || high.State().State != "open" {
		t.Errorf("the upper one is %s, into %s", high.State().State, high.Base())
	}
	w.repo.Push(w.ann, "odd", "")
	if onOdd.State().State != "closed" {
		t.Error("a pull request without a base is open")
	}
	path := fmt.Sprintf("/repos/acme/shop/pulls/%d", high.Number)
	w.do(200, "PATCH", path, object{"state": "closed"})
	w.repo.Amend(w.ann, "high", "main", "Anew", map[string]string{"high": "2\n"})
	if a := w.do(422, "PATCH", path, object{"state": "open"}); !strings.Contains(string(a.text), "force-pushed") {
		t.Errorf("refused with %s", a.text)
	}
}

// TestRequiredChecks holds the rules of a branch: names, sources, conclusions,
// approvals, strictness.
func TestRequiredChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	p, path := w.opened()
	head := p.Head()
	ci := w.NewApp(github.NewApp{Name: "CI", Permissions: map[string]string{"checks": "write"}})
	other := w.NewApp(github.NewApp{Name: "Other", Permissions: map[string]string{"checks": "write"}})
	w.repo.Rules(w.ann, github.Ruleset{Checks: []github.Required{{Name: "build", App: ci}, {Name: "lint"}}, Reviews: 1, Strict: true})
	refused := func(want string) {
		t.Helper()
		a := w.do(405, "PUT", path+"/merge", object{"sha": head})
		if !strings.Contains(string(a.text), want) {
			t.Errorf("refused with %s, want %s", a.text, want)
		}
	}
	refused("approving review")
	p.Approve(w.Person("nobody"))
	refused("approving review")
	p.Approve(w.bob)
	refused(`\"build\" is expected`)
	w.repo.Check(other, head, "build", "success")
	refused(`\"build\" is expected`)
	build := w.repo.Check(ci, head, "build", "in_progress")
	refused(`\"build\" is in progress`)
	build.Conclude("failure")
	refused(`\"build\" is failing`)
	w.repo.Check(ci, head, "build", "neutral")
	refused(`\"lint\" is expected`)
	w.repo.Check(other, head, "lint", "skipped")
	w.repo.Status(w.ann, head, "lint", "pending")
	refused(`\"lint\" is pending`)
	w.repo.Status(w.ann, head, "lint", "success")
	w.repo.Push(w.ann, "side", w.repo.Head("main"))
	w.repo.Commit(w.ann, "main", "Elsewhere", map[string]string{"x": "y\n"})
	refused("not up to date")
	if state := w.do(200, "GET", path, nil).at("mergeable_state"); state != "unknown" {
		t.Errorf("the state is %v", state)
	}
	if state := w.do(200, "GET", path, nil).at("mergeable_state"); state != "behind" {
		t.Errorf("the state is %v", state)
	}
	w.do(201, "POST", "/repos/acme/shop/merges", object{"base": "feature", "head": "main"})
	head = p.Head()
	w.repo.Check(ci, head, "build", "success")
	w.repo.Check(ci, head, "lint", "success")
	w.do(200, "PUT", path+"/merge", object{"sha": head})
}

// TestWorkflowFiles holds that files of workflows take workflows: write, in a push and
// in a merge.
func TestWorkflowFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	dir := t.TempDir()
	mustGit(t, dir, "clone", "--quiet", withToken(w.repo.CloneURL(), w.inst.Token()), ".")
	mustGit(t, dir, "switch", "--quiet", "-c", "ci")
	mustGit(t, dir, "commit", "--quiet", "--allow-empty", "-m", "empty")
	mustGit(t, dir, "push", "--quiet", "origin", "ci")
	w.repo.Commit(w.ann, "theirs", "A workflow", map[string]string{".github/workflows/ci.yml": "on: push\n"})
	p := w.repo.OpenPull(w.ann, github.NewPull{Head: "theirs"})
	path := fmt.Sprintf("/repos/acme/shop/pulls/%d/merge", p.Number)
	a := w.do(403, "PUT", path, object{"sha": p.Head()})
	if !strings.Contains(string(a.text), "refusing to allow a GitHub App to create or update workflow") {
		t.Errorf("refused with %s", a.text)
	}
	mustGit(t, dir, "pull", "--quiet", "--no-rebase", "origin", "theirs") // they are on a branch already
	mustGit(t, dir, "push", "--quiet", "origin", "ci")
	mustGit(t, dir, "rm", "--quiet", ".github/workflows/ci.yml")
	mustGit(t, dir, "commit", "--quiet", "-m", "none")
	out, err := git(t, dir, "push", "origin", "ci")
	if err == nil || !strings.Contains(out, "refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission") {
		t.Errorf("the push said %s", out)
	}
	more := everything()
	more["workflows"] = "write"
	w.app.Ask(more, allEvents)
	w.do(403, "PUT", path, object{"sha": p.Head()}) // not accepted yet
	w.inst.Accept(w.ann)
	mustGit(t, dir, "push", "--quiet", withToken(w.repo.CloneURL(), w.inst.Token()), "ci")
	w.do(200, "PUT", path, object{"sha": p.Head()})
}

const enqueue = `mutation($id: ID!, $head: GitObjectID) { enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) {
	mergeQueueEntry { position state headCommit { oid } } } }`

// TestMergeQueue holds the queue: groups on top of each other, checks on their heads,
// what fails is dropped, what passes is merged.
func TestMergeQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, github.Options{})
	ci := w.NewApp(github.NewApp{Name: "CI", Permissions: map[string]string{"checks": "write"}})
	w.repo.Rules(w.ann, github.Ruleset{Checks: []github.Required{{Name: "build", App: ci}}, Queue: &github.QueueRule{Minutes: 30}})
	var pulls []*github.Pull
	var nodes []any
	for _, name := range []string{"one", "two", "three"} {
		head := w.repo.Commit(w.ann, name, name, map[string]string{name: name + "\n"})
		pulls = append(pulls, w.repo.OpenPull(w.ann, github.NewPull{Head: name}))
		nodes = append(nodes, w.do(200, "GET", fmt.Sprintf("/repos/acme/shop/pulls/%d", len(pulls)), nil).at("node_id"))
		_, wrong := w.graph(w.inst.Token(), enqueue, object{"id": nodes[len(nodes)-1], "head": head})
		if !strings.Contains(wrong, "UNPROCESSABLE") {
			t.Errorf("queued without its checks: %q", wrong)
		}
		w.repo.Check(ci, head, "build", "success")
	}
	w.do(405, "PUT", "/repos/acme/shop/pulls/1/merge", object{"sha": pulls[0].Head()})
	if _, wrong := w.graph(w.inst.Token(), enqueue, object{"id": nodes[0], "head": strings.Repeat("a", 40)}); wrong == "" {
		t.Error("queued with another head")
	}
	w.take()
	for i, node := range nodes {
		data, wrong := w.graph(w.inst.Token(), enqueue, object{"id": node, "head": pulls[i].Head()})
		if wrong != "" || at(data, "enqueuePullRequest.mergeQueueEntry.position") != float64(i+1) {
			t.Fatalf("queued as %v: %s", data, wrong)
		}
	}
	groups := map[string]string{}
	for _, l := range w.take() {
		if l.event == "merge_group" {
			groups[at(l.body, "merge_group.head_sha").(string)] = at(l.body, "merge_group.head_ref").(string)
		}
	}
	if len(groups) != 3 || !strings.HasPrefix(groups[pulls[1].Group()], "refs/heads/gh-readonly-queue/main/pr-2-") {
		t.Fatalf("the groups are %v", groups)
	}
	// The second fails when it is first: it goes, and the third is built anew.
	second, third := pulls[1].Group(), pulls[2].Group()
	w.repo.Check(ci, second, "build", "failure")
	w.repo.Check(ci, pulls[0].Group(), "build", "success")
	if pulls[0].Merged() == "" || pulls[1].Queued() || !pulls[2].Queued() || pulls[2].Group() == third {
		t.Errorf("merged %q; queued %v, %v", pulls[0].Merged(), pulls[1].Queued(), pulls[2].Queued())
	}
	got := w.told()
	for _, want := range []string{"merge_group destroyed", "pull_request closed", "pull_request dequeued", "merge_group checks_requested"} {
		if !strings.Contains(got, want) {
			t.Errorf("not told of %s: %s", want, got)
		}
	}
	w.Advance(31 * time.Minute)
	if pulls[2].Queued() {
		t.Error("a check that never reports holds the queue for ever")
	}
	if _, wrong := w.graph(w.inst.Token(), enqueue, object{"id": nodes[2], "head": nil}); wrong != "" {
		t.Fatal(wrong)
	}
	leave := `mutation($id: ID!) { dequeuePullRequest(input: {id: $id}) { mergeQueueEntry { id } } }`
	if _, wrong := w.graph(w.inst.Token(), leave, object{"id": nodes[2]}); wrong != "" {
		t.Error(wrong)
	}
	if _, wrong := w.graph(w.inst.Token(), leave, object{"id": nodes[2]}); wrong == "" {
		t.Error("left twice")
	}
}
