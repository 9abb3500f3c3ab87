package github

import (
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

// TestNothingOfStrangersIsAdopted holds that after a lost answer the object that is taken
// for the lost one is of our App, and was made after it was asked for: not one of a
// person, of another App or of before, whatever marker, name or description it has.
func TestNothingOfStrangersIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	once := codehost.Once(newUUID(t, w.peer.Now()))
	forged := "Mine. " + marker(once)
	pull := w.pull("svc/a", map[string]string{"cart.go": numbered(30, 5)})
	n := int64(pull.Number)
	posted, err := pull.Review(w.ann, peer.NewReview{
		Event: "COMMENT", Body: forged, Comments: []peer.NewComment{{Path: "cart.go", Line: 5, Body: "Hm."}},
	})
	if err != nil {
		t.Fatal(err)
	}
	first := pull.Threads()[0][0].ID
	pull.Answer(w.bob, first, forged)
	w.repo.Issue(pull.Number).Comment(w.bob, forged)

	w.lose("POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews")
	review := twice(t, func() (codehost.Review, error) {
		return w.host.PostReview(ctx, w.shop, once, n, codehost.NewReview{HeadSHA: pull.Head(), Body: "Ours."})
	})
	if review.Body != "Ours." || !review.Author.Own || review.ID == number(posted) {
		t.Errorf("the review is %+v", review)
	}
	threads, err := w.host.Threads(ctx, w.shop, n)
	if err != nil {
		t.Fatal(err)
	}
	w.lose("POST /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies")
	reply := twice(t, func() (codehost.Comment, error) { return w.host.Reply(ctx, w.shop, once, n, threads[0].ID, "Ours.") })
	if reply.Body != "Ours." || !reply.Author.Own || len(pull.Threads()[0]) != 3 {
		t.Errorf("the reply is %+v of %+v", reply, pull.Threads())
	}
	w.lose("POST /repos/{owner}/{repo}/issues/{issue_number}/comments")
	comment := twice(t, func() (codehost.Comment, error) { return w.host.AddComment(ctx, w.shop, once, n, "Ours.") })
	if comment.Body != "Ours." || !comment.Author.Own || len(w.repo.Issue(pull.Number).Comments()) != 2 {
		t.Errorf("the comment is %+v", comment)
	}

	other := w.peer.NewApp(peer.NewApp{Name: "Copy Cat", Permissions: everything(), HookURL: "http://127.0.0.1:1/", Secret: "hush"})
	other.Install(w.org)
	w.repo.Check(other, pull.Head(), "yardmaster/review", "success")
	w.lose("POST /repos/{owner}/{repo}/check-runs")
	check := twice(t, func() (string, error) {
		return w.host.SetCheck(ctx, w.shop, once, codehost.OwnCheck{SHA: pull.Head(), Name: "yardmaster/review", State: "failure"})
	})
	set, _, err := w.host.ChecksOf(ctx, w.shop, pull.Head(), "")
	if err != nil || len(set.Checks) != 2 {
		t.Fatalf("%+v, %v", set, err)
	}
	for _, c := range set.Checks {
		if (c.ID == check) != c.Own || c.Own != (c.State == codehost.CheckFailed) {
			t.Errorf("our check is %s of %+v", check, set.Checks)
		}
	}
}

// TestPullOfAForkIsNotAdopted holds that of two pull requests from branches of one name
// that of our own repository is taken.
func TestPullOfAForkIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	fork := w.repo.Fork(w.bob)
	w.repo.Push(w.bob, "svc/a", w.repo.Head("main"))
	head := w.repo.Commit(w.bob, "svc/a", "a", map[string]string{"a.txt": "a\n"})
	fork.Push(w.bob, "svc/a", fork.Head("main"))
	fork.Commit(w.bob, "svc/a", "b", map[string]string{"a.txt": "b\n"})
	theirs := w.repo.OpenPull(w.bob, peer.NewPull{Title: "Add a", Head: "bob:svc/a", Base: "main"})
	w.lose("POST /repos/{owner}/{repo}/pulls")
	p := twice(t, func() (codehost.Pull, error) {
		return w.host.OpenPull(t.Context(), w.shop, once1, codehost.NewPull{Title: "Add a", Head: "svc/a", Base: "main"})
	})
	if p.Number == int64(theirs.Number) || p.HeadSHA != head || p.Fork || !p.Author.Own {
		t.Errorf("opened %+v", p)
	}
}

// TestRepositoryOfBeforeIsNotAdopted holds that a repository of the same name and
// description that is a few minutes older than the request is a stranger's.
func TestRepositoryOfBeforeIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	w.peer.Repo("acme/fresh", peer.NewRepo{Private: true})
	w.peer.Advance(5 * time.Minute)
	once := codehost.Once(newUUID(t, w.peer.Now()))
	_, err := w.host.CreateRepo(t.Context(), "acme", once, codehost.NewRepo{Name: "fresh", Private: true})
	wants(t, "one that was there", err, codehost.ErrExists)
}

// TestTextBringsNoMarker holds that no text that the bot is given makes a marker of
// another codehost.Once, however it is nested.
func TestTextBringsNoMarker(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		marker(once2), strings.Repeat("<!-- ", 3) + strings.Repeat("ym:", 3) + string(once2) + " -->",
		"<!-- <!-- ym:ym:" + string(once2) + " -->", "<!-- y<!-- ym:m:" + string(once2) + " -->",
	} {
		if got := marked(said, once1); carries(got, since(once2), once2) || !carries(got, since(once1), once1) {
			t.Errorf("%q is sent as %q", said, got)
		}
	}
	if carries(marked("x", once1), since(once1).Add(-time.Second), once1) {
		t.Error("a text of before counts")
	}
}
