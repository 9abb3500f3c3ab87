// Package schedule files asks again and again: at the occurrences of a cron expression in
// a time zone. An occurrence is filed within a minute, once, or it is skipped and the
// schedule says why.
//
//   - schedule.go: the types, and what keeps a schedule from filing
//   - loop.go: the occurrences that are due
//   - ops.go: the capabilities
package schedule

import (
	"log/slog"
	"time"

	"yardmaster/internal/calendar"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
)

// State is whether a schedule files.
type State string

// States of a schedule.
const (
	Active = "active"
	Paused = "paused" // by a person, or because its person has left
)

// Values lists all states.
func (State) Values() []string { return []string{Active, Paused} }

// Obstacle is what keeps a schedule from filing.
type Obstacle string

// Values lists all obstacles.
func (Obstacle) Values() []string { return []string{RepoDisabled, RepoGone, PersonLeft} }

// Outcome is what came of an occurrence.
type Outcome string

// Outcomes of an occurrence. Those from RepoDisabled on are also what keeps a schedule
// from filing at present.
const (
	Filed        = "filed"
	Busy         = "busy"          // what was filed before is not done, and the schedule skips then
	Late         = "late"          // nobody was there to file it within the minute
	RepoDisabled = "repo_disabled" // the repository is not enabled
	RepoGone     = "repo_gone"     // the code host does not let the server at the repository any more
	PersonLeft   = "person_left"   // the person for whom it files has left the account, was suspended, or may file no asks
)

// Values lists all outcomes.
func (Outcome) Values() []string {
	return []string{Filed, Busy, Late, RepoDisabled, RepoGone, PersonLeft}
}

// byPerson is why a schedule is paused that a person has paused.
const byPerson = "person"

// WhenBusy is what a schedule does while its last ask is not done.
type WhenBusy string

// What a schedule may do then.
const (
	Queue WhenBusy = "queue" // files another one
	Skip  WhenBusy = "skip"  // leaves the occurrence out
)

// Values lists all of it.
func (WhenBusy) Values() []string { return []string{string(Queue), string(Skip)} }

const (
	most     = 50 // schedules of an account
	closest  = 5  // minutes between two occurrences
	lateness = time.Minute
	shown    = 3 // occurrences that are announced
)

// Repo is a repository as a schedule needs it.
type Repo struct {
	ID      string
	Name    string // owner/name
	Enabled bool
	Gone    bool // the code host does not let the server at it
}

// Repos finds the repositories of tx.Account.
type Repos interface {
	ByName(tx *db.Tx, owner, name string) (r Repo, ok bool, err error)
	ByID(tx *db.Tx, repoID string) (r Repo, ok bool, err error)
}

// Filing is an ask that is to be filed.
type Filing struct {
	RepoID string // "" for any
	Title  string
	Body   string
	Labels map[string]string
	Key    string // an ask of the same key is not filed again
	By     string // who files it
	UserID string // the person for whom it is filed
	Scopes policy.Set
}

// Asks files asks in tx.Account.
type Asks interface {
	// File files an ask, or answers the one of the same key.
	File(tx *db.Tx, f Filing) (askID string, err error)
	// Busy tells whether an ask, or the work that came of it, is not done.
	Busy(tx *db.Tx, askID string) (bool, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Due    *due.Kernel
	Logger *slog.Logger
	Repos  Repos
	Asks   Asks
}

// Service has the capabilities of schedules, and files what is due.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[struct{}]{
		Name: "schedules", Retry: due.Ladder{First: again, Longest: again}, Work: s.occur, Open: open,
		Load: func(*db.Tx, string) (row struct{}, ok bool, err error) { return row, true, nil }, // the work locks it
	})
	return s
}

// cron reads the expression of a schedule.
func (r row) expression() (calendar.Cron, error) {
	zone, err := calendar.Zone(r.Zone)
	if err != nil {
		return calendar.Cron{}, err
	}
	return calendar.ReadCron(r.Cron, zone)
}

// after is the first occurrence after an instant; nil without one.
func (r row) after(t time.Time) (*time.Time, error) {
	c, err := r.expression()
	if err != nil {
		return nil, err
	}
	at, ok := c.Next(t)
	if !ok {
		return nil, nil
	}
	return &at, nil
}

// obstacle is what keeps a schedule from filing: RepoDisabled, RepoGone or PersonLeft;
// "" if nothing does.
func (s *Service) obstacle(tx *db.Tx, r row) (string, error) {
	role, member, err := people.Role(tx, tx.Account, r.UserID)
	if err != nil {
		return "", err
	}
	_, approved, err := people.Standing(tx, r.UserID)
	if err != nil {
		return "", err
	}
	if !member || !approved || !role.Ceiling().Has(policy.Scopes(policy.WriteTasks)) {
		return PersonLeft, nil
	}
	if r.RepoID == nil {
		return "", nil
	}
	repo, ok, err := s.Repos.ByID(tx, *r.RepoID)
	switch {
	case err != nil:
		return "", err
	case !ok || repo.Gone:
		return RepoGone, nil
	case !repo.Enabled:
		return RepoDisabled, nil
	}
	return "", nil
}

// file files the ask of a schedule under a key of its own, with the rights of a person.
func (s *Service) file(tx *db.Tx, r row, key, userID string, scopes policy.Set) (askID string, err error) {
	f := Filing{
		Title: r.Title, Body: r.Body, Labels: r.Labels.V, Key: r.ID + "@" + key, By: "schedule:" + r.ID, UserID: userID, Scopes: scopes,
	}
	if r.RepoID != nil {
		f.RepoID = *r.RepoID
	}
	return s.Asks.File(tx, f)
}
