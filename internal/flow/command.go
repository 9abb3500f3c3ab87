package flow

import (
	"context"
	"fmt"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/command"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/review"
)

// Commands does what people ask for in comments at code hosts. It is command.Work.
type Commands struct {
	Pulls   *pull.Service
	Reviews *review.Service
	Persons HostPersons
}

// Asker names somebody at a host.
func (c Commands) Asker(tx *db.Tx, host string, who codehost.User) (command.Asker, error) {
	userID, sure, err := c.Persons.User(tx, host, who)
	if err != nil || userID == "" {
		return command.Asker{Label: pull.HostLabel(who)}, err
	}
	barred, err := barredHere(tx, userID)
	if !sure {
		return command.Asker{Label: pull.HostLabel(who), Barred: barred}, err
	}
	return command.Asker{Label: "user:" + userID, UserID: userID, Barred: barred}, err
}

// ByNumber finds a pull request by its number in a repository.
func (Commands) ByNumber(tx *db.Tx, repoID string, number int64) (string, bool, error) {
	return pull.ByNumber(tx, repoID, number)
}

// CatchUp records a pull request that its host has.
func (c Commands) CatchUp(ctx context.Context, r repo.Ref, number int64) error {
	return c.Pulls.CatchUp(ctx, r, number)
}

// Review begins the review of the head, whatever the policy says of reviews that nobody
// asked for.
func (c Commands) Review(tx *db.Tx, r repo.Ref, prID string, by command.Asker) error {
	found, ok, err := pull.ForReview(tx, prID, true)
	if err != nil || !ok {
		return err
	}
	p, err := ofReview(tx, found)
	if err != nil {
		return err
	}
	return c.Reviews.Asked(tx, r, p, by.UserID)
}

// Rebase begins a round that brings the base into the branch.
func (c Commands) Rebase(tx *db.Tx, prID string) error { return c.Pulls.TakeBase(tx, prID) }

// Fix has agents look after a pull request.
func (c Commands) Fix(tx *db.Tx, prID string, by command.Asker) error {
	return c.Pulls.Watch(tx, prID, by.Label)
}

// Stop has agents leave a pull request alone.
func (c Commands) Stop(tx *db.Tx, prID string, by command.Asker) error {
	return c.Pulls.Unwatch(tx, prID, by.Label)
}

// Facts tells how a pull request stands.
func (c Commands) Facts(tx *db.Tx, prID string) (command.Facts, error) {
	at, ok, err := pull.StandingOf(tx, prID)
	if err != nil || !ok {
		return command.Facts{}, err
	}
	f := command.Facts{
		State: at.State, HeadSHA: at.HeadSHA, BaseRef: at.BaseRef, Mergeable: at.Mergeable, Checks: at.Checks, Draft: at.Draft,
		Fork: at.Fork, Watched: at.Watched, Round: at.Round, WaitsUntil: at.WaitsUntil, Asked: at.Asked, Ordered: at.Ordered,
		Objections: at.Objections, Page: c.Pulls.OfPull(prID),
	}
	rv, any, err := review.StandingOf(tx, prID)
	if err != nil {
		return f, err
	}
	held := false
	if rv.Verdict == "" && rv.TaskID != "" {
		if held, err = (ReviewTasks{}).Held(tx, rv.TaskID); err != nil {
			return f, err
		}
	}
	switch {
	case !any:
	case rv.HeadSHA != at.HeadSHA:
		f.Review = "of an earlier head"
	case rv.Blind:
		f.Review = "no model was there"
	case rv.State == review.Failed || rv.State == review.Cancelled:
		f.Review = "it did not come to an end"
	case held:
		f.Review = "its task is held"
	case rv.Verdict == "":
		f.Review = "under way"
	case rv.Verdict == review.VerdictFailure:
		f.Review = "it holds the merge"
	default:
		f.Review = "it found nothing that holds the merge"
	}
	open, err := review.OpenOf(tx, prID)
	for _, o := range open {
		place := fmt.Sprintf("%s:%d", o.File, o.Line)
		f.Findings = append(f.Findings, command.Finding{Severity: string(o.Severity), Claim: o.Claim, Place: place})
	}
	return f, err
}

// Raise asks a person to look at a thread in which too much was said.
func (c Commands) Raise(tx *db.Tx, repoID, prID string) error {
	address := c.Pulls.OfPull(prID)
	_, err := escalation.Raise(tx, escalation.Draft{
		RepoID: &repoID, PRID: &prID, Category: "talk", URL: &address, Title: "Commands in a thread at a code host do not end",
		Body: address, Reason: "Ten commands were answered there within an hour. The next ones are not carried out until an hour has passed.",
	})
	return err
}
