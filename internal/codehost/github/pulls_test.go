package github

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

const (
	once1 codehost.Once = "0199a000-0000-7000-8000-000000000001"
	once2 codehost.Once = "0199a000-0000-7000-8000-000000000002"
	once3 codehost.Once = "0199a000-0000-7000-8000-000000000003"
)

// wants fails the test unless err is the fault.
func wants(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// as is the error of a type in an error, or fails the test.
func as[T error](t *testing.T, what string, err error) (out T) {
	t.Helper()
	if !errors.As(err, &out) {
		t.Fatalf("%s: %v, want %T", what, err, out)
	}
	return out
}

// lose makes the peer do the work of an operation once and lose its answer, and fail
// before it is done the time before that.
func (w *world) lose(operation string) {
	w.peer.Break(peer.Fault{Operation: operation, Effect: peer.Fail, Times: 1})
	w.peer.Break(peer.Fault{Operation: operation, Effect: peer.Lose, Times: 1})
}

// twice calls a function until it is not busy, which must take two lost answers.
func twice[T any](t *testing.T, call func() (T, error)) T {
	t.Helper()
	for range 2 {
		_, err := call()
		as[*codehost.BusyError](t, "a lost answer", err)
	}
	out, err := call()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOpenPull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	w.repo.Push(w.bob, "svc/a", w.repo.Head("main"))
	n := codehost.NewPull{Title: "Add a", Body: "Why.", Head: "svc/a", Base: "main", Draft: true}
	_, err := w.host.OpenPull(ctx, w.shop, once1, n)
	wants(t, "no commits", err, codehost.ErrNoCommits)
	_, err = w.host.OpenPull(ctx, w.shop, once1, codehost.NewPull{Title: "x", Head: "gone", Base: "main"})
	wants(t, "no branch", err, codehost.ErrNotFound)

	head := w.repo.Commit(w.bob, "svc/a", "a", map[string]string{"a.txt": "a\n"})
	w.lose("POST /repos/{owner}/{repo}/pulls")
	p := twice(t, func() (codehost.Pull, error) { return w.host.OpenPull(ctx, w.shop, once1, n) })
	if p.Title != "Add a" || p.Body != "Why." || !p.Open || !p.Draft || p.HeadSHA != head || p.HeadRef != "svc/a" || p.BaseRef != "main" ||
		p.Fork || p.HeadOwner != "acme" || !p.Author.Own || !p.Author.Bot || p.NodeID == "" || p.CreatedAt.IsZero() {
		t.Errorf("opened %+v", p)
	}
	all, err := w.host.OpenPulls(ctx, w.shop)
	if err != nil || len(all) != 1 || all[0].Number != p.Number {
		t.Errorf("open are %+v, %v", all, err)
	}
}

func TestPullAndItsTag(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	number := int64(w.pull("svc/a", map[string]string{"a.txt": "a\n"}).Number)
	p, tag, err := w.host.Pull(ctx, w.shop, number, "")
	if err != nil || tag == "" || p.Author.Login != "bob" || p.Author.Own || p.Author.Bot {
		t.Fatalf("%+v %q, %v", p, tag, err)
	}
	for p.Mergeable == nil { // the first read has GitHub find out
		if p, tag, err = w.host.Pull(ctx, w.shop, number, ""); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = w.host.Pull(ctx, w.shop, number, tag)
	wants(t, "with its tag", err, codehost.ErrNotModified)
	w.repo.Commit(w.bob, "svc/a", "more", map[string]string{"a.txt": "b\n"})
	p, _, err = w.host.Pull(ctx, w.shop, number, tag)
	if err != nil || p.HeadSHA != w.repo.Head("svc/a") {
		t.Errorf("after a push: %+v, %v", p, err)
	}
	_, _, err = w.host.Pull(ctx, w.shop, 999, "")
	wants(t, "no pull request", err, codehost.ErrNotFound)
}

// TestForks holds that a pull request of a fork is one, also once the fork is deleted.
func TestForks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	fork := w.repo.Fork(w.peer.Person("eve"))
	fork.Commit(w.peer.Person("eve"), "main", "evil", map[string]string{"evil.txt": "x\n"})
	n := int64(w.repo.OpenPull(w.peer.Person("eve"), peer.NewPull{Title: "Evil", Head: "eve:main", Base: "main"}).Number)
	p, _, err := w.host.Pull(t.Context(), w.shop, n, "")
	if err != nil || !p.Fork || p.HeadOwner != "eve" {
		t.Errorf("of a fork: %+v, %v", p, err)
	}
	content, _, err := w.host.ReadFile(t.Context(), w.shop, p.HeadSHA, "evil.txt")
	if err != nil || string(content) != "x\n" {
		t.Errorf("a file of the fork: %q, %v", content, err)
	}
	fork.Delete(w.peer.Person("eve"))
	p, _, err = w.host.Pull(t.Context(), w.shop, n, "")
	if err != nil || !p.Fork || p.HeadOwner != "" {
		t.Errorf("of a deleted fork: %+v, %v", p, err)
	}
}

func TestEditPull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	pull := w.pull("svc/a", map[string]string{"a.txt": "a\n"})
	w.repo.Push(w.bob, "next", w.repo.Head("main"))
	n := int64(pull.Number)
	yes, no := true, false
	title, body, base := "Title", strings.Repeat("é", 70000), "next"
	p, err := w.host.EditPull(ctx, w.shop, once1, n, codehost.PullEdit{
		Title: &title, Body: &body, Base: &base, Draft: &yes, AddLabels: []string{"bug", "new one"}, RemoveLabels: []string{"enhancement"},
	})
	slices.Sort(p.Labels)
	if err != nil || p.Title != title || !p.Draft || p.BaseRef != "next" || !slices.Equal(p.Labels, []string{"bug", "new one"}) {
		t.Fatalf("edited %+v, %v", p, err)
	}
	if count := len(p.Body); count > longest || !strings.HasSuffix(p.Body, cutNote) {
		t.Errorf("the body has %d bytes", count)
	}
	p, err = w.host.EditPull(ctx, w.shop, once2, n, codehost.PullEdit{Draft: &no, RemoveLabels: []string{"bug", "bug"}})
	if err != nil || p.Draft || len(p.Labels) != 1 {
		t.Errorf("ready: %+v, %v", p, err)
	}
	head := pull.Head()
	at := strings.Repeat("1", 40)
	p, err = w.host.EditPull(ctx, w.shop, once3, n, codehost.PullEdit{Open: &no, DeleteBranch: "svc/a", ExpectHead: at})
	if err != nil || p.Open || w.repo.Head("svc/a") != head {
		t.Errorf("closed: %+v, %v", p, err)
	}
	p, err = w.host.EditPull(ctx, w.shop, once3, n, codehost.PullEdit{Open: &no, DeleteBranch: "svc/a", ExpectHead: head})
	if err != nil || p.Open || w.repo.Head("svc/a") != "" {
		t.Errorf("closed, and its branch is at %s: %+v, %v", w.repo.Head("svc/a"), p, err)
	}
	merged := w.pull("svc/b", map[string]string{"b.txt": "b\n"})
	merged.Merge(w.ann, "merge")
	_, err = w.host.EditPull(ctx, w.shop, once1, int64(merged.Number), codehost.PullEdit{Open: &no})
	wants(t, "close a merged one", err, codehost.ErrMerged)
	if _, err = w.host.EditPull(ctx, w.shop, once1, int64(merged.Number), codehost.PullEdit{Title: &title}); err != nil {
		t.Errorf("the title of a merged one: %v", err)
	}
}

func TestPullFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	pull := w.pull("svc/a", map[string]string{"cart.go": numbered(30, 5, 25), "new.txt": "n\n"})
	files, whole, err := w.host.PullFiles(t.Context(), w.shop, int64(pull.Number))
	if err != nil || !whole || len(files) != 2 {
		t.Fatalf("%+v %v, %v", files, whole, err)
	}
	cart := files[0]
	if cart.Path != "cart.go" || cart.Status != "modified" || cart.Added != 2 || cart.Deleted != 2 || len(cart.Hunks) != 2 ||
		cart.Hunks[0].NewStart != 2 || cart.Hunks[0].NewLines != 7 || len(cart.Hunks[0].Lines) != 8 {
		t.Errorf("cart.go: %+v", cart)
	}
	if files[1].Status != "added" || files[1].Hunks[0].NewStart != 1 {
		t.Errorf("new.txt: %+v", files[1])
	}
	cut := newWorld(t, peer.Options{MaxFiles: 1})
	pull = cut.pull("svc/a", map[string]string{"a": "a\n", "b": "b\n"})
	files, whole, err = cut.host.PullFiles(t.Context(), cut.shop, int64(pull.Number))
	if err != nil || whole || len(files) != 1 {
		t.Errorf("cut: %+v %v, %v", files, whole, err)
	}
}

func TestMergePull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	pull := w.pull("svc/a", map[string]string{"a.txt": "a\n"})
	n := int64(pull.Number)
	m := codehost.PullMerge{HeadSHA: strings.Repeat("1", 40), Method: codehost.MethodSquash, Title: "Add a", Body: "Body."}
	_, err := w.host.MergePull(ctx, w.shop, once1, n, m)
	wants(t, "another head", err, codehost.ErrHeadMoved)
	m.HeadSHA = pull.Head()
	w.repo.Methods("merge")
	_, err = w.host.MergePull(ctx, w.shop, once1, n, m)
	wants(t, "a method that is off", err, codehost.ErrMethodRefused)
	w.repo.Methods("merge", "squash")
	w.repo.Rules(w.ann, peer.Ruleset{Name: "main", Checks: []peer.Required{{Name: "build"}}, Pull: true, Reviews: 1})
	_, err = w.host.MergePull(ctx, w.shop, once1, n, m)
	if blocked := as[*codehost.BlockedError](t, "a rule", err); len(blocked.Missing) == 0 {
		t.Errorf("blocked by nothing: %v", err)
	}
	w.repo.ClearRules()
	w.lose("PUT /repos/{owner}/{repo}/pulls/{pull_number}/merge")
	sha := twice(t, func() (string, error) { return w.host.MergePull(ctx, w.shop, once1, n, m) })
	if sha != pull.Merged() || sha != w.repo.Head("main") {
		t.Errorf("merged as %s, not %s", sha, pull.Merged())
	}
	p, _, err := w.host.Pull(ctx, w.shop, n, "")
	if err != nil || !p.Merged || p.MergeSHA != sha || p.MergedBy == nil || !p.MergedBy.Own || p.MergedAt == nil || p.Open {
		t.Errorf("merged: %+v, %v", p, err)
	}
	if done, err := w.host.Landed(ctx, w.shop, "main", m.HeadSHA); err != nil || done != sha {
		t.Errorf("landed by %s, %v", done, err)
	}

	by := w.pull("svc/b", map[string]string{"b.txt": "b\n"}) // a person squashes it in the browser
	head := by.Head()
	by.Merge(w.ann, "squash")
	if done, err := w.host.Landed(ctx, w.shop, "main", head); err != nil || done != by.Merged() {
		t.Errorf("landed by %s, %v, not %s", done, err, by.Merged())
	}

	late := w.pull("svc/c", map[string]string{"c.txt": "c\n"})
	w.repo.Commit(w.ann, "main", "other", map[string]string{"c.txt": "other\n"})
	for range 2 { // before and after GitHub knows
		m = codehost.PullMerge{HeadSHA: late.Head(), Method: codehost.MethodMerge}
		_, err = w.host.MergePull(ctx, w.shop, once2, int64(late.Number), m)
		wants(t, "a conflict", err, codehost.ErrConflict)
	}
}

// TestWorkflowFiles holds that what touches workflow files says which permission it
// needs, in a merge and in a push, and that the switch gives it.
func TestWorkflowFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	without := w.connect(func(c *Config) { c.Workflows = false })
	if without.Can(codehost.WriteWorkflow) || !w.host.Can(codehost.WriteWorkflow) {
		t.Error("the switch is not told")
	}
	pull := w.pull("svc/a", map[string]string{".github/workflows/ci.yml": "on: push\n"})
	m := codehost.PullMerge{HeadSHA: pull.Head(), Method: codehost.MethodMerge}
	_, err := without.MergePull(ctx, w.shop, once1, int64(pull.Number), m)
	if f := as[*codehost.ForbiddenError](t, "a merge", err); f.Permission != "workflows: write" {
		t.Errorf("it needs %q", f.Permission)
	}
	o := codehost.WriteOptions{
		Branch: "main", Parent: w.repo.Head("main"), Files: map[string][]byte{".github/workflows/x.yml": []byte("on: push\n")},
		Title: "x", Author: codehost.Person{Name: "A", Email: "a@b"}, Committer: codehost.Person{Name: "A", Email: "a@b"},
	}
	_, err = without.WriteFiles(ctx, w.shop, o)
	if f := as[*codehost.ForbiddenError](t, "a push", err); f.Permission != "workflows: write" {
		t.Errorf("it needs %q", f.Permission)
	}
	if o.Parent, err = w.host.WriteFiles(ctx, w.shop, o); err != nil {
		t.Error(err)
	}
	if _, err := w.host.MergePull(ctx, w.shop, once1, int64(pull.Number), m); err != nil {
		t.Error(err)
	}
}

func TestMergeQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	pull := w.pull("svc/a", map[string]string{"a.txt": "a\n"})
	n := int64(pull.Number)
	as[*codehost.BlockedError](t, "no queue", w.host.Enqueue(ctx, w.shop, once1, n, pull.Head()))
	w.repo.Rules(w.ann, peer.Ruleset{Name: "queue", Checks: []peer.Required{{Name: "build"}}, Queue: &peer.QueueRule{}})
	wants(t, "another head", w.host.Enqueue(ctx, w.shop, once1, n, strings.Repeat("1", 40)), codehost.ErrHeadMoved)
	as[*codehost.BlockedError](t, "without the check", w.host.Enqueue(ctx, w.shop, once1, n, pull.Head()))
	w.repo.Status(w.bob, pull.Head(), "build", "success")
	for range 2 {
		if err := w.host.Enqueue(ctx, w.shop, once1, n, pull.Head()); err != nil {
			t.Fatal(err)
		}
	}
	if e, in, err := w.host.QueueEntry(ctx, w.shop, n); err != nil || !in || e.Position != 1 || e.GroupSHA != pull.Group() {
		t.Errorf("its place is %+v, %t, %v", e, in, err)
	}
	if !pull.Queued() {
		t.Error("it is not in the queue")
	}
	for range 2 {
		if err := w.host.Dequeue(ctx, w.shop, once2, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, in, err := w.host.QueueEntry(ctx, w.shop, n); err != nil || in {
		t.Errorf("it has a place: %t, %v", in, err)
	}
	if pull.Queued() {
		t.Error("it is in the queue")
	}
}
