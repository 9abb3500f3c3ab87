package issue

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// The kinds of intents about issues, and their arguments.
var (
	tellAtHost = intent.Declare[tellArgs, codehost.Comment]("issue.comment", false)
	openAtHost = intent.Declare[openArgs, codehost.Issue]("issue.open", false)
)

type (
	tellArgs struct {
		Number                  int64
		Body                    string
		AddLabels, RemoveLabels []string
		Close                   string // "completed" or ""
	}
	openArgs struct {
		Title, Body string
		Labels      []string
	}
)

// tell has something said about an issue at its host.
func (s *Service) tell(tx *db.Tx, r repo.Ref, i row, a tellArgs) error {
	a.Number = i.number()
	_, err := tellAtHost.Put(tx, intent.Want[tellArgs]{Repo: r, Object: i.ID, Rank: intent.ForRecord, Args: a})
	return err
}

// teller comments on issues.
type teller struct{}

// Still implements intent.Handler.
func (teller) Still(tx *db.Tx, c intent.Call[tellArgs]) (bool, error) {
	i, ok, err := byID.Maybe(tx, tx.Account, c.Object)
	return ok && i.GoneAt == nil && i.Number != nil && c.Repo.Enabled, err
}

// Do implements intent.Handler. The comment is posted once; labels and state are set.
func (teller) Do(ctx context.Context, f codehost.Forge, c intent.Call[tellArgs]) (codehost.Comment, error) {
	at := c.Repo.HostRepo()
	n := c.Args.Number
	said, err := f.AddComment(ctx, at, c.ID, n, c.Args.Body)
	if err != nil && !errors.Is(err, codehost.ErrLocked) {
		return said, err
	}
	return said, f.EditIssue(ctx, at, c.ID, n, codehost.IssueEdit{
		AddLabels: c.Args.AddLabels, RemoveLabels: c.Args.RemoveLabels, Close: c.Args.Close,
	})
}

// Done implements intent.Handler.
func (teller) Done(*db.Tx, intent.Call[tellArgs], codehost.Comment, error) error { return nil }

// Request asks the host of a repository of tx.Account to open an issue, and answers the id
// that the issue has here.
func Request(tx *db.Tx, r repo.Ref, title, body string, labels []string) (issueID string, err error) {
	issueID = id.New()
	title, body = clip(oneLine(title), maxTitle), clip(body, maxBody)
	if labels == nil {
		labels = []string{}
	}
	if _, err := insert.Exec(tx, mirrorArgs{
		ID: issueID, AccountID: tx.Account, RepoID: r.ID, Title: title, Body: body, State: Opening, AuthorBot: true,
		Labels: db.JSON[[]string]{V: labels}, CreatedAt: tx.Micros(),
	}); err != nil {
		return "", err
	}
	if _, err := openAtHost.Put(tx, intent.Want[openArgs]{
		Repo: r, Object: issueID, Rank: intent.ForPeople, Args: openArgs{title, body, labels},
	}); err != nil {
		return "", err
	}
	return issueID, requestedEvent.Record(tx, event.Subject{ID: issueID, RepoID: r.ID}, requestedData{Title: title})
}

// opener opens issues.
type opener struct{}

// Still implements intent.Handler.
func (opener) Still(tx *db.Tx, c intent.Call[openArgs]) (bool, error) {
	i, ok, err := byID.Maybe(tx, tx.Account, c.Object)
	return ok && i.State == Opening, err
}

// Do implements intent.Handler.
func (opener) Do(ctx context.Context, f codehost.Forge, c intent.Call[openArgs]) (codehost.Issue, error) {
	return f.OpenIssue(ctx, c.Repo.HostRepo(), c.ID, c.Args.Title, c.Args.Body, c.Args.Labels)
}

// Done implements intent.Handler. A sweep may have recorded the issue under its number
// before: then that row is given up.
func (opener) Done(tx *db.Tx, c intent.Call[openArgs], at codehost.Issue, failure error) error {
	i, ok, err := lockID.Maybe(tx, tx.Account, c.Object)
	if err != nil || !ok || i.State != Opening {
		return err
	}
	if failure != nil {
		_, err := setState.Exec(tx, tx.Account, i.ID, Refused)
		return err
	}
	a := mirrorOf(c.Repo, at)
	if other, taken, err := byNumber.Maybe(tx, tx.Account, i.RepoID, at.Number); err != nil {
		return err
	} else if taken {
		if _, err := remove.Exec(tx, tx.Account, other.ID); err != nil {
			return err
		}
	}
	a.ID = i.ID
	_, err = mirror.Exec(tx, a)
	return err
}
