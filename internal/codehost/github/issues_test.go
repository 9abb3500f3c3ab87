package github

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

func TestIssue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	one := w.repo.OpenIssue(w.bob, "It fails", "Always.", "bug")
	m := w.repo.NewMilestone(w.ann, "v1")
	m.Add(w.ann, one)
	n := int64(one.Number)
	i, tag, err := w.host.Issue(ctx, w.shop, n, "")
	if err != nil || i.Title != "It fails" || i.Body != "Always." || !i.Open || i.Pull || i.Author.Login != "bob" || i.Milestone != "v1" ||
		!slices.Equal(i.Labels, []string{"bug"}) || i.Key == "" || i.NodeID == "" {
		t.Errorf("%+v, %v", i, err)
	}
	_, _, err = w.host.Issue(ctx, w.shop, n, tag)
	wants(t, "with its tag", err, codehost.ErrNotModified)
	if err := w.host.EditIssue(ctx, w.shop, once1, n, codehost.IssueEdit{
		AddLabels: []string{"enhancement"}, RemoveLabels: []string{"bug", "never"}, Close: "not_planned",
	}); err != nil {
		t.Fatal(err)
	}
	if s := one.State(); s.State != "closed" || s.Reason != "not_planned" || !slices.Equal(s.Labels, []string{"enhancement"}) {
		t.Errorf("closed: %+v", s)
	}
	if err := w.host.EditIssue(ctx, w.shop, once2, n, codehost.IssueEdit{Reopen: true}); err != nil || one.State().State != "open" {
		t.Errorf("reopened: %+v, %v", one.State(), err)
	}
	pull := w.pull("svc/a", map[string]string{"a.txt": "a\n"})
	if i, _, err = w.host.Issue(ctx, w.shop, int64(pull.Number), ""); err != nil || !i.Pull {
		t.Errorf("a pull request: %+v, %v", i, err)
	}
	one.Delete(w.ann)
	_, _, err = w.host.Issue(ctx, w.shop, n, "")
	wants(t, "a deleted one", err, codehost.ErrNotFound)
}

func TestComments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	one := w.repo.OpenIssue(w.bob, "It fails", "Always.")
	n := int64(one.Number)
	for i := range 130 { // ours is not on the first page
		one.Comment(w.bob, fmt.Sprintf("%d %s", i, marker(once1))) // and a marker of somebody else's does not count
	}
	w.lose("POST /repos/{owner}/{repo}/issues/{issue_number}/comments")
	c := twice(t, func() (codehost.Comment, error) { return w.host.AddComment(ctx, w.shop, once1, n, "Started.") })
	if c.Body != "Started." || !c.Author.Own || c.URL == "" || len(one.Comments()) != 131 {
		t.Errorf("%+v, %d comments", c, len(one.Comments()))
	}
	if err := w.host.EditComment(ctx, w.shop, once2, c.ID, strings.Repeat("x", 70000)); err != nil {
		t.Fatal(err)
	}
	if said := one.Comments()[130].Body; len(said) > 65000 || !strings.Contains(said, cutNote) {
		t.Errorf("edited to %d bytes", len(said))
	}
	id := one.Comments()[130].ID
	one.DeleteComment(w.ann, id)
	wants(t, "a deleted comment", w.host.EditComment(ctx, w.shop, once3, c.ID, "x"), codehost.ErrNotFound)
	wants(t, "an id that is none", w.host.EditComment(ctx, w.shop, once3, "../1", "x"), codehost.ErrNotFound)
	one.Lock(true)
	_, err := w.host.AddComment(ctx, w.shop, once3, n, "x")
	if err != nil { // an App that may write passes a lock at GitHub
		wants(t, "a locked one", err, codehost.ErrLocked)
	}
}

// An issue is opened once for a key, whatever a stranger writes with its marker.
func TestOpenIssue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	forged := w.repo.OpenIssue(w.bob, "Forged", marker(once1))
	w.lose("POST /repos/{owner}/{repo}/issues")
	i := twice(t, func() (codehost.Issue, error) {
		return w.host.OpenIssue(ctx, w.shop, once1, "Say "+strings.Repeat("x", 300), "Why. <!-- ym:other -->", []string{"new", "bug"})
	})
	if i.Number == int64(forged.Number) || !i.Author.Own || !i.Open || len([]rune(i.Title)) != 255 || strings.Contains(i.Body, "ym:") ||
		!slices.Equal(i.Labels, []string{"new", "bug"}) {
		t.Errorf("%+v", i)
	}
	more, _, err := w.host.IssuesSince(ctx, w.shop, time.Time{}, true, "")
	if err != nil || len(more) != 2 {
		t.Errorf("%d issues, %v", len(more), err)
	}
}

// TestIssuesSince holds that no issue is left out, also one that moves over the border
// of a page while the pages are read, and that many of one second end.
func TestIssuesSince(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	w := newWorld(t, peer.Options{Now: func() time.Time { return start }})
	ctx := t.Context()
	for i := range 250 {
		w.repo.OpenIssue(w.bob, fmt.Sprint(i), "")
		if i < 130 { // the others are of one second
			w.peer.Advance(time.Second)
		}
	}
	first := w.repo.Issue(3)
	seen := map[int64]int{}
	cursor, pages := "", 0
	for {
		found, next, err := w.host.IssuesSince(ctx, w.shop, time.Time{}, true, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range found {
			seen[i.Number]++
		}
		if pages++; pages == 1 {
			w.peer.Advance(time.Minute)
			first.Edit(w.bob, "changed", "while it is read") // it moves to the end, and all behind it move up
		}
		if cursor = next; cursor == "" || pages > 20 {
			break
		}
	}
	if len(seen) != 250 || seen[3] != 2 || pages > 6 {
		t.Errorf("saw %d issues in %d pages, that which changed %d times", len(seen), pages, seen[3])
	}
	first.Close(w.ann, "completed")
	found, _, err := w.host.IssuesSince(ctx, w.shop, w.peer.Now(), false, "")
	if err != nil || len(found) != 1 || found[0].Open {
		t.Errorf("since now: %+v, %v", found, err)
	}
}

func TestMilestones(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	ctx := t.Context()
	for _, title := range []string{"v1", "v2"} {
		w.repo.NewMilestone(w.ann, title)
	}
	all, tag, err := w.host.Milestones(ctx, w.shop, "")
	if err != nil || len(all) != 2 || tag == "" {
		t.Fatalf("%+v %q, %v", all, tag, err)
	}
	_, _, err = w.host.Milestones(ctx, w.shop, tag)
	wants(t, "with its tag", err, codehost.ErrNotModified)
	if err := w.host.RenameMilestone(ctx, w.shop, once1, all[0].Number, "v3"); err != nil {
		t.Error(err)
	}
	wants(t, "a title that is taken", w.host.RenameMilestone(ctx, w.shop, once2, all[1].Number, "v3"), codehost.ErrExists)
}

// TestCommentsOf holds that the comments since a time are read, with those of a pull
// request's conversation, and not those on its lines.
func TestCommentsOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{})
	pull := w.pull("svc/a", map[string]string{"cart.go": numbered(30, 5)})
	n := int64(pull.Number)
	talk := w.repo.Issue(pull.Number)
	talk.Comment(w.bob, "early")
	w.peer.Advance(time.Hour)
	since := w.peer.Now()
	id := talk.Comment(w.ann, "late")
	if _, err := pull.Review(w.ann, peer.NewReview{Event: "COMMENT", Comments: []peer.NewComment{{
		Path: "cart.go", Line: 5, Body: "on a line",
	}}}); err != nil {
		t.Fatal(err)
	}
	got, err := w.host.CommentsOf(t.Context(), w.shop, n, since)
	if err != nil || len(got) != 1 || got[0].ID != number(id) || got[0].Body != "late" || got[0].Author.Login != "ann" ||
		got[0].CreatedAt.IsZero() {
		t.Errorf("since: %+v, %v", got, err)
	}
	got, err = w.host.CommentsOf(t.Context(), w.shop, n, time.Time{})
	if err != nil || len(got) != 2 || got[0].Body != "early" {
		t.Errorf("all: %+v, %v", got, err)
	}
	_, err = w.host.CommentsOf(t.Context(), w.shop, 404, since)
	wants(t, "of no issue", err, codehost.ErrNotFound)
}
