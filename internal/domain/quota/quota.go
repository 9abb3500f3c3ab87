// Package quota keeps an account to what it may store and change, so that none fills the
// server or stalls it for others. What an account has is measured by a loop, and what it
// sends in between is added; both are in the database, which all nodes share. A request
// is judged by what its node has read within ten seconds.
//
//   - quota.go: limits, by tier and by operators, and the Service
//   - room.go: what is refused
//   - measure.go: the loop
//   - ops.go, events.go: capabilities, events
//   - store.go, store_measure.go: the statements
package quota

import (
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/needs"
)

// ThingName is what an account has a limit of.
type ThingName string

// Things that an account has a limit of.
const (
	GitBytes     = "git_bytes"
	ObjectBytes  = "object_bytes"
	RecordBytes  = "record_bytes"
	Records      = "records"
	Repos        = "repos"
	Tokens       = "tokens"
	PersonTokens = "person_tokens"
	Boxes        = "boxes"
	Writes       = "writes_per_minute"
)

// Values lists all things.
func (ThingName) Values() []string {
	return []string{GitBytes, ObjectBytes, RecordBytes, Records, Repos, Tokens, PersonTokens, Boxes, Writes}
}

// names are the things in the order in which people see them, and what a sentence calls
// them.
var names = []struct{ thing, text string }{
	{GitBytes, "bytes in repositories"},
	{ObjectBytes, "bytes in objects"},
	{RecordBytes, "bytes of texts on record"},
	{Records, "records"},
	{Repos, "repositories"},
	{Tokens, "live tokens"},
	{PersonTokens, "live tokens of one person"},
	{Boxes, "boxes"},
	{Writes, "writes a minute"},
}

// Text is what a sentence calls a thing.
func Text(thing string) string {
	for _, n := range names {
		if n.thing == thing {
			return n.text
		}
	}
	return thing
}

// None is a limit that nothing reaches.
const None = -1

// Limits are the limits of an account; None: there is none.
type Limits struct {
	GitBytes, ObjectBytes, RecordBytes, Records, Repos, Tokens, PersonTokens, Boxes, WritesPerMinute int64
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// unlimited is no limit of anything.
var unlimited = Limits{None, None, None, None, None, None, None, None, None}

// byTier are the limits of accounts for which operators have set nothing. Who runs a
// server for themselves has its disk.
var byTier = map[people.Tier]Limits{
	people.TierFree: {
		GitBytes: 2 * gib, ObjectBytes: gib, RecordBytes: 512 * mib, Records: 1_000_000, Repos: 100, Tokens: 200, PersonTokens: 50,
		Boxes: 25, WritesPerMinute: 1200,
	},
	people.TierTeam: {
		GitBytes: 50 * gib, ObjectBytes: 50 * gib, RecordBytes: 8 * gib, Records: 20_000_000, Repos: 1000, Tokens: 1000, PersonTokens: 50,
		Boxes: 200, WritesPerMinute: 4800,
	},
	people.TierOSS: {
		GitBytes: 20 * gib, ObjectBytes: 10 * gib, RecordBytes: 4 * gib, Records: 10_000_000, Repos: 500, Tokens: 500, PersonTokens: 50,
		Boxes: 100, WritesPerMinute: 2400,
	},
	people.TierSelfHosted: unlimited,
}

// Used is what an account has.
type Used struct{ GitBytes, ObjectBytes, RecordBytes, Records, Repos, Tokens, Boxes int64 }

// level is how much an account has of one thing.
type level struct {
	thing      string
	used, most int64 // used is 0 for what has no stock
	set        bool  // most is an operator's word
}

// stock tells whether a thing is kept, and so can be nearly full.
func stock(thing string) bool { return thing != PersonTokens && thing != Writes }

// full tells whether there is no room for one more.
func (l level) full() bool { return l.most != None && l.used >= l.most }

// Nearly full is what admins are told of. They are told again when it was less than lowShare
// in between.
const (
	highShare = 80
	lowShare  = 75
)

// share tells whether at least so many percent are used.
func (l level) share(percent int64) bool {
	return l.most > 0 && stock(l.thing) && float64(l.used)*100 >= float64(l.most)*float64(percent)
}

// Sizes is the built-in host as the keeper of its own disk.
type Sizes interface {
	// Size is how many bytes a repository has on the disk. It fails with
	// codehost.ErrNotFound, codehost.ErrLost or codehost.ErrAway.
	Size(r codehost.Repo) (int64, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Logger *slog.Logger
	Sizes  Sizes
	// Clock is the time of what is kept in memory, and of how long a measure takes.
	Clock func() time.Time
}

// Service judges what accounts store, and measures it.
type Service struct {
	Needs

	mu    sync.Mutex
	known map[string]*known // by account
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n, known: map[string]*known{}}
}
