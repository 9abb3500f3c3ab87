package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/lazy"
)

var (
	readPulls  = permissions{"pull_requests": "read"}
	writePulls = permissions{"pull_requests": "write"}
)

func pullPath(n int64) string { return "/pulls/" + number(n) }

// OpenPull implements codehost.Forge. Where a repository has no drafts, the pull
// request is opened as one that is none.
func (h *Host) OpenPull(ctx context.Context, r codehost.Repo, once codehost.Once, n codehost.NewPull) (codehost.Pull, error) {
	type newPull struct {
		Title string `json:"title"`
		Head  string `json:"head"`
		Base  string `json:"base"`
		Body  string `json:"body"`
		Draft bool   `json:"draft"`
	}
	ask := newPull{n.Title, n.Head, n.Base, marked(n.Body, ""), n.Draft}
	for {
		var w wirePull
		_, err := h.do(ctx, r, call{method: http.MethodPost, sub: "/pulls", body: ask, need: writePulls, content: true}, &w)
		e, invalid := refused(err, http.StatusUnprocessableEntity)
		switch {
		case err == nil:
			return h.pull(w), nil
		case !invalid:
			return codehost.Pull{}, err
		case e.says("already exists"):
			return h.openPullOf(ctx, r, n)
		case e.says("no commits between"):
			return codehost.Pull{}, fmt.Errorf("%w: %w", codehost.ErrNoCommits, err)
		case e.says("draft") && ask.Draft:
			ask.Draft = false
			continue
		case e.says("head invalid"), e.says("base invalid"), e.says("head missing"):
			return codehost.Pull{}, codehost.ErrNotFound.Because(err)
		}
		return codehost.Pull{}, err
	}
}

// openPullOf is the open pull request of a head and base.
func (h *Host) openPullOf(ctx context.Context, r codehost.Repo, n codehost.NewPull) (codehost.Pull, error) {
	found, err := all[wirePull](ctx, h, r, readPulls, "/pulls", url.Values{
		"state": {"open"}, "head": {h.present(r).Owner + ":" + n.Head}, "base": {n.Base},
	})
	if err != nil {
		return codehost.Pull{}, err
	}
	for _, w := range found {
		if w.Head.Ref == n.Head && w.Base.Ref == n.Base && !h.pull(w).Fork {
			return h.pull(w), nil
		}
	}
	return codehost.Pull{}, &codehost.BusyError{Cause: fmt.Errorf("GitHub says that %s has an open pull request, and lists none", n.Head)}
}

// Pull implements codehost.Forge.
func (h *Host) Pull(ctx context.Context, r codehost.Repo, n int64, t codehost.Tag) (codehost.Pull, codehost.Tag, error) {
	w, tag, err := h.readPull(ctx, r, n, t)
	if err != nil {
		return codehost.Pull{}, "", err
	}
	return h.pull(w), tag, nil
}

func (h *Host) readPull(ctx context.Context, r codehost.Repo, n int64, t codehost.Tag) (w wirePull, tag codehost.Tag, err error) {
	re, err := h.do(ctx, r, call{method: http.MethodGet, sub: pullPath(n), tag: t, need: readPulls}, &w)
	return w, re.tag, err
}

// OpenPulls implements codehost.Forge.
func (h *Host) OpenPulls(ctx context.Context, r codehost.Repo) ([]codehost.Pull, error) {
	found, err := all[wirePull](ctx, h, r, readPulls, "/pulls", url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}})
	if err != nil {
		return nil, err
	}
	// A pull request that is closed while the pages are read moves the others up.
	seen := map[int64]bool{}
	var out []codehost.Pull
	for _, w := range found {
		if !seen[w.Number] {
			seen[w.Number] = true
			out = append(out, h.pull(w))
		}
	}
	slices.SortFunc(out, func(a, b codehost.Pull) int { return int(a.Number - b.Number) })
	return out, nil
}

// EditPull implements codehost.Forge. Each part of an edit has the same effect when it
// is made again.
func (h *Host) EditPull(ctx context.Context, r codehost.Repo, once codehost.Once, n int64, e codehost.PullEdit) (codehost.Pull, error) {
	w, _, err := h.readPull(ctx, r, n, "")
	if err != nil {
		return codehost.Pull{}, err
	}
	if h.pull(w).Merged && (e.Open != nil || e.Draft != nil || e.Base != nil) {
		return codehost.Pull{}, codehost.ErrMerged
	}
	change := map[string]string{}
	set := func(key string, to *string, is string) {
		if to != nil && *to != is {
			change[key] = *to
		}
	}
	set("title", e.Title, w.Title)
	if e.Body != nil {
		body := marked(*e.Body, "")
		set("body", &body, w.Body)
	}
	set("base", e.Base, w.Base.Ref)
	if e.Open != nil {
		state := map[bool]string{true: "open", false: "closed"}[*e.Open]
		set("state", &state, w.State)
	}
	if len(change) > 0 {
		c := call{method: http.MethodPatch, sub: pullPath(n), body: change, need: writePulls}
		if _, err := h.do(ctx, r, c, nil); err != nil {
			return codehost.Pull{}, err
		}
	}
	if e.Draft != nil && *e.Draft != w.Draft {
		if err := h.setDraft(ctx, r, w.NodeID, *e.Draft); err != nil {
			return codehost.Pull{}, err
		}
	}
	if err := h.editLabels(ctx, r, n, writePulls, e.AddLabels, e.RemoveLabels); err != nil {
		return codehost.Pull{}, err
	}
	if e.DeleteBranch != "" {
		err := h.DeleteBranch(ctx, r, e.DeleteBranch, e.ExpectHead)
		if err != nil && !errors.Is(err, codehost.ErrNotFound) && !errors.Is(err, codehost.ErrHeadMoved) {
			return codehost.Pull{}, err // a branch that is gone or has moved stays as it is
		}
	}
	out, _, err := h.Pull(ctx, r, n, "")
	return out, err
}

// setDraft makes a pull request a draft, or ready for review. REST cannot.
func (h *Host) setDraft(ctx context.Context, r codehost.Repo, node string, draft bool) error {
	query := `mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`
	if draft {
		query = `mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`
	}
	return h.graphQL(ctx, r, writePulls, query, map[string]any{"id": node}, nil)
}

// editLabels adds and removes labels of an issue or pull request.
func (h *Host) editLabels(ctx context.Context, r codehost.Repo, n int64, need permissions, add, remove []string) error {
	if len(add) > 0 {
		body := map[string][]string{"labels": add}
		if _, err := h.do(ctx, r, call{method: http.MethodPost, sub: issuePath(n) + "/labels", body: body, need: need}, nil); err != nil {
			return err
		}
	}
	for _, name := range remove {
		_, err := h.do(ctx, r, call{method: http.MethodDelete, sub: issuePath(n) + "/labels/" + url.PathEscape(name), need: need}, nil)
		if err != nil && !errors.Is(err, codehost.ErrNotFound) {
			return err
		}
	}
	return nil
}

// mostFiles is the number of files at which GitHub cuts the list. See the page "List
// pull requests files".
const mostFiles = 3000

// PullFiles implements codehost.Forge. GitHub leaves out the hunks of large files.
func (h *Host) PullFiles(ctx context.Context, r codehost.Repo, n int64) ([]codehost.PullFile, bool, error) {
	type wireFile struct {
		Filename  string `json:"filename"`
		Previous  string `json:"previous_filename"`
		Status    string `json:"status"`
		Additions int    `json:"additions"`
		Deletions int    `json:"deletions"`
		Patch     string `json:"patch"`
	}
	var counted struct {
		ChangedFiles int `json:"changed_files"`
	}
	if err := h.get(ctx, r, readPulls, pullPath(n), &counted); err != nil {
		return nil, false, err
	}
	found, err := all[wireFile](ctx, h, r, readPulls, pullPath(n)+"/files", nil)
	if err != nil {
		return nil, false, err
	}
	files := make([]codehost.PullFile, len(found))
	for i, f := range found {
		files[i] = codehost.PullFile{
			Path: f.Filename, OldPath: f.Previous, Status: f.Status, Added: f.Additions, Deleted: f.Deletions, Hunks: hunks(f.Patch),
		}
		switch f.Status {
		case "changed", "unchanged": // the mode alone
			files[i].Status = "modified"
		case "copied":
			files[i].Status = "added"
		}
	}
	return files, len(files) < mostFiles && len(files) >= counted.ChangedFiles, nil
}

var hunkHeader = lazy.New(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$`)

// hunks reads a patch as GitHub shows it: without the lines before the first hunk.
func hunks(patch string) (out []codehost.Hunk) {
	if patch == "" {
		return nil
	}
	for line := range strings.SplitSeq(patch, "\n") {
		if m := hunkHeader.FindStringSubmatch(line); m != nil {
			out = append(out, codehost.Hunk{
				OldStart: atoi(m[1], 0), OldLines: atoi(m[2], 1), NewStart: atoi(m[3], 0), NewLines: atoi(m[4], 1), Section: m[5],
			})
		} else if len(out) > 0 {
			h := &out[len(out)-1]
			h.Lines = append(h.Lines, line)
		}
	}
	return out
}
