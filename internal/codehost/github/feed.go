package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"yardmaster/internal/codehost"
)

// Installations implements codehost.Feed. A cursor is the address of a page.
func (h *Host) Installations(ctx context.Context, cursor string) ([]codehost.Installation, string, error) {
	if cursor == "" {
		cursor = "/app/installations?per_page=" + perPage
	}
	var found []wireInstallation
	re, err := h.asApp(ctx, http.MethodGet, cursor, nil, &found)
	if err != nil {
		return nil, "", fmt.Errorf("list installations: %w", err)
	}
	out := make([]codehost.Installation, len(found))
	for i, w := range found {
		out[i] = h.installation(w)
	}
	return out, re.next, nil
}

// InstalledRepos implements codehost.Feed.
func (h *Host) InstalledRepos(ctx context.Context, installation, cursor string) ([]codehost.RepoInfo, string, error) {
	id, err := strconv.ParseInt(installation, 10, 64)
	if err != nil {
		return nil, "", codehost.ErrNotInstallable
	}
	if cursor == "" {
		cursor = "/installation/repositories?per_page=" + perPage
	}
	tok, _, err := h.mint(ctx, id, codehost.Repo{}, readMetadata)
	if err == nil {
		var got struct {
			Repositories []wireRepo `json:"repositories"`
		}
		var re reply
		re, err = h.send(ctx, request{
			method: http.MethodGet, path: cursor, auth: credential{"Bearer " + tok, payer(id)}, need: readMetadata,
		}, &got)
		if err == nil {
			out := make([]codehost.RepoInfo, len(got.Repositories))
			for i, w := range got.Repositories {
				out[i] = h.repoInfo(w)
			}
			return out, re.next, nil
		}
	}
	if errors.Is(err, codehost.ErrNotFound) || errors.Is(err, codehost.ErrGone) || errors.Is(err, errUnauthorized) {
		h.tokens.forget(codehost.Repo{})
		return nil, "", fmt.Errorf("%w: %w", codehost.ErrNotInstallable, err)
	}
	return nil, "", fmt.Errorf("list the repositories of installation %s: %w", installation, err)
}

// mostWalked is the number of pages of issues that Changed reads; the next call goes on.
const mostWalked = 5

// Changed implements codehost.Feed. It asks for the newest change of issues and pull
// requests and for the repository in turn. Checks are not seen. The first call, whose
// marks are zero, tells of no issue.
func (h *Host) Changed(ctx context.Context, r codehost.Repo, m codehost.Marks) (codehost.Marks, []codehost.Event, error) {
	ctx = codehost.WithUrgency(ctx, codehost.ForSweeps)
	m.Turn++
	if m.Turn%2 == 1 {
		return h.changedIssues(ctx, r, m)
	}
	var w wireRepo
	re, err := h.do(ctx, r, call{method: http.MethodGet, tag: m.Repo, need: readMetadata}, &w)
	switch {
	case errors.Is(err, codehost.ErrNotModified):
		return m, nil, nil
	case errors.Is(err, codehost.ErrNotFound):
		return m, []codehost.Event{codehost.RepoEvent{
			Happening: codehost.Happening{Repo: r}, Info: codehost.RepoInfo{Repo: r}, Gone: true,
		}}, nil
	case err != nil:
		return m, nil, err
	}
	m.Repo = re.tag
	about := codehost.Happening{Repo: h.repo(w)}
	e := codehost.RepoEvent{Happening: about, Info: h.repoInfo(w)}
	if about.Repo.String() != r.String() {
		e.Was = r.String()
	}
	about.At = w.PushedAt.Time
	return m, []codehost.Event{e, codehost.PushedEvent{Happening: about}}, nil
}

func (h *Host) changedIssues(ctx context.Context, r codehost.Repo, m codehost.Marks) (codehost.Marks, []codehost.Event, error) {
	var newest []wireIssue
	re, err := h.do(ctx, r, call{
		method: http.MethodGet, sub: "/issues", tag: m.Issues, need: readIssues,
		query: url.Values{"state": {"all"}, "sort": {"updated"}, "direction": {"desc"}, "per_page": {"1"}},
	}, &newest)
	if _, off := refused(err, http.StatusGone); off {
		return h.changedPulls(ctx, r, m)
	}
	if errors.Is(err, codehost.ErrNotModified) {
		return m, nil, nil
	}
	if err != nil {
		return m, nil, err
	}
	if m.Since.IsZero() || len(newest) == 0 {
		m.Issues = re.tag
		if m.Since = h.cfg.Now().UTC().Truncate(time.Second); len(newest) > 0 {
			m.Since = newest[0].UpdatedAt.Time
		}
		return m, nil, nil
	}
	var events []codehost.Event
	cursor := ""
	from := m.Since
	for range mostWalked {
		issues, next, err := h.IssuesSince(ctx, r, from, false, cursor)
		if err != nil {
			return m, events, err
		}
		for _, i := range issues {
			about := codehost.Happening{Repo: h.present(r), At: i.UpdatedAt}
			events = append(events, codehost.IssueChanged{Happening: about, Issue: i})
			if i.Pull {
				p, _, err := h.Pull(ctx, r, i.Number, "")
				if errors.Is(err, codehost.ErrNotFound) {
					continue
				}
				if err != nil {
					return m, events, err
				}
				about.At = p.UpdatedAt
				events = append(events, codehost.PullChanged{Happening: about, Pull: p})
			}
			if i.UpdatedAt.After(m.Since) {
				m.Since = i.UpdatedAt
			}
		}
		if cursor = next; cursor == "" {
			m.Issues = re.tag
			break
		}
	}
	return m, events, nil
}

// changedPulls is changedIssues in a repository without issues. Any change shows on the
// first page, so the tag is that of the first page.
func (h *Host) changedPulls(ctx context.Context, r codehost.Repo, m codehost.Marks) (codehost.Marks, []codehost.Event, error) {
	c := call{
		method: http.MethodGet, sub: "/pulls", tag: m.Issues, need: readPulls,
		query: url.Values{"state": {"all"}, "sort": {"updated"}, "direction": {"desc"}, "per_page": {perPage}},
	}
	first, since, newest := m.Since.IsZero(), m.Since, m.Since
	tag := codehost.Tag("")
	var events []codehost.Event
	for range mostWalked {
		var page []wirePull
		re, err := h.do(ctx, r, c, &page)
		if errors.Is(err, codehost.ErrNotModified) {
			return m, nil, nil
		}
		if err != nil {
			return m, nil, err
		}
		if c.page == "" {
			tag = re.tag
		}
		c.page, c.tag = re.next, ""
		for _, w := range page {
			if w.UpdatedAt.After(newest) {
				newest = w.UpdatedAt.Time
			}
			if first || w.UpdatedAt.Before(since) {
				c.page = ""
				break
			}
			p := h.pull(w)
			events = append(events, codehost.PullChanged{Happening: codehost.Happening{Repo: h.present(r), At: p.UpdatedAt}, Pull: p})
		}
		if c.page == "" {
			break
		}
	}
	if m.Issues, m.Since = tag, newest; newest.IsZero() {
		m.Since = h.cfg.Now().UTC().Truncate(time.Second)
	}
	slices.Reverse(events) // the oldest first
	return m, events, nil
}

// wireDelivery is a line of the list of deliveries.
type wireDelivery struct {
	ID          int64  `json:"id"`
	GUID        string `json:"guid"`
	DeliveredAt stamp  `json:"delivered_at"`
	Redelivery  bool   `json:"redelivery"`
	Status      string `json:"status"`
	StatusCode  int    `json:"status_code"`
}

func (d wireDelivery) ok() bool { return d.StatusCode >= 200 && d.StatusCode < 400 }

// Redeliver implements codehost.Feed. A delivery that was sent again already is left
// alone, whatever became of it. See the page "Handling failed webhook deliveries".
func (h *Host) Redeliver(ctx context.Context, since time.Time) (int, error) {
	ctx = codehost.WithUrgency(ctx, codehost.ForSweeps)
	failed, err := h.deliveries(ctx, since, "&status=failure")
	if err != nil || len(failed) == 0 {
		return 0, err
	}
	oldest := failed[len(failed)-1].DeliveredAt.Time
	all, err := h.deliveries(ctx, oldest, "")
	if err != nil {
		return 0, err
	}
	done := map[string]bool{}
	for _, d := range all {
		if d.Redelivery || d.ok() {
			done[d.GUID] = true
		}
	}
	asked := 0
	for i := len(failed) - 1; i >= 0; i-- { // oldest first
		d := failed[i]
		if done[d.GUID] || d.Redelivery || d.ok() {
			continue
		}
		done[d.GUID] = true
		_, err := h.asApp(ctx, http.MethodPost, "/app/hook/deliveries/"+number(d.ID)+"/attempts", nil, nil)
		if errors.Is(err, codehost.ErrNotFound) {
			continue // too old by now
		}
		if err != nil {
			return asked, fmt.Errorf("ask for delivery %s again: %w", d.GUID, err)
		}
		asked++
	}
	return asked, nil
}

// deliveries lists deliveries since a time, the newest first.
func (h *Host) deliveries(ctx context.Context, since time.Time, filter string) (out []wireDelivery, err error) {
	next := "/app/hook/deliveries?per_page=" + perPage + filter
	for next != "" {
		var page []wireDelivery
		re, err := h.asApp(ctx, http.MethodGet, next, nil, &page)
		if err != nil {
			return nil, fmt.Errorf("list deliveries: %w", err)
		}
		next = re.next
		for _, d := range page {
			if d.DeliveredAt.Before(since) {
				return out, nil
			}
			out = append(out, d)
		}
	}
	return out, nil
}
