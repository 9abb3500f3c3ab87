package flow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/goal"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/id"
)

// GoalBoard implements goal.Board: the milestones of one repository.
type GoalBoard struct {
	DB    *db.DB
	Hosts *codehost.Hosts
	Place string // HOST/OWNER/NAME; "": none is configured
}

// mostPages is how many pages of issues are read of one stretch of time to find when an item
// was closed last.
const mostPages = 20

// stretches are the times up to now in which closes are looked for, the shortest first: a
// host lists what changed from the beginning of a stretch, so that of a long one of a busy
// repository the newest closes would be those that are cut off.
var stretches = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, goal.LookBack}

// Goals lists the milestones, and when an item of each was closed last.
func (g GoalBoard) Goals(ctx context.Context, now time.Time) (string, []goal.Milestone, error) {
	forge, r, err := g.forge(ctx)
	if err != nil {
		return "", nil, err
	}
	found, _, err := forge.Milestones(ctx, r, "")
	if err != nil {
		return "", nil, boardFailure(err)
	}
	closed := map[string]time.Time{} // by title, which is unique in a repository
	for _, back := range stretches {
		whole, err := closes(ctx, forge, r, now.Add(-back), closed)
		if err != nil {
			return "", nil, boardFailure(err)
		}
		settled := !slices.ContainsFunc(found, func(m codehost.Milestone) bool { return m.Closed > 0 && closed[m.Title].IsZero() })
		if !whole || settled {
			break
		}
	}
	out := make([]goal.Milestone, len(found))
	for i, m := range found {
		out[i] = goal.Milestone{
			Number: m.Number, Title: m.Title, Description: m.Description, URL: m.URL, Open: m.Open, Items: m.OpenIssues + m.Closed,
			Done: m.Closed, DueOn: m.DueOn,
		}
		if at, ok := closed[m.Title]; ok {
			out[i].LastClosed = &at
		}
	}
	return r.String(), out, nil
}

// closes adds when an item of each milestone was closed last after a time. whole is false if
// there is more than it reads.
func closes(
	ctx context.Context, forge codehost.Forge, r codehost.Repo, since time.Time, closed map[string]time.Time,
) (whole bool, err error) {
	cursor := ""
	for page := 0; page < mostPages && (page == 0 || cursor != ""); page++ {
		var issues []codehost.Issue
		if issues, cursor, err = forge.IssuesSince(ctx, r, since, false, cursor); err != nil {
			return false, err
		}
		for _, i := range issues {
			if i.ClosedAt != nil && i.Milestone != "" && i.ClosedAt.After(closed[i.Milestone]) && i.ClosedAt.After(since) {
				closed[i.Milestone] = *i.ClosedAt
			}
		}
	}
	return cursor == "", nil
}

// Rename gives a milestone another title.
func (g GoalBoard) Rename(ctx context.Context, number int64, title string) error {
	forge, r, err := g.forge(ctx)
	if err != nil {
		return err
	}
	switch err := forge.RenameMilestone(ctx, r, codehost.Once(id.New()), number, title); {
	case errors.Is(err, codehost.ErrExists):
		return goal.ErrTaken
	case errors.Is(err, codehost.ErrNotFound):
		return goal.ErrMissing
	case err != nil:
		return boardFailure(err)
	}
	return nil
}

// forge finds the repository and its forge. It fails with *goal.UnreadableError.
func (g GoalBoard) forge(ctx context.Context) (codehost.Forge, codehost.Repo, error) {
	parts := strings.Split(g.Place, "/")
	if len(parts) != 3 {
		return nil, codehost.Repo{}, &goal.UnreadableError{Reason: goal.NotConfigured}
	}
	at := codehost.Repo{Host: parts[0], Owner: parts[1], Name: parts[2]}
	forge, err := g.Hosts.Forge(at)
	if err != nil {
		return nil, at, &goal.UnreadableError{Reason: goal.NotConnected, Cause: err}
	}
	if !forge.Can(codehost.KeepIssues) {
		return nil, at, &goal.UnreadableError{Reason: goal.NoMilestones}
	}
	var known repo.Ref
	var ok bool
	err = g.DB.Read(ctx, func(tx *db.Tx) (err error) {
		known, ok, err = repo.At(tx, at)
		return err
	})
	if err != nil {
		return nil, at, err
	}
	if !ok {
		return nil, at, &goal.UnreadableError{Reason: goal.NotInstalled}
	}
	return forge, known.HostRepo(), nil
}

// boardFailure is the failure of a host as the board tells it.
func boardFailure(err error) error {
	out := &goal.UnreadableError{Reason: goal.Failed, Cause: err}
	busy, isBusy := errors.AsType[*codehost.BusyError](err)
	_, isForbidden := errors.AsType[*codehost.ForbiddenError](err)
	switch {
	case errors.Is(err, codehost.ErrCannot):
		out.Reason = goal.NoMilestones
	case errors.Is(err, codehost.ErrGone), errors.Is(err, codehost.ErrNotFound):
		out.Reason = goal.NotInstalled
	case isForbidden:
		out.Reason = goal.Forbidden
	case isBusy:
		out.Reason, out.After = goal.Busy, busy.After
	}
	return out
}
