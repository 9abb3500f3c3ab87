package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
)

// PostReview implements codehost.Forge. The review comments and neither approves nor
// asks for changes. GitHub takes a review whole or not at all, and does not say which
// comment has no place, so places are checked against the diff before.
func (h *Host) PostReview(
	ctx context.Context, r codehost.Repo, once codehost.Once, n int64, review codehost.NewReview,
) (codehost.Review, error) {
	if done, err := h.ownReview(ctx, r, once, n); done != nil || err != nil {
		return h.withComments(ctx, r, n, done, review.Comments, err)
	}
	p, _, err := h.Pull(ctx, r, n, "")
	if err != nil {
		return codehost.Review{}, err
	}
	if p.HeadSHA != review.HeadSHA {
		return codehost.Review{}, codehost.ErrHeadMoved
	}
	if len(review.Comments) > 0 {
		files, _, err := h.PullFiles(ctx, r, n)
		if err != nil {
			return codehost.Review{}, err
		}
		for i, c := range review.Comments {
			if !placed(files, c) {
				return codehost.Review{}, &codehost.AnchorError{Index: i}
			}
		}
	}
	type newComment struct {
		Path      string `json:"path"`
		Body      string `json:"body"`
		Side      string `json:"side"`
		Line      int    `json:"line"`
		StartSide string `json:"start_side,omitzero"`
		StartLine int    `json:"start_line,omitzero"`
	}
	ask := struct {
		CommitID string       `json:"commit_id"`
		Event    string       `json:"event"`
		Body     string       `json:"body"`
		Comments []newComment `json:"comments,omitzero"`
	}{CommitID: review.HeadSHA, Event: "COMMENT", Body: marked(review.Body, once)}
	for _, c := range review.Comments {
		one := newComment{Path: c.Path, Body: marked(c.Body, ""), Side: c.Side, Line: c.Line}
		if c.StartLine > 0 && c.StartLine < c.Line {
			one.StartLine, one.StartSide = c.StartLine, c.Side
		}
		ask.Comments = append(ask.Comments, one)
	}
	var w wireReview
	_, err = h.do(ctx, r, call{method: http.MethodPost, sub: pullPath(n) + "/reviews", body: ask, need: writePulls, content: true}, &w)
	if e, invalid := refused(err, http.StatusUnprocessableEntity); invalid {
		switch {
		case e.says("commit"):
			return codehost.Review{}, codehost.ErrHeadMoved.Because(err)
		case len(ask.Comments) > 0:
			return codehost.Review{}, fmt.Errorf("%w: %w", codehost.ErrAnchorRefused, err)
		}
	}
	return h.withComments(ctx, r, n, &w, review.Comments, err)
}

// ownReview is the review that was posted for once; nil if there is none.
func (h *Host) ownReview(ctx context.Context, r codehost.Repo, once codehost.Once, n int64) (*wireReview, error) {
	if once == "" {
		return nil, nil
	}
	reviews, err := all[wireReview](ctx, h, r, readPulls, pullPath(n)+"/reviews", nil)
	if err != nil {
		return nil, err
	}
	for _, w := range reviews {
		if h.user(w.User).Own && carries(w.Body, w.SubmittedAt.Time, once) {
			return &w, nil
		}
	}
	return nil, nil
}

// ReviewsOf implements codehost.Forge. GitHub lists reviews in the order of their time; one
// that its author has not submitted yet has none.
func (h *Host) ReviewsOf(ctx context.Context, r codehost.Repo, n int64) ([]codehost.Review, error) {
	found, err := all[wireReview](ctx, h, r, readPulls, pullPath(n)+"/reviews", nil)
	if err != nil {
		return nil, err
	}
	var out []codehost.Review
	for _, w := range found {
		if !w.SubmittedAt.IsZero() {
			out = append(out, h.review(w))
		}
	}
	return out, nil
}

// withComments answers a review with its comments in the order in which they were
// given.
func (h *Host) withComments(
	ctx context.Context, r codehost.Repo, n int64, w *wireReview, asked []codehost.NewComment, err error,
) (codehost.Review, error) {
	if err != nil {
		return codehost.Review{}, err
	}
	out := h.review(*w)
	if len(asked) == 0 {
		return out, nil
	}
	found, err := all[wireComment](ctx, h, r, readPulls, pullPath(n)+"/reviews/"+number(w.ID)+"/comments", nil)
	if err != nil {
		return codehost.Review{}, err
	}
	slices.SortFunc(found, func(a, b wireComment) int { return int(a.ID - b.ID) })
	for i, c := range asked {
		at := slices.IndexFunc(found, func(f wireComment) bool {
			return f.Path == c.Path && unmarked(f.Body) == unmarked(marked(c.Body, ""))
		})
		if at < 0 {
			at = 0
		}
		if len(found) == 0 {
			return codehost.Review{}, fmt.Errorf("GitHub lists %d comments of a review with %d", i, len(asked))
		}
		out.Comments = append(out.Comments, h.comment(found[at]))
		found = slices.Delete(found, at, at+1)
	}
	return out, nil
}

// placed tells whether a comment has a place in the diff: its lines are in one hunk.
func placed(files []codehost.PullFile, c codehost.NewComment) bool {
	i := slices.IndexFunc(files, func(f codehost.PullFile) bool { return f.Path == c.Path })
	if i < 0 || c.Line <= 0 || c.StartLine < 0 || c.StartLine > c.Line {
		return false
	}
	first := c.Line
	if c.StartLine > 0 {
		first = c.StartLine
	}
	return slices.ContainsFunc(files[i].Hunks, func(k codehost.Hunk) bool {
		switch c.Side {
		case codehost.SideHead:
			return first >= k.NewStart && c.Line < k.NewStart+k.NewLines
		case codehost.SideBase:
			return first >= k.OldStart && c.Line < k.OldStart+k.OldLines
		}
		return false
	})
}

// wireThread is a thread as GraphQL shows it.
type wireThread struct {
	ID         string `json:"id"`
	IsResolved bool   `json:"isResolved"`
	IsOutdated bool   `json:"isOutdated"`
	Path       string `json:"path"`
	Line       int    `json:"line"`
	DiffSide   string `json:"diffSide"`
	ResolvedBy *struct {
		DatabaseID int64  `json:"databaseId"`
		Login      string `json:"login"`
	} `json:"resolvedBy"`
	Comments struct {
		Nodes []struct {
			DatabaseID int64  `json:"databaseId"`
			Body       string `json:"body"`
			URL        string `json:"url"`
			CreatedAt  stamp  `json:"createdAt"`
			UpdatedAt  stamp  `json:"updatedAt"`
			Review     *struct {
				DatabaseID int64 `json:"databaseId"`
			} `json:"pullRequestReview"`
			Author *struct {
				Kind       string `json:"__typename"`
				Login      string `json:"login"`
				DatabaseID int64  `json:"databaseId"`
			} `json:"author"`
		} `json:"nodes"`
	} `json:"comments"`
}

const threadsQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    databaseId
    pullRequest(number: $number) {
      reviewThreads(first: 50, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes {
          id isResolved isOutdated path line diffSide
          resolvedBy { databaseId login }
          comments(first: 100) {
            nodes {
              databaseId body url createdAt updatedAt
              pullRequestReview { databaseId }
              author { __typename login ... on User { databaseId } ... on Bot { databaseId } }
            }
          }
        }
      }
    }
  }
}`

// Threads implements codehost.Forge. REST does not know whether a thread is resolved.
// The first 100 comments of a thread are answered.
func (h *Host) Threads(ctx context.Context, r codehost.Repo, n int64) ([]codehost.Thread, error) {
	var out []codehost.Thread
	var after *string
	for {
		at, err := h.confirmed(ctx, r)
		if err != nil {
			return nil, err
		}
		var got struct {
			Repository *struct {
				DatabaseID  int64 `json:"databaseId"`
				PullRequest *struct {
					ReviewThreads struct {
						PageInfo struct {
							HasNextPage bool   `json:"hasNextPage"`
							EndCursor   string `json:"endCursor"`
						} `json:"pageInfo"`
						Nodes []wireThread `json:"nodes"`
					} `json:"reviewThreads"`
				} `json:"pullRequest"`
			} `json:"repository"`
		}
		err = h.graphQL(ctx, r, readPulls, threadsQuery,
			map[string]any{"owner": at.Owner, "name": at.Name, "number": n, "after": after}, &got)
		if err != nil {
			return nil, err
		}
		if got.Repository == nil || got.Repository.PullRequest == nil {
			return nil, codehost.ErrNotFound
		}
		if r.ID != "" && number(got.Repository.DatabaseID) != r.ID {
			h.names.Delete(r.Key()) // the name is another's since a moment
			return nil, &codehost.BusyError{Cause: errMoved}
		}
		page := got.Repository.PullRequest.ReviewThreads
		for _, w := range page.Nodes {
			out = append(out, h.thread(w))
		}
		if !page.PageInfo.HasNextPage {
			return out, nil
		}
		after = &page.PageInfo.EndCursor
	}
}

func (h *Host) thread(w wireThread) codehost.Thread {
	t := codehost.Thread{
		ID: w.ID, Path: w.Path, Side: w.DiffSide, Line: w.Line, Resolved: w.IsResolved, Outdated: w.IsOutdated,
	}
	if by := w.ResolvedBy; by != nil {
		t.ResolvedBy = h.user(&wireUser{ID: by.DatabaseID, Login: by.Login, Type: "User"})
	}
	for _, c := range w.Comments.Nodes {
		one := codehost.Comment{
			ID: onLines + number(c.DatabaseID), Author: h.user(nil), Body: unmarked(c.Body), URL: c.URL, ThreadID: w.ID,
			CreatedAt: c.CreatedAt.Time, UpdatedAt: c.UpdatedAt.Time,
		}
		if c.Review != nil {
			one.ReviewID = number(c.Review.DatabaseID)
		}
		if c.Author != nil {
			login := c.Author.Login
			if c.Author.Kind == "Bot" && !strings.HasSuffix(login, "[bot]") {
				login += "[bot]" // as REST has it
			}
			one.Author = h.user(&wireUser{ID: c.Author.DatabaseID, Login: login, Type: c.Author.Kind})
		}
		t.Comments = append(t.Comments, one)
	}
	return t
}

// Reply implements codehost.Forge.
func (h *Host) Reply(ctx context.Context, r codehost.Repo, once codehost.Once, n int64, thread, body string) (codehost.Comment, error) {
	threads, err := h.Threads(ctx, r, n)
	if err != nil {
		return codehost.Comment{}, err
	}
	i := slices.IndexFunc(threads, func(t codehost.Thread) bool { return t.ID == thread })
	if i < 0 || len(threads[i].Comments) == 0 {
		return codehost.Comment{}, codehost.ErrThreadGone
	}
	first := strings.TrimPrefix(threads[i].Comments[0].ID, onLines)
	if once != "" {
		// Threads shows texts without their markers.
		done, err := h.ownComment(ctx, r, once, readPulls, pullPath(n)+"/comments")
		if done != nil || err != nil {
			return h.replied(done, thread, err)
		}
	}
	var w wireComment
	_, err = h.do(ctx, r, call{
		method: http.MethodPost, sub: pullPath(n) + "/comments/" + first + "/replies", need: writePulls, content: true,
		body: map[string]string{"body": marked(body, once)},
	}, &w)
	if errors.Is(err, codehost.ErrNotFound) {
		return codehost.Comment{}, codehost.ErrThreadGone
	}
	return h.replied(&w, thread, err)
}

func (h *Host) replied(w *wireComment, thread string, err error) (codehost.Comment, error) {
	if err != nil {
		return codehost.Comment{}, err
	}
	c := h.comment(*w)
	c.ThreadID = thread
	return c, nil
}

// Resolve implements codehost.Forge. GitHub asks for "contents: write" to do it, which
// its documentation does not say.
func (h *Host) Resolve(ctx context.Context, r codehost.Repo, once codehost.Once, thread string, resolved bool) error {
	query := `mutation($id: ID!) { unresolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
	if resolved {
		query = `mutation($id: ID!) { resolveReviewThread(input: {threadId: $id}) { thread { isResolved } } }`
	}
	err := h.graphQL(ctx, r, permissions{"pull_requests": "write", "contents": "write"}, query, map[string]any{"id": thread}, nil)
	if errors.Is(err, codehost.ErrNotFound) {
		return codehost.ErrThreadGone
	}
	return err
}
