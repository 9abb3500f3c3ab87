package github

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/gitfolder"
	"yardmaster/internal/fault"
)

// MergePull implements codehost.Forge. A merge may be made although its answer was
// lost, or was an error: the pull request is read before and after.
func (h *Host) MergePull(ctx context.Context, r codehost.Repo, once codehost.Once, n int64, m codehost.PullMerge) (string, error) {
	if !codehost.ValidSHA(m.HeadSHA) {
		return "", fault.Field("head_sha", "is not a full commit SHA")
	}
	if m.Method != codehost.MethodMerge && m.Method != codehost.MethodSquash {
		return "", fault.Field("method", "must be merge or squash")
	}
	p, _, err := h.Pull(ctx, r, n, "")
	switch {
	case err != nil:
		return "", err
	case p.Merged:
		return p.MergeSHA, nil
	case p.HeadSHA != m.HeadSHA:
		return "", codehost.ErrHeadMoved
	case !p.Open:
		return "", &codehost.BlockedError{Missing: []string{"The pull request is closed."}}
	}
	body := m.Body
	if m.Method == codehost.MethodSquash {
		body = gitfolder.SquashBody(m.Body, m.HeadSHA)
	}
	ask := struct {
		SHA     string `json:"sha"`
		Method  string `json:"merge_method"`
		Title   string `json:"commit_title,omitzero"`
		Message string `json:"commit_message"`
	}{m.HeadSHA, string(m.Method), m.Title, body}
	var got struct {
		SHA string `json:"sha"`
	}
	need := maps.Clone(h.contentsWrite())
	need["pull_requests"] = "write"
	_, err = h.do(ctx, r, call{method: http.MethodPut, sub: pullPath(n) + "/merge", body: ask, need: need, content: true}, &got)
	if err == nil {
		return got.SHA, nil
	}
	if forbidden := (*codehost.ForbiddenError)(nil); errors.As(err, &forbidden) {
		return "", err
	}
	e, is := refused(err, http.StatusMethodNotAllowed, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusForbidden)
	if !is {
		return "", err
	}
	now, _, failed := h.Pull(ctx, r, n, "")
	if failed != nil {
		return "", failed
	}
	switch {
	case now.Merged:
		return now.MergeSHA, nil
	case now.HeadSHA != m.HeadSHA:
		return "", codehost.ErrHeadMoved.Because(err)
	case e.says("base branch was modified"):
		return "", &codehost.BusyError{Cause: err}
	case e.says("not allowed on this repository"), e.says("merge method"), e.Status == http.StatusUnprocessableEntity:
		return "", fmt.Errorf("%w: %w", codehost.ErrMethodRefused, err)
	case e.Status == http.StatusConflict, e.says("head branch was modified"):
		return "", codehost.ErrHeadMoved.Because(err)
	case now.Mergeable != nil && !*now.Mergeable, e.says("merge conflict"):
		return "", codehost.ErrConflict.Because(err)
	case now.Mergeable == nil && e.says("not mergeable"): // GitHub does not know yet
		return "", &codehost.BusyError{After: 2 * time.Second, Cause: err}
	case e.Status == http.StatusForbidden:
		return "", errors.Join(&codehost.ForbiddenError{}, err)
	}
	return "", errors.Join(&codehost.BlockedError{Missing: rules(e.Message)}, err)
}

// rules are the sentences of a refusal.
func rules(message string) (all []string) {
	for line := range strings.Lines(message) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// Enqueue implements codehost.Forge. A pull request that is in the queue stays there.
func (h *Host) Enqueue(ctx context.Context, r codehost.Repo, once codehost.Once, n int64, headSHA string) error {
	p, _, err := h.Pull(ctx, r, n, "")
	if err != nil {
		return err
	}
	if p.Merged {
		return nil
	}
	if p.HeadSHA != headSHA {
		return codehost.ErrHeadMoved
	}
	need := permissions{"pull_requests": "write", "contents": "write", "merge_queues": "write"}
	err = h.graphQL(ctx, r, need, `mutation($id: ID!, $head: GitObjectID!) {
		enqueuePullRequest(input: {pullRequestId: $id, expectedHeadOid: $head}) { mergeQueueEntry { id } } }`,
		map[string]any{"id": p.NodeID, "head": headSHA}, nil)
	var e *queryError
	switch {
	case !errors.As(err, &e):
		return err
	case e.says("already"):
		return nil
	case e.says("head"):
		return codehost.ErrHeadMoved.Because(err)
	}
	return errors.Join(&codehost.BlockedError{Missing: slices.Clone(e.messages)}, err)
}

// QueueEntry implements codehost.Forge.
func (h *Host) QueueEntry(ctx context.Context, r codehost.Repo, n int64) (out codehost.QueueEntry, in bool, err error) {
	var got struct {
		Repository struct {
			PullRequest struct {
				Entry *struct {
					Position int `json:"position"`
					Head     *struct {
						SHA string `json:"oid"`
					} `json:"headCommit"`
				} `json:"mergeQueueEntry"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	need := permissions{"pull_requests": "read", "merge_queues": "read"}
	err = h.graphQL(ctx, r, need, `query($owner: String!, $name: String!, $n: Int!) { repository(owner: $owner, name: $name) {
		pullRequest(number: $n) { mergeQueueEntry { position headCommit { oid } } } } }`,
		map[string]any{"owner": r.Owner, "name": r.Name, "n": n}, &got)
	e := got.Repository.PullRequest.Entry
	if err != nil || e == nil {
		return out, false, err
	}
	out.Position = e.Position
	if e.Head != nil && codehost.ValidSHA(e.Head.SHA) {
		out.GroupSHA = e.Head.SHA
	}
	return out, true, nil
}

// Dequeue implements codehost.Forge.
func (h *Host) Dequeue(ctx context.Context, r codehost.Repo, once codehost.Once, n int64) error {
	p, _, err := h.Pull(ctx, r, n, "")
	if err != nil {
		return err
	}
	need := permissions{"pull_requests": "write", "contents": "write", "merge_queues": "write"}
	err = h.graphQL(ctx, r, need, `mutation($id: ID!) { dequeuePullRequest(input: {id: $id}) { mergeQueueEntry { id } } }`,
		map[string]any{"id": p.NodeID}, nil)
	var e *queryError
	if errors.As(err, &e) && (e.says("not in") || e.says("not queued") || e.says("queue")) || errors.Is(err, codehost.ErrNotFound) {
		return nil
	}
	return err
}
