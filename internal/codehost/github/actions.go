package github

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"yardmaster/internal/codehost"
)

var readActions = permissions{"actions": "read"}

type wireRun struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Attempt int    `json:"run_attempt"`
	HTMLURL string `json:"html_url"`
}

// workflows are the workflow runs of a commit by their ids, if one of its check runs is
// a job of one. Without the permission to read them there are none.
func (h *Host) workflows(ctx context.Context, r codehost.Repo, sha string, runs []wireCheck) (map[string]wireRun, error) {
	if !slices.ContainsFunc(runs, func(w wireCheck) bool { return runOf(w) != "" }) {
		return nil, nil
	}
	type page struct {
		Runs []wireRun `json:"workflow_runs"`
	}
	found, _, err := pages(ctx, h, r, call{sub: "/actions/runs", query: url.Values{"head_sha": {sha}}, need: readActions},
		func(p page) []wireRun { return p.Runs })
	var forbidden *codehost.ForbiddenError
	if errors.As(err, &forbidden) || errors.Is(err, codehost.ErrNotFound) {
		return nil, nil
	}
	out := map[string]wireRun{}
	for _, w := range found {
		out[number(w.ID)] = w
	}
	return out, err
}

// workflowSource is the HostCheck.Source of a workflow run that has no check run yet.
const workflowSource = "workflow"

// noRuns is the tag of the workflow runs that the App may not read.
const noRuns = "none"

// heldRuns are the workflow runs of a commit that wait for a person to let them run, as
// those of first-time contributors do. They have no check run.
func (h *Host) heldRuns(ctx context.Context, r codehost.Repo, sha string, t codehost.Tag) ([]codehost.HostCheck, codehost.Tag, error) {
	if t == noRuns {
		return nil, t, codehost.ErrNotModified
	}
	type page struct {
		Runs []wireRun `json:"workflow_runs"`
	}
	found, tag, err := pages(ctx, h, r, call{
		sub: "/actions/runs", query: url.Values{"head_sha": {sha}, "status": {"action_required"}}, tag: t, need: readActions,
	}, func(p page) []wireRun { return p.Runs })
	var forbidden *codehost.ForbiddenError
	if errors.As(err, &forbidden) || errors.Is(err, codehost.ErrNotFound) {
		return nil, noRuns, nil
	}
	out := []codehost.HostCheck{}
	for _, w := range found {
		if slices.ContainsFunc(out, func(c codehost.HostCheck) bool { return c.Name == w.Name }) {
			continue // the newest of a workflow comes first
		}
		out = append(out, codehost.HostCheck{
			ID: workflowSource + number(w.ID), Name: w.Name, Source: workflowSource, State: codehost.CheckFailed,
			End: codehost.EndHeld, Workflow: w.Name, Attempt: w.Attempt, URL: w.HTMLURL,
		})
	}
	return out, tag, err
}

// goesOn is the time after which a workflow run is looked at again that has not ended.
const goesOn = 10 * time.Second

// RerunFailed implements codehost.Forge. It runs all failed jobs of the workflow runs
// of the checks again. A run that has had an attempt since the check was run again
// already. GitHub runs nothing again before the whole run has ended.
func (h *Host) RerunFailed(ctx context.Context, r codehost.Repo, once codehost.Once, ids []string) error {
	need := permissions{"actions": "write"}
	jobs := map[string]string{} // run -> one of its jobs
	for _, id := range ids {
		w, err := h.findCheck(ctx, r, id)
		if err != nil {
			return err
		}
		run := runOf(w)
		if run == "" {
			return errNoRun
		}
		jobs[run] = number(w.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(jobs)) {
		var run wireRun
		err := h.get(ctx, r, readActions, "/actions/runs/"+id, &run)
		if errors.Is(err, codehost.ErrNotFound) {
			return fmt.Errorf("%w: %w", codehost.ErrTooOld, err)
		}
		if err != nil {
			return err
		}
		var job struct {
			Attempt int `json:"run_attempt"`
		}
		err = h.get(ctx, r, readActions, "/actions/jobs/"+jobs[id], &job)
		if err != nil && !errors.Is(err, codehost.ErrNotFound) {
			return err
		}
		if err == nil && job.Attempt > 0 && job.Attempt < run.Attempt {
			continue
		}
		if run.Status != "completed" {
			return &codehost.BusyError{After: goesOn, Cause: errors.New("the workflow run has not ended")}
		}
		_, err = h.do(ctx, r, call{method: http.MethodPost, sub: "/actions/runs/" + id + "/rerun-failed-jobs", need: need}, nil)
		if e, is := refused(err, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusGone, http.StatusConflict); is {
			switch {
			case e.says("already running"):
				return &codehost.BusyError{After: time.Minute, Cause: err}
			case e.says("month ago"), e.says("expired"), e.says("too old"), e.Status == http.StatusGone:
				return fmt.Errorf("%w: %w", codehost.ErrTooOld, err)
			}
			return fmt.Errorf("%w: %w", codehost.ErrNotRerunnable, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckLog implements codehost.Forge. GitHub redirects to another host, which must not
// see the credential and is good for a minute.
func (h *Host) CheckLog(ctx context.Context, r codehost.Repo, id string, last int64) (io.ReadCloser, error) {
	w, err := h.findCheck(ctx, r, id)
	if errors.Is(err, codehost.ErrNotRerunnable) || err == nil && runOf(w) == "" {
		return nil, codehost.ErrNoLog
	}
	if err != nil {
		return nil, err
	}
	address, err := h.logAddress(ctx, r, number(w.ID))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", id, err)
	}
	resp, err := h.http.Do(req)
	if err != nil {
		return nil, &codehost.BusyError{Cause: fmt.Errorf("read the log of %s: %w", id, withoutQuery(err))}
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		return nil, codehost.ErrNoLog
	case resp.StatusCode != http.StatusOK:
		return nil, &codehost.BusyError{Cause: fmt.Errorf("the log of %s: status %d", id, resp.StatusCode)}
	}
	kept, err := tail(resp.Body, last)
	if err != nil {
		return nil, &codehost.BusyError{Cause: fmt.Errorf("read the log of %s: %w", id, withoutQuery(err))}
	}
	return io.NopCloser(bytes.NewReader(kept)), nil
}

// logAddress is where a job's log is for the next minute.
func (h *Host) logAddress(ctx context.Context, r codehost.Repo, job string) (string, error) {
	auth, err := h.tokenFor(ctx, r, readActions)
	if err != nil {
		return "", err
	}
	resp, err := h.exchange(ctx, request{
		method: http.MethodGet, path: byID(r) + "/actions/jobs/" + job + "/logs", auth: auth,
	})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound, resp.StatusCode == http.StatusGone:
		return "", codehost.ErrNoLog
	case resp.StatusCode >= 400:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return "", h.failure(resp.StatusCode, resp.Header, body, readActions)
	}
	to, err := resp.Location()
	if err != nil || to.Scheme != "https" && to.Scheme != h.web.Scheme {
		return "", fmt.Errorf("GitHub answers %d for a log, and no address", resp.StatusCode)
	}
	return to.String(), nil
}

// mostLog is the largest end of a log that is kept, in bytes.
const mostLog = 16 << 20

// tail reads to the end and keeps about the last bytes, from the beginning of a line.
func tail(r io.Reader, last int64) ([]byte, error) {
	if last <= 0 || last > mostLog {
		last = mostLog
	}
	var kept []byte
	cut := false
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		kept = append(kept, buf[:n]...)
		if int64(len(kept)) > 2*last {
			kept, cut = append(kept[:0], kept[int64(len(kept))-last:]...), true
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if int64(len(kept)) > last {
		kept, cut = kept[int64(len(kept))-last:], true
	}
	if i := bytes.IndexByte(kept, '\n'); cut && i >= 0 {
		kept = kept[i+1:]
	}
	return kept, nil
}
