package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"yardmaster/internal/codehost"
)

var (
	readChecks  = permissions{"checks": "read"}
	writeChecks = permissions{"checks": "write"}
)

// statusSource is the HostCheck.Source of a commit status.
const statusSource = "status"

// Limits of a check run. See the page "Create a check run".
const (
	mostAnnotations = 50
	longestSummary  = longest
)

type wireApp struct {
	ID   int64  `json:"id"`
	Slug string `json:"slug"`
}

type wireCheck struct {
	ID          int64    `json:"id"`
	Name        string   `json:"name"`
	HeadSHA     string   `json:"head_sha"`
	Status      string   `json:"status"`
	Conclusion  string   `json:"conclusion"`
	ExternalID  string   `json:"external_id"`
	DetailsURL  string   `json:"details_url"`
	HTMLURL     string   `json:"html_url"`
	StartedAt   stamp    `json:"started_at"`
	CompletedAt stamp    `json:"completed_at"`
	App         *wireApp `json:"app"`
	Output      struct {
		Annotations int `json:"annotations_count"`
	} `json:"output"`
}

type wireStatus struct {
	ID        int64  `json:"id"`
	Context   string `json:"context"`
	State     string `json:"state"`
	TargetURL string `json:"target_url"`
	CreatedAt stamp  `json:"created_at"`
	UpdatedAt stamp  `json:"updated_at"`
}

// check is a check run. A job of GitHub Actions has the id of its check run.
func (h *Host) check(w wireCheck) codehost.HostCheck {
	c := codehost.HostCheck{
		ID: number(w.ID), Name: w.Name, State: codehost.CheckPending, URL: w.HTMLURL,
		StartedAt: w.StartedAt.maybe(), EndedAt: w.CompletedAt.maybe(),
	}
	if w.App != nil {
		c.Source, c.Own = number(w.App.ID), w.App.ID == h.cfg.AppID
	}
	if w.Status == "completed" {
		c.State, c.End = ended(w.Conclusion)
	}
	if runOf(w) != "" {
		c.Job = c.ID
	}
	return c
}

// ended is what a conclusion of GitHub means.
func ended(conclusion string) (state string, end codehost.CheckEnd) {
	switch conclusion {
	case "success":
		return codehost.CheckPassed, codehost.EndPlain
	case "neutral", "skipped":
		return codehost.CheckPassed, codehost.EndLeftOut
	case "timed_out":
		return codehost.CheckFailed, codehost.EndTimedOut
	case "cancelled":
		return codehost.CheckFailed, codehost.EndCancelled
	case "action_required":
		return codehost.CheckFailed, codehost.EndHeld
	}
	return codehost.CheckFailed, codehost.EndPlain
}

// runOf is the id of the workflow run of a check run; "" if it is no job of GitHub
// Actions. Only the address tells.
func runOf(w wireCheck) string {
	if w.App == nil || w.App.Slug != "github-actions" {
		return ""
	}
	for _, address := range []string{w.DetailsURL, w.HTMLURL} {
		if _, rest, found := strings.Cut(address, "/actions/runs/"); found {
			run, _, _ := strings.Cut(rest, "/")
			if strings.Trim(run, "0123456789") == "" {
				return run
			}
		}
	}
	return ""
}

func statusCheck(w wireStatus) codehost.HostCheck {
	c := codehost.HostCheck{
		ID: statusSource + number(w.ID), Name: w.Context, Source: statusSource, URL: w.TargetURL,
		StartedAt: w.CreatedAt.maybe(),
	}
	switch w.State {
	case "success":
		c.State, c.EndedAt = codehost.CheckPassed, w.UpdatedAt.maybe()
	case "pending":
		c.State = codehost.CheckPending
	default:
		c.State, c.EndedAt = codehost.CheckFailed, w.UpdatedAt.maybe()
	}
	return c
}

// ChecksOf implements codehost.Forge. A tag is that of the check runs, of the statuses, and
// of the workflow runs that wait for a person; a commit with more than a page of one has
// none.
func (h *Host) ChecksOf(ctx context.Context, r codehost.Repo, sha string, t codehost.Tag) (codehost.CheckSet, codehost.Tag, error) {
	if !codehost.ValidSHA(sha) {
		return codehost.CheckSet{}, "", codehost.ErrNotFound
	}
	runTag, rest, _ := strings.Cut(string(t), tagSeparator)
	statusTag, heldTag, _ := strings.Cut(rest, tagSeparator)
	for {
		runs, tag1, err1 := h.checkRuns(ctx, r, sha, url.Values{"filter": {"latest"}}, codehost.Tag(runTag))
		if err1 != nil && !errors.Is(err1, codehost.ErrNotModified) {
			return codehost.CheckSet{}, "", err1
		}
		statuses, tag2, err2 := h.statuses(ctx, r, sha, codehost.Tag(statusTag))
		if err2 != nil && !errors.Is(err2, codehost.ErrNotModified) {
			return codehost.CheckSet{}, "", err2
		}
		held, tag3, err3 := h.heldRuns(ctx, r, sha, codehost.Tag(heldTag))
		if err3 != nil && !errors.Is(err3, codehost.ErrNotModified) {
			return codehost.CheckSet{}, "", err3
		}
		if err1 != nil && err2 != nil && err3 != nil {
			return codehost.CheckSet{}, "", codehost.ErrNotModified
		}
		if err1 != nil || err2 != nil || err3 != nil {
			runTag, statusTag, heldTag = "", "", ""
			continue
		}
		out := codehost.CheckSet{SHA: sha, Checks: []codehost.HostCheck{}}
		workflows, err := h.workflows(ctx, r, sha, runs)
		if err != nil {
			return codehost.CheckSet{}, "", err
		}
		for _, w := range latest(runs) {
			c := h.check(w)
			if run, ok := workflows[runOf(w)]; ok {
				c.Workflow, c.Attempt = run.Name, run.Attempt
			}
			out.Checks = append(out.Checks, c)
		}
		for _, w := range statuses {
			out.Checks = append(out.Checks, statusCheck(w))
		}
		out.Checks = append(out.Checks, held...)
		if tag1 == "" || tag2 == "" || tag3 == "" {
			return out, "", nil
		}
		return out, tag1 + tagSeparator + tag2 + tagSeparator + tag3, nil
	}
}

// latest are the newest check runs of each App and name: GitHub's own filter goes by
// check suite.
func latest(runs []wireCheck) (out []wireCheck) {
	type key struct {
		app  int64
		name string
	}
	at := map[key]int{}
	for _, w := range runs {
		k := key{name: w.Name}
		if w.App != nil {
			k.app = w.App.ID
		}
		if i, known := at[k]; !known {
			at[k] = len(out)
			out = append(out, w)
		} else if w.ID > out[i].ID {
			out[i] = w
		}
	}
	return out
}

func (h *Host) checkRuns(
	ctx context.Context, r codehost.Repo, sha string, query url.Values, t codehost.Tag,
) ([]wireCheck, codehost.Tag, error) {
	type page struct {
		CheckRuns []wireCheck `json:"check_runs"`
	}
	return pages(ctx, h, r, call{sub: "/commits/" + sha + "/check-runs", query: query, tag: t, need: readChecks},
		func(p page) []wireCheck { return p.CheckRuns })
}

func (h *Host) statuses(ctx context.Context, r codehost.Repo, sha string, t codehost.Tag) ([]wireStatus, codehost.Tag, error) {
	type page struct {
		Statuses []wireStatus `json:"statuses"`
	}
	return pages(ctx, h, r, call{sub: "/commits/" + sha + "/status", tag: t, need: permissions{"statuses": "read"}},
		func(p page) []wireStatus { return p.Statuses })
}

// SetCheck implements codehost.Forge. The external_id of a check run is the
// codehost.Once of its last change.
func (h *Host) SetCheck(ctx context.Context, r codehost.Repo, once codehost.Once, c codehost.OwnCheck) (string, error) {
	if !codehost.ValidSHA(c.SHA) {
		return "", codehost.ErrNotFound
	}
	runs, _, err := h.checkRuns(ctx, r, c.SHA, url.Values{
		"filter": {"all"}, "check_name": {c.Name}, "app_id": {number(h.cfg.AppID)},
	}, "")
	if err != nil {
		return "", err
	}
	var newest *wireCheck
	for _, w := range runs {
		if w.Name == c.Name && w.App != nil && w.App.ID == h.cfg.AppID && (newest == nil || w.ID > newest.ID) {
			newest = &w
		}
	}
	sent, path, method := 0, "/check-runs", http.MethodPost
	switch {
	case newest == nil:
	case once != "" && newest.ExternalID == string(once):
		if sent = newest.Output.Annotations; sent >= len(c.Annotations) {
			return number(newest.ID), nil
		}
		path, method = path+"/"+number(newest.ID), http.MethodPatch
	case newest.Status != "completed":
		path, method = path+"/"+number(newest.ID), http.MethodPatch
	}
	for {
		body := h.checkBody(once, c, sent)
		if method == http.MethodPost {
			body["head_sha"] = c.SHA
		}
		var w wireCheck
		ask := call{method: method, sub: path, body: body, need: writeChecks, content: method == http.MethodPost}
		if _, err := h.do(ctx, r, ask, &w); err != nil {
			if _, invalid := refused(err, http.StatusUnprocessableEntity); invalid && method == http.MethodPost {
				return "", codehost.ErrNotFound.Because(err) // no such commit
			}
			return "", err
		}
		if sent = min(sent+mostAnnotations, len(c.Annotations)); sent == len(c.Annotations) {
			return number(w.ID), nil
		}
		path, method = "/check-runs/"+number(w.ID), http.MethodPatch
	}
}

// checkBody is the state of a check run, with its annotations from the nth on.
func (h *Host) checkBody(once codehost.Once, c codehost.OwnCheck, from int) map[string]any {
	body := map[string]any{"name": c.Name, "external_id": string(once)}
	if c.DetailsURL != "" {
		body["details_url"] = c.DetailsURL
	}
	switch c.State {
	case "queued":
		body["status"] = "queued"
	case "running":
		body["status"] = "in_progress"
		body["started_at"] = h.cfg.Now().UTC().Format(time.RFC3339)
	default:
		body["status"], body["conclusion"] = "completed", c.State
		body["completed_at"] = h.cfg.Now().UTC().Format(time.RFC3339)
	}
	if c.Title == "" && c.Summary == "" && len(c.Annotations) == 0 {
		return body
	}
	title := c.Title
	if title == "" {
		title = c.Name
	}
	output := map[string]any{"title": short(title), "summary": cutAt(c.Summary, longestSummary)}
	var notes []map[string]any
	for _, a := range c.Annotations[from:min(from+mostAnnotations, len(c.Annotations))] {
		one := map[string]any{
			"path": a.Path, "start_line": a.StartLine, "end_line": a.Line, "annotation_level": a.Level,
			"message": cutAt(a.Message, longest),
		}
		if a.StartLine == 0 {
			one["start_line"] = a.Line
		}
		if a.Title != "" {
			one["title"] = short(a.Title)
		}
		notes = append(notes, one)
	}
	if notes != nil {
		output["annotations"] = notes
	}
	body["output"] = output
	return body
}

// findCheck reads a check run by its id.
func (h *Host) findCheck(ctx context.Context, r codehost.Repo, id string) (w wireCheck, err error) {
	if id == "" || strings.Trim(id, "0123456789") != "" {
		return w, codehost.ErrNotRerunnable // a status
	}
	err = h.get(ctx, r, readChecks, "/check-runs/"+id, &w)
	return w, err
}

var errNoRun = fmt.Errorf("%w: it is no job of GitHub Actions", codehost.ErrNotRerunnable)
