package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/codehost"
)

// A number may be that of a pull request: lists leave those out, and comments on them are
// refused, without the permission for pull requests.
var (
	readIssues  = permissions{"issues": "read", "pull_requests": "read"}
	writeIssues = permissions{"issues": "write", "pull_requests": "write"}
)

func issuePath(n int64) string { return "/issues/" + number(n) }

// Issue implements codehost.Forge.
func (h *Host) Issue(ctx context.Context, r codehost.Repo, n int64, t codehost.Tag) (codehost.Issue, codehost.Tag, error) {
	var w wireIssue
	re, err := h.do(ctx, r, call{method: http.MethodGet, sub: issuePath(n), tag: t, need: readIssues}, &w)
	if _, gone := refused(err, http.StatusGone); gone {
		return codehost.Issue{}, "", codehost.ErrNotFound.Because(err) // deleted, or the repository has no issues
	}
	if err != nil {
		return codehost.Issue{}, "", err
	}
	return h.issue(w), re.tag, nil
}

// IssuesSince implements codehost.Forge. A cursor is the time from which the next page
// begins, and the page of that time. GitHub's own pages are not followed: an issue that
// changes meanwhile moves to the end, and those behind it move up a place, past the
// border of the page.
func (h *Host) IssuesSince(
	ctx context.Context, r codehost.Repo, from time.Time, open bool, cursor string,
) ([]codehost.Issue, string, error) {
	page := 1
	if cursor != "" {
		at, nth, _ := strings.Cut(cursor, " ")
		var err, err2 error
		from, err = time.Parse(time.RFC3339, at)
		page, err2 = strconv.Atoi(nth)
		if err := errors.Join(err, err2); err != nil {
			return nil, "", fmt.Errorf("cursor %.100q of issues: %w", cursor, err)
		}
	}
	query := url.Values{"state": {"all"}, "sort": {"updated"}, "direction": {"asc"}, "per_page": {perPage}}
	if open {
		query.Set("state", "open")
	}
	if !from.IsZero() {
		query.Set("since", from.UTC().Format(time.RFC3339))
	}
	if page > 1 {
		query.Set("page", strconv.Itoa(page))
	}
	var found []wireIssue
	re, err := h.do(ctx, r, call{method: http.MethodGet, sub: "/issues", query: query, need: readIssues}, &found)
	if _, off := refused(err, http.StatusGone); off {
		return nil, "", nil // the repository has no issues
	}
	if err != nil {
		return nil, "", err
	}
	out := make([]codehost.Issue, len(found))
	for i, w := range found {
		out[i] = h.issue(w)
	}
	if re.next == "" || len(out) == 0 {
		return out, "", nil
	}
	last := out[len(out)-1].UpdatedAt.UTC().Truncate(time.Second)
	if last.After(from) {
		return out, last.Format(time.RFC3339) + " 1", nil
	}
	return out, from.UTC().Format(time.RFC3339) + " " + strconv.Itoa(page+1), nil // all of one second
}

// ownComment is the comment of a list that was posted for once; nil if there is none.
func (h *Host) ownComment(ctx context.Context, r codehost.Repo, once codehost.Once, need permissions, sub string) (*wireComment, error) {
	if once == "" {
		return nil, nil
	}
	query := url.Values{}
	if t := since(once); !t.IsZero() {
		query.Set("since", t.Format(time.RFC3339))
	}
	var out *wireComment
	_, err := list(ctx, h, r, call{sub: sub, query: query, need: need}, func(page []wireComment) bool {
		for _, w := range page {
			if h.user(w.User).Own && carries(w.Body, w.CreatedAt.Time, once) {
				out = &w
			}
		}
		return out == nil
	})
	return out, err
}

// CommentsOf implements codehost.Forge.
func (h *Host) CommentsOf(ctx context.Context, r codehost.Repo, n int64, since time.Time) ([]codehost.Comment, error) {
	query := url.Values{}
	if !since.IsZero() {
		query.Set("since", since.UTC().Format(time.RFC3339))
	}
	found, err := all[wireComment](ctx, h, r, readIssues, issuePath(n)+"/comments", query)
	if _, gone := refused(err, http.StatusGone); gone {
		return nil, codehost.ErrNotFound.Because(err)
	}
	if err != nil {
		return nil, err
	}
	out := make([]codehost.Comment, len(found))
	for i, w := range found {
		out[i] = h.comment(w)
	}
	return out, nil
}

// AddComment implements codehost.Forge. A longer text than GitHub takes is cut.
func (h *Host) AddComment(ctx context.Context, r codehost.Repo, once codehost.Once, n int64, body string) (codehost.Comment, error) {
	done, err := h.ownComment(ctx, r, once, readIssues, issuePath(n)+"/comments")
	if done != nil {
		return h.comment(*done), nil
	}
	if err != nil {
		return codehost.Comment{}, err
	}
	var w wireComment
	_, err = h.do(ctx, r, call{
		method: http.MethodPost, sub: issuePath(n) + "/comments", need: writeIssues, content: true,
		body: map[string]string{"body": marked(body, once)},
	}, &w)
	if e, is := refused(err, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusGone); is {
		switch {
		case e.says("locked"):
			err = fmt.Errorf("%w: %w", codehost.ErrLocked, err)
		case e.Status == http.StatusGone:
			err = codehost.ErrNotFound.Because(err)
		case e.says("too long"):
			err = codehost.ErrTooLarge.Because(err)
		}
	}
	return h.comment(w), err
}

// EditComment implements codehost.Forge.
func (h *Host) EditComment(ctx context.Context, r codehost.Repo, once codehost.Once, id, body string) error {
	sub, need := "/issues/comments/", writeIssues
	digits, lines := strings.CutPrefix(id, onLines)
	if lines {
		sub, need = "/pulls/comments/", writePulls
	}
	if _, err := strconv.ParseUint(digits, 10, 63); err != nil {
		return codehost.ErrNotFound
	}
	_, err := h.do(ctx, r, call{
		method: http.MethodPatch, sub: sub + digits, need: need, body: map[string]string{"body": marked(body, once)},
	}, nil)
	return err
}

// OpenIssue implements codehost.Forge. An issue that was opened for once before is
// answered, however people have changed its title meanwhile.
func (h *Host) OpenIssue(
	ctx context.Context, r codehost.Repo, once codehost.Once, title, body string, labels []string,
) (codehost.Issue, error) {
	query := url.Values{"state": {"all"}, "sort": {"created"}, "direction": {"desc"}}
	if t := since(once); !t.IsZero() {
		query.Set("since", t.Format(time.RFC3339))
	}
	var done *wireIssue
	_, err := list(ctx, h, r, call{sub: "/issues", query: query, need: readIssues}, func(page []wireIssue) bool {
		for _, w := range page {
			if w.PullRequest == nil && h.user(w.User).Own && carries(w.Body, w.CreatedAt.Time, once) {
				done = &w
			}
		}
		return done == nil
	})
	if _, off := refused(err, http.StatusGone); off {
		return codehost.Issue{}, codehost.ErrCannot // the repository has no issues
	}
	if err != nil {
		return codehost.Issue{}, err
	}
	if done != nil {
		return h.issue(*done), nil
	}
	type newIssue struct {
		Title  string   `json:"title"`
		Body   string   `json:"body"`
		Labels []string `json:"labels,omitempty"`
	}
	var w wireIssue
	_, err = h.do(ctx, r, call{
		method: http.MethodPost, sub: "/issues", need: writeIssues, content: true, body: newIssue{short(title), marked(body, once), labels},
	}, &w)
	if e, is := refused(err, http.StatusUnprocessableEntity, http.StatusGone); is {
		switch {
		case e.Status == http.StatusGone:
			return codehost.Issue{}, codehost.ErrCannot
		case e.says("too long"):
			return codehost.Issue{}, codehost.ErrTooLarge.Because(err)
		}
	}
	if err != nil {
		return codehost.Issue{}, err
	}
	return h.issue(w), nil
}

// EditIssue implements codehost.Forge.
func (h *Host) EditIssue(ctx context.Context, r codehost.Repo, once codehost.Once, n int64, e codehost.IssueEdit) error {
	if err := h.editLabels(ctx, r, n, writeIssues, e.AddLabels, e.RemoveLabels); err != nil {
		return err
	}
	change := map[string]string{}
	switch {
	case e.Close != "":
		change["state"], change["state_reason"] = "closed", e.Close
	case e.Reopen:
		change["state"] = "open"
	default:
		return nil
	}
	_, err := h.do(ctx, r, call{method: http.MethodPatch, sub: issuePath(n), need: writeIssues, body: change}, nil)
	return err
}

// Milestones implements codehost.Forge.
func (h *Host) Milestones(ctx context.Context, r codehost.Repo, t codehost.Tag) ([]codehost.Milestone, codehost.Tag, error) {
	out := []codehost.Milestone{}
	tag, err := list(ctx, h, r, call{
		sub: "/milestones", query: url.Values{"state": {"all"}, "sort": {"due_on"}}, tag: t, need: readIssues,
	}, func(page []wireMilestone) bool {
		for _, w := range page {
			out = append(out, milestone(w))
		}
		return true
	})
	if err != nil {
		return nil, "", err
	}
	return out, tag, nil
}

// RenameMilestone implements codehost.Forge.
func (h *Host) RenameMilestone(ctx context.Context, r codehost.Repo, once codehost.Once, n int64, title string) error {
	_, err := h.do(ctx, r, call{
		method: http.MethodPatch, sub: "/milestones/" + number(n), need: writeIssues, body: map[string]string{"title": title},
	}, nil)
	if e, invalid := refused(err, http.StatusUnprocessableEntity); invalid && e.says("already_exists") {
		return codehost.ErrExists.Because(err)
	}
	return err
}
