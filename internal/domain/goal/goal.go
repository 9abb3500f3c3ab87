// Package goal is the board of the platform's goals. A goal is a milestone of one
// repository at a code host, which the operator configures. The board is read from the
// host for each call and graded here; nothing of it is stored.
package goal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/needs"
)

// Milestone is a goal as the code host has it.
type Milestone struct {
	Number      int64
	Title       string
	Description string
	URL         string
	Open        bool
	Items, Done int        // issues and pull requests, and how many of them are closed
	DueOn       *time.Time // nil: none
	LastClosed  *time.Time // when an item was closed last; nil: not within LookBack
}

// LookBack is how far back the board looks for items that were closed.
const LookBack = 90 * 24 * time.Hour

// Board is the repository of the goals at its code host.
type Board interface {
	// Goals lists the goals, open and closed. It fails with *UnreadableError.
	Goals(ctx context.Context, now time.Time) (repo string, all []Milestone, err error)
	// Rename gives a goal another title. It fails with ErrMissing, ErrTaken and
	// *UnreadableError.
	Rename(ctx context.Context, number int64, title string) error
}

// Failures of a Board.
var (
	ErrMissing = errors.New("there is no such goal")
	ErrTaken   = errors.New("another goal has the title")
)

// Reasons why the board cannot be read.
const (
	NotConfigured = "not_configured"
	NotConnected  = "host_not_connected"
	NotInstalled  = "not_installed"
	NoMilestones  = "no_milestones"
	Forbidden     = "forbidden"
	Busy          = "host_busy"
	Failed        = "host_failed"
)

var whys = map[string]string{
	NotConfigured: "No repository of goals is configured (goals-repo).",
	NotConnected:  "This server is not connected to the code host of the goals.",
	NotInstalled:  "The code host does not let this server at the repository of the goals.",
	NoMilestones:  "The code host of the goals keeps no milestones.",
	Forbidden:     "The code host does not permit this server what is asked for; it lacks a permission.",
	Busy:          "The code host of the goals cannot be asked at the moment.",
	Failed:        "The code host of the goals did not answer as it should.",
}

// UnreadableError says why the board cannot be read or written.
type UnreadableError struct {
	Reason string
	After  time.Duration // the least time to wait; 0: not known
	Cause  error         // nil: none
}

// Error implements error.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("the board of goals: %s: %v", e.Reason, e.Cause)
}

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.Cause }

// unreadable turns the failure of a Board into a fault.
func unreadable(err error) error {
	e, ok := errors.AsType[*UnreadableError](err)
	if !ok {
		return err
	}
	f := fault.New(fault.Unavailable, "goal-board-unreadable", whys[e.Reason]).With("reason", e.Reason).Because(err).After(e.After)
	if e.Reason == NotConfigured || e.Reason == NoMilestones { // so it was set up
		return f.OnPurpose()
	}
	return f
}

// Needs are the dependencies of Service.
type Needs struct {
	DB    *db.DB
	Board Board
}

// Service has the capabilities of the board.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Status is how a goal fares.
type Status string

// States of a goal.
const (
	done       = "done"
	overdue    = "overdue"
	notStarted = "not_started"
	stalled    = "stalled"
	onTrack    = "on_track"
)

// Values lists all states.
func (Status) Values() []string { return []string{done, overdue, notStarted, stalled, onTrack} }

// still is the time without a closed item after which a goal has stalled.
const still = 14 * 24 * time.Hour

// status grades a goal.
func (m Milestone) status(now time.Time) string {
	switch {
	case !m.Open || m.Items > 0 && m.Done == m.Items:
		return done
	case m.DueOn != nil && m.DueOn.Before(now):
		return overdue
	case m.Done == 0:
		return notStarted
	case m.LastClosed == nil || now.Sub(*m.LastClosed) >= still:
		return stalled
	}
	return onTrack
}

// percent is the share of closed items, rounded down; 0 without items.
func percent(closed, all int) int {
	if all == 0 {
		return 0
	}
	return 100 * closed / all
}

// idForm is the form of ids of goals.
var idForm = lazy.New(`^goal_([1-9][0-9]{0,14})$`)

func idOf(number int64) string { return "goal_" + strconv.FormatInt(number, 10) }

// numberOf reads an id; false for one that the board never makes.
func numberOf(id string) (int64, bool) {
	found := idForm.FindStringSubmatch(id)
	if found == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	return n, err == nil
}
