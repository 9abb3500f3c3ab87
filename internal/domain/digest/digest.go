// Package digest tells the people of an account what happened: each day at 08:00 of the
// account's time zone, and each Monday of the week. A digest is made once; if anything
// happened, or waits for somebody, it is mailed.
//
//   - digest.go: the types, and the time that a digest is about
//   - gather.go: what goes into a digest
//   - render.go: a digest as HTML, and as text
//   - make.go: the digests that are due
//   - ops.go: the capabilities
//   - store.go, store_gather.go: its own statements, and those about the rows of others
package digest

import (
	"cmp"
	"log/slog"
	"time"

	"yardmaster/internal/calendar"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/needs"
)

// Kind is how often a digest is written.
type Kind string

// Kinds of digests.
const (
	Daily  = "daily"
	Weekly = "weekly"
)

// Values lists all kinds.
func (Kind) Values() []string { return []string{Daily, Weekly} }

var kinds = []string{Daily, Weekly}

const (
	hour = 8  // of the account's zone, at which digests are made
	most = 50 // rows of a list in a digest
	// kept is how long a digest is kept, unless the operator says otherwise.
	kept = 400 * 24 * time.Hour
)

// Letter is the mail about a digest.
type Letter struct {
	DigestID string
	Kind     string // Daily or Weekly
	Subject  string
	Text     string
	HTML     string
}

// Mails has members of tx.Account mailed.
type Mails interface {
	// Mail queues the mail about a digest to each member who wants one.
	Mail(tx *db.Tx, l Letter) error
}

// Actors says who did something.
type Actors interface {
	// InWords are some actors of tx.Account by their labels, as people call them.
	InWords(tx *db.Tx, labels []string) (map[string]string, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB      *db.DB
	Due     *due.Kernel
	Logger  *slog.Logger
	Mails   Mails
	Actors  Actors
	BaseURL string
	Keep    time.Duration // how long digests are kept; 0: kept
}

// Service has the capabilities of digests, and makes those that are due.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	n.Keep = cmp.Or(n.Keep, kept)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[home]{
		Name: "digests", Retry: due.Ladder{First: 10 * time.Second}, Load: load, Work: s.make, Open: open,
	})
	return s
}

// place finds the zone of an account. A node that does not know it goes by UTC.
func place(name string) *time.Location {
	zone, err := calendar.Zone(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// days is how many days a digest is about.
func days(kind string) int {
	if kind == Weekly {
		return 7
	}
	return 1
}

// before is the last date at whose hour a digest of a kind was due, at an instant.
func before(kind string, at time.Time, zone *time.Location) calendar.Date {
	d := calendar.DateOf(at, zone)
	if d.At(hour, 0, zone).After(at) {
		d = d.Add(-1)
	}
	for kind == Weekly && d.Weekday() != time.Monday {
		d = d.Add(-1)
	}
	return d
}

// next is the first instant after another at which a digest of a kind is due.
func next(kind string, after time.Time, zone *time.Location) time.Time {
	return before(kind, after, zone).Add(days(kind)).At(hour, 0, zone)
}

// span is the time that a digest is about. It begins where the last one ended, if that is
// not longer ago than seven digests; else it is one day, or one week.
func span(kind string, end calendar.Date, zone *time.Location, last *time.Time) (from, to time.Time) {
	to = end.At(hour, 0, zone)
	from = end.Add(-days(kind)).At(hour, 0, zone)
	if last != nil && last.After(end.Add(-7*days(kind)).At(hour, 0, zone).Add(-time.Minute)) {
		from = *last
	}
	return from, to
}
