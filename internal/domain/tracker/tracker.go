// Package tracker opens issues at Linear for accounts that have connected it. A task that
// is sent there becomes a row in the transaction of the caller; a loop opens the issue,
// once, and notes what came of it.
//
//   - tracker.go: the types, and what is to be opened
//   - loop.go: how issues are opened
//   - ops.go, store.go: the rows
package tracker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/linear"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
	"yardmaster/internal/secretscan"
)

// State is the state of an issue.
type State string

// States of an issue.
const (
	Wanted = "wanted" // it is yet to be opened
	Opened = "opened"
	Failed = "failed" // Linear refused it, or did not answer for a day
)

// Values lists all states.
func (State) Values() []string { return []string{Wanted, Opened, Failed} }

// Limits of an issue, in characters, and of its tries.
const (
	maxTitle = 200
	maxBody  = 20_000
	giveUp   = 24 * time.Hour
	longest  = 15 * time.Minute // from one try to the next
)

// Linear is the API of Linear.
type Linear interface {
	Viewer(ctx context.Context, key string) (linear.Viewer, error)
	Find(ctx context.Context, key, issueID string) (linear.Issue, bool, error)
	Create(ctx context.Context, key string, d linear.Draft) (linear.Issue, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Due    *due.Kernel
	Ring   *seal.Keyring
	Linear Linear
	Logger *slog.Logger
}

// Service has the capabilities of the connection to Linear, and opens issues there.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[wanted]{Name: "tracker", Retry: ladder, Load: load, Work: s.carry, Open: open})
	return s
}

func purpose(account string) string { return "tracker/" + account }

// Want has an issue opened for a repository of tx.Account, and answers its id; false if
// the account has connected no tracker.
func (s *Service) Want(tx *db.Tx, r repo.Ref, title, body string, labels []string) (issueID string, ok bool, err error) {
	if _, ok, err := byAccount.Maybe(tx, tx.Account); err != nil || !ok {
		return "", false, err
	}
	if len(labels) > 0 {
		body += "\n\nLabels: " + strings.Join(labels, ", ")
	}
	body += "\n\nFor " + r.FullName() + "."
	now := tx.Micros()
	issueID = id.Random()
	_, err = insertIssue.Exec(tx, insertIssueArgs{
		ID: issueID, AccountID: tx.Account, RepoID: r.ID, Title: clip(secretscan.Scrub(title), maxTitle),
		Body: clip(secretscan.Scrub(body), maxBody), State: Wanted, CreatedBy: policy.From(tx.Context()).Label(), Now: now,
	})
	if err != nil {
		return "", false, err
	}
	s.queue.Add(tx, issueID, due.Entry{Account: tx.Account})
	return issueID, true, requestedEvent.Record(tx, event.Subject{ID: issueID, RepoID: r.ID}, requestedData{Title: title})
}

// Made tells whether an issue at Linear is one that was opened for tx.Account.
func Made(tx *db.Tx, issueID string) (bool, error) {
	_, ok, err := issueByID.Maybe(tx, tx.Account, issueID)
	return ok, err
}

// clip cuts text to max characters.
func clip(text string, max int) string {
	if utf8.RuneCountInString(text) <= max {
		return text
	}
	return string([]rune(text)[:max-1]) + "…"
}

// unseal is the API key of a connection.
func (s *Service) unseal(r row) (string, error) {
	key, err := s.Ring.Unseal(purpose(r.AccountID), r.Sealed)
	if err != nil {
		return "", fmt.Errorf("open the API key of Linear: %w", err)
	}
	return string(key), nil
}
