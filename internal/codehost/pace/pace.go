// Package pace keeps the pace that code hosts ask for: how many calls an hour, how many
// writes and new texts, and none at all for a while. State decides; Local is the pace of
// one process.
package pace

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/codehost"
)

// Limits keep the pace of calls to a host. They are safe for concurrent use.
type Limits interface {
	// Take waits until a call may be made. It fails with *codehost.BusyError, whose
	// Limit is set, if the call cannot be made soon. payer is whom the host counts the
	// call for; "" for a call that nobody pays.
	Take(ctx context.Context, payer string, c Cost) error
	// Note tells what an answer said of the limits.
	Note(payer string, n Note)
}

// Cost is what a call uses up.
type Cost struct {
	Resource string // that the host counts it for; "": Core
	Write    bool
	Content  bool // it makes something that people are told of
	Urgency  codehost.Urgency
}

// Core is the resource of calls that have no count of their own.
const Core = "core"

// Note is what an answer said.
type Note struct {
	Resource  string // such as Core; "" if the answer says nothing
	Limit     int    // requests of an hour
	Remaining int
	Reset     time.Time
	Blocked   time.Duration // no call before that time has passed; 0: none of that
	Refused   bool          // no call for a while, and the host does not say for how long
}

// Hour is what is left of a resource.
type Hour struct {
	Limit, Remaining int
	Reset            time.Time
}

// State is how fast one payer has called. Its zero value is that of one who has not.
type State struct {
	Hours     map[string]Hour // by resource
	Blocked   time.Time       // no call before
	Refusals  int             // in a row that named no time, of the newest block
	NextWrite time.Time
	Contents  []time.Time // of the last hour, the oldest first
}

// The pace. The numbers of an hour keep below the 500 requests that make content which
// GitHub permits (page "Rate limits for the REST API"), and a write a second keeps below
// 80 a minute. People may take a turn to write that lies further ahead than others, so
// there is one for them.
const (
	writeEvery   = time.Second     // between two writes of a payer
	longestWait  = 5 * time.Second // for a turn to write
	longestOfAll = 9 * time.Second // for that of people
	contentHour  = 450
	contentRuns  = 400           // what is left to those who are no people
	contentLater = 350           // and to reviews and sweeps
	longestHour  = 2 * time.Hour // a host that names a later end of its hour is not believed
)

// How long a payer does not call after a refusal that names no time: firstBlock, and
// twice as long as the last time if it is refused again within calm of the end of that.
// See the section "Exceeding the rate limit" of the page "Rate limits for the REST API".
const (
	firstBlock = time.Minute
	mostBlock  = time.Hour
	calm       = 10 * time.Minute
)

// ErrPace says that a call would exceed what the server permits itself.
var ErrPace = errors.New("the server keeps below the limits of the code host")

func busyFor(d time.Duration) error {
	return &codehost.BusyError{After: d, Limit: true, Cause: ErrPace}
}

// Take decides about a call, and counts it: it may be made after the wait. It fails with
// *codehost.BusyError if the call cannot be made soon.
func (s *State) Take(now time.Time, c Cost) (wait time.Duration, err error) {
	if s.Blocked.After(now) {
		return 0, busyFor(s.Blocked.Sub(now))
	}
	resource := c.Resource
	if resource == "" {
		resource = Core
	}
	if hour, known := s.Hours[resource]; known && hour.Reset.After(now) &&
		hour.Reset.Before(now.Add(longestHour)) && hour.Remaining <= reserve(hour.Limit, c.Urgency) {
		return 0, busyFor(hour.Reset.Sub(now))
	}
	if !c.Write {
		return 0, nil
	}
	s.Contents = slices.DeleteFunc(s.Contents, func(at time.Time) bool {
		return !at.After(now.Add(-time.Hour)) || at.After(now.Add(time.Hour)) // a clock was set back
	})
	if most := contentShare(c.Urgency); c.Content && len(s.Contents) >= most {
		return 0, busyFor(s.Contents[len(s.Contents)-most].Add(time.Hour).Sub(now))
	}
	at := now
	if s.NextWrite.After(now) && s.NextWrite.Before(now.Add(time.Minute)) {
		at = s.NextWrite
	}
	most := longestWait
	if c.Urgency <= codehost.ForPeople {
		most = longestOfAll
	}
	if wait := at.Sub(now); wait > most {
		return 0, busyFor(wait)
	}
	s.NextWrite = at.Add(writeEvery)
	if c.Content {
		s.Contents = append(s.Contents, at)
	}
	return at.Sub(now), nil
}

// Note records what an answer said. Of answers about one hour the one counts that leaves
// the least: they come in any order. Refusals of calls that were under way together are
// one.
func (s *State) Note(now time.Time, n Note) {
	if n.Refused && !s.Blocked.After(now) {
		if now.Sub(s.Blocked) > calm {
			s.Refusals = 0
		}
		s.Blocked = now.Add(min(firstBlock<<min(s.Refusals, 10), mostBlock))
		s.Refusals++
	}
	if until := now.Add(n.Blocked); n.Blocked > 0 && until.After(s.Blocked) {
		s.Blocked = until
	}
	if n.Resource == "" {
		return
	}
	if s.Hours == nil {
		s.Hours = map[string]Hour{}
	}
	was, known := s.Hours[n.Resource]
	if !known || n.Reset.After(was.Reset) || n.Reset.Equal(was.Reset) && n.Remaining < was.Remaining {
		s.Hours[n.Resource] = Hour{Limit: n.Limit, Remaining: n.Remaining, Reset: n.Reset}
	}
}

// reserve is the number of requests of an hour that calls of an urgency leave to the
// more urgent ones.
func reserve(limit int, u codehost.Urgency) int {
	switch {
	case u <= codehost.ForPeople:
		return 0
	case u >= codehost.ForSweeps:
		return limit / 2
	case u >= codehost.ForReviews:
		return limit / 4
	}
	return limit / 5
}

func contentShare(u codehost.Urgency) int {
	switch {
	case u <= codehost.ForPeople:
		return contentHour
	case u >= codehost.ForReviews:
		return contentLater
	}
	return contentRuns
}

// Waiter waits for a time, or until the context ends.
type Waiter interface {
	Wait(ctx context.Context, d time.Duration) error
}

// Timer is the Waiter of a program that runs.
type Timer struct{}

// Wait implements Waiter.
func (Timer) Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// local are the Limits of one process.
type local struct {
	now  func() time.Time
	wait Waiter

	mu  sync.Mutex
	all map[string]*State
}

// Local makes the Limits of a single process. wait is a Timer, but in tests.
func Local(now func() time.Time, wait Waiter) Limits {
	return &local{now: now, wait: wait, all: map[string]*State{}}
}

// Take implements Limits.
func (l *local) Take(ctx context.Context, payer string, c Cost) error {
	if payer == "" {
		return nil
	}
	l.mu.Lock()
	wait, err := l.of(payer).Take(l.now(), c)
	l.mu.Unlock()
	if err != nil || wait <= 0 {
		return err
	}
	return l.wait.Wait(ctx, wait)
}

// Note implements Limits.
func (l *local) Note(payer string, n Note) {
	if payer == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(payer).Note(l.now(), n)
}

func (l *local) of(payer string) *State {
	if l.all[payer] == nil {
		l.all[payer] = &State{}
	}
	return l.all[payer]
}
