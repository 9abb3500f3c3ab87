package github

import (
	"strings"
	"testing"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

func TestPostReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	pull := w.pull("svc/a", map[string]string{"cart.go": numbered(30, 5, 25), "new.txt": "n\n"})
	n := int64(pull.Number)
	review := codehost.NewReview{HeadSHA: pull.Head(), Body: "Two things.", Comments: []codehost.NewComment{
		{Path: "new.txt", Side: codehost.SideHead, Line: 1, Body: "same"},
		{Path: "cart.go", Side: codehost.SideHead, StartLine: 4, Line: 6, Body: "same"},
		{Path: "cart.go", Side: codehost.SideBase, Line: 25, Body: "why did it go <!-- ym:" + string(once2) + " -->"},
		{Path: "cart.go", Side: codehost.SideHead, StartLine: 22, Line: 22, Body: "one line"},
	}}
	w.lose("POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews")
	got := twice(t, func() (codehost.Review, error) { return w.host.PostReview(ctx, w.shop, once1, n, review) })
	if got.Body != "Two things." || got.State != "commented" || got.HeadSHA != pull.Head() || !got.Author.Own || len(got.Comments) != 4 {
		t.Fatalf("posted %+v", got)
	}
	if said := pull.Threads(); len(said) != 4 || len(pull.Reviews()) != 1 {
		t.Errorf("there are %d threads and %d reviews", len(said), len(pull.Reviews()))
	}
	threads, err := w.host.Threads(ctx, w.shop, n)
	if err != nil || len(threads) != 4 {
		t.Fatalf("%+v, %v", threads, err)
	}
	for i, c := range review.Comments {
		var of codehost.Thread
		for _, th := range threads {
			if th.Comments[0].ID == got.Comments[i].ID {
				of = th
			}
		}
		if of.Path != c.Path || of.Line != c.Line || of.Side != c.Side || of.Resolved || of.Outdated || !of.Comments[0].Author.Own {
			t.Errorf("comment %d is at %+v", i, of)
		}
	}
	// A marker that a text brings along does not count.
	if _, err := w.host.Reply(ctx, w.shop, once2, n, threads[0].ID, "Really."); err != nil {
		t.Fatal(err)
	}
	if said := pull.Threads(); len(said[0])+len(said[1])+len(said[2])+len(said[3]) != 5 {
		t.Errorf("said %+v", said)
	}
}

// TestAnchorsAreChecked holds that a comment without a place is found before anything
// is sent, by its number.
func TestAnchorsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	pull := w.pull("svc/a", map[string]string{"cart.go": numbered(30, 5, 25)})
	good := codehost.NewComment{Path: "cart.go", Side: codehost.SideHead, Line: 5, Body: "x"}
	for name, bad := range map[string]codehost.NewComment{
		"a file that did not change": {Path: "README.md", Side: codehost.SideHead, Line: 1, Body: "x"},
		"a line outside":             {Path: "cart.go", Side: codehost.SideHead, Line: 15, Body: "x"},
		"no line":                    {Path: "cart.go", Side: codehost.SideHead, Body: "x"},
		"over two hunks":             {Path: "cart.go", Side: codehost.SideHead, StartLine: 5, Line: 25, Body: "x"},
		"backwards":                  {Path: "cart.go", Side: codehost.SideHead, StartLine: 6, Line: 5, Body: "x"},
		"no side":                    {Path: "cart.go", Line: 5, Body: "x"},
	} {
		_, err := w.host.PostReview(ctx, w.shop, once1, int64(pull.Number), codehost.NewReview{
			HeadSHA: pull.Head(), Body: "x", Comments: []codehost.NewComment{good, bad},
		})
		if e := as[*codehost.AnchorError](t, name, err); e.Index != 1 {
			t.Errorf("%s: comment %d", name, e.Index)
		}
	}
	_, err := w.host.PostReview(ctx, w.shop, once1, int64(pull.Number), codehost.NewReview{HeadSHA: w.repo.Head("main"), Body: "x"})
	wants(t, "another head", err, codehost.ErrHeadMoved)
	if n := len(pull.Reviews()); n != 0 {
		t.Errorf("%d reviews were posted", n)
	}
}

func TestThreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	pull := w.pull("svc/a", map[string]string{"cart.go": numbered(30, 5)})
	n := int64(pull.Number)
	said := []peer.NewComment{{Path: "cart.go", Line: 5, Body: "Hm."}}
	review, err := pull.Review(w.ann, peer.NewReview{Event: "COMMENT", Comments: said})
	if err != nil {
		t.Fatal(err)
	}
	threads, err := w.host.Threads(ctx, w.shop, n)
	if err != nil || len(threads) != 1 || threads[0].Comments[0].ReviewID != number(review) ||
		threads[0].Comments[0].Author.Login != "ann" || threads[0].Comments[0].Body != "Hm." {
		t.Fatalf("%+v, %v", threads, err)
	}
	id := threads[0].ID
	w.lose("POST /repos/{owner}/{repo}/pulls/{pull_number}/comments/{comment_id}/replies")
	c := twice(t, func() (codehost.Comment, error) { return w.host.Reply(ctx, w.shop, once1, n, id, "Fixed.") })
	if c.Body != "Fixed." || c.ThreadID != id || !c.Author.Own || !strings.HasPrefix(c.ID, onLines) {
		t.Errorf("replied %+v", c)
	}
	if err := w.host.EditComment(ctx, w.shop, once2, c.ID, "Fixed now."); err != nil {
		t.Error(err)
	}
	for _, resolved := range []bool{true, true, false} {
		if err := w.host.Resolve(ctx, w.shop, once3, id, resolved); err != nil {
			t.Fatal(err)
		}
		threads, err = w.host.Threads(ctx, w.shop, n)
		if err != nil || threads[0].Resolved != resolved || len(threads[0].Comments) != 2 || threads[0].Comments[1].Body != "Fixed now." {
			t.Errorf("resolved %v: %+v, %v", resolved, threads, err)
		}
	}
	pull.Resolve(w.ann, pull.Threads()[0][0].ID, true)
	if threads, err = w.host.Threads(ctx, w.shop, n); err != nil || threads[0].ResolvedBy.Login != "ann" || threads[0].ResolvedBy.ID == "" {
		t.Errorf("closed by ann: %+v, %v", threads, err)
	}
	w.repo.Commit(w.bob, "svc/a", "again", map[string]string{"cart.go": numbered(30, 7)})
	if threads, err = w.host.Threads(ctx, w.shop, n); err != nil || !threads[0].Outdated || threads[0].Line != 0 {
		t.Errorf("outdated: %+v, %v", threads, err)
	}
	_, err = w.host.Reply(ctx, w.shop, once3, n, "PRRT_gone", "x")
	wants(t, "no thread", err, codehost.ErrThreadGone)
	wants(t, "resolve no thread", w.host.Resolve(ctx, w.shop, once3, "PRRT_gone", true), codehost.ErrThreadGone)
	_, err = w.host.Threads(ctx, w.shop, 999)
	wants(t, "no pull request", err, codehost.ErrNotFound)
}

// TestReviewsOf holds that reviews are read as their deliveries tell of them, and those that
// are not submitted are left out.
func TestReviewsOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	pull := w.pull("svc/a", map[string]string{"cart.go": numbered(30, 5)})
	n := int64(pull.Number)
	if got, err := w.host.ReviewsOf(t.Context(), w.shop, n); err != nil || len(got) != 0 {
		t.Errorf("of none: %+v, %v", got, err)
	}
	for _, r := range []peer.NewReview{
		{Event: "REQUEST_CHANGES", Body: "Not so."}, {Event: "APPROVE"}, {Body: "nobody is to see it yet"},
	} {
		if _, err := pull.Review(w.ann, r); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.host.ReviewsOf(t.Context(), w.shop, n)
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, state := range []string{"changes_requested", "approved"} {
		if v := got[i]; v.State != state || v.HeadSHA != pull.Head() || v.Author.Login != "ann" || v.SubmittedAt.IsZero() || v.ID == "" {
			t.Errorf("review %d: %+v", i, v)
		}
	}
	if got[0].Body != "Not so." {
		t.Errorf("the text is %q", got[0].Body)
	}
	_, err = w.host.ReviewsOf(t.Context(), w.shop, 404)
	wants(t, "of no pull request", err, codehost.ErrNotFound)
}
