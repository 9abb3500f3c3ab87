package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
)

// readSaid reads what people have said about an open pull request since a time: comments
// and reviews of every pull request, and the threads of those that agents look after. It
// may have been delivered; a command and a review count once, however they come to be known.
func (h HostEvents) readSaid(ctx context.Context, r repo.Ref, number int64, since time.Time) error {
	var prID string
	open, watched := false, false
	err := h.DB.Read(ctx, func(tx *db.Tx) error {
		id, known, err := pull.ByNumber(tx, r.ID, number)
		if err != nil || !known {
			return err
		}
		p, _, err := pull.ForReview(tx, id, false)
		prID, open, watched = id, p.Open, p.Watched
		return err
	})
	if err != nil || !open {
		return err
	}
	forge, err := h.Hosts.Forge(r.HostRepo())
	if err != nil || !forge.Can(codehost.KeepPulls) {
		return err
	}
	if err := h.comments(ctx, forge, r, number, since); err != nil {
		return err
	}
	if err := h.reviews(ctx, forge, r, number, since); err != nil || !watched {
		return err
	}
	return h.lines(ctx, forge, r, prID, number, since)
}

// said is what a comment that was read tells, as its delivery would.
func said(r repo.Ref, number int64, c codehost.Comment, thread string) codehost.Commented {
	return codehost.Commented{
		Happening: codehost.Happening{Repo: r.HostRepo(), Action: codehost.ActionCreated, By: c.Author, At: c.CreatedAt},
		Number:    number, Pull: true, Comment: c, Thread: thread,
	}
}

// comments hears the comments in the conversation of a pull request.
func (h HostEvents) comments(ctx context.Context, forge codehost.Forge, r repo.Ref, number int64, since time.Time) error {
	all, err := forge.CommentsOf(ctx, r.HostRepo(), number, since)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	for _, c := range all {
		if c.CreatedAt.Before(since) {
			continue // it was edited
		}
		if _, err := h.Commands.Said(ctx, r, said(r, number, c, "")); err != nil {
			return err
		}
	}
	return nil
}

// reviews hears the reviews of a pull request. One that was dismissed may have been given
// long before, and is no news if it is known to be.
func (h HostEvents) reviews(ctx context.Context, forge codehost.Forge, r repo.Ref, number int64, since time.Time) error {
	all, err := forge.ReviewsOf(ctx, r.HostRepo(), number)
	if err != nil && !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	for _, v := range all {
		about := codehost.Happening{Repo: r.HostRepo(), Action: codehost.ActionSubmitted, By: v.Author, At: v.SubmittedAt}
		switch {
		case v.State == record.ReviewDismissed:
			about.Action = codehost.ActionDismissed
		case v.SubmittedAt.Before(since):
			continue
		}
		if err := h.Pulls.HostReviewed(ctx, r, codehost.ReviewPosted{Happening: about, Number: number, Review: v}); err != nil {
			return err
		}
	}
	return nil
}

// lines hears the comments in the threads of a pull request, and has the threads read.
func (h HostEvents) lines(ctx context.Context, forge codehost.Forge, r repo.Ref, prID string, number int64, since time.Time) error {
	threads, err := forge.Threads(ctx, r.HostRepo(), number)
	if errors.Is(err, codehost.ErrNotFound) || err == nil && len(threads) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, t := range threads {
		for _, c := range t.Comments {
			if c.CreatedAt.Before(since) {
				continue
			}
			if _, err := h.Commands.Said(ctx, r, said(r, number, c, fmt.Sprintf("%s:%d", t.Path, t.Line))); err != nil {
				return err
			}
		}
	}
	return h.Reviews.ReadThreads(ctx, r, prID, number)
}
