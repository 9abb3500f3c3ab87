package github

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"yardmaster/internal/codehost"
)

// Limits keep the pace that GitHub asks for, for all nodes of a server. See the pages
// "Rate limits for the REST API" and "Best practices for using the REST API".
type Limits interface {
	// Take waits until a call may be made. It fails with *codehost.BusyError, whose
	// Limit is set, if the call cannot be made soon. payer is whom GitHub counts the
	// call for; "" for a call that nobody pays.
	Take(ctx context.Context, payer string, c Cost) error
	// Note tells what an answer said of the limits.
	Note(payer string, n Note)
}

// Cost is what a call uses up.
type Cost struct {
	Write   bool
	Content bool // it makes something that people are told of
	Urgency codehost.Urgency
}

// Note is what an answer said.
type Note struct {
	Resource  string // such as "core" or "graphql"; "" if the answer says nothing
	Limit     int    // requests of an hour
	Remaining int
	Reset     time.Time
	Blocked   time.Duration // no call before that time has passed; 0: none of that
}

func noteOf(resp *http.Response, now time.Time) (n Note) {
	if limit, err := strconv.Atoi(resp.Header.Get("X-Ratelimit-Limit")); err == nil {
		n.Resource, n.Limit = resp.Header.Get("X-Ratelimit-Resource"), limit
		n.Remaining, _ = strconv.Atoi(resp.Header.Get("X-Ratelimit-Remaining"))
		n.Reset = until(resp.Header)
	}
	if resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusTooManyRequests {
		n.Blocked = retryAfter(resp.Header)
	}
	return n
}

const (
	writeEvery   = time.Second     // between two writes of an installation
	longestWait  = 5 * time.Second // for a turn to write
	contentHour  = 450             // of the 500 requests an hour that make content
	contentRuns  = 400             // of these, what is left to those who are no people
	contentLater = 350             // and to reviews and sweeps
)

// errPace says that a call would exceed what the server permits itself.
var errPace = errors.New("the server keeps below the limits of GitHub")

// localLimits are the Limits of one process.
type localLimits struct {
	now  func() time.Time
	wait func(context.Context, time.Duration) error

	mu  sync.Mutex
	all map[string]*pace
}

// pace is how fast one payer has called.
type pace struct {
	nextWrite time.Time
	contents  []time.Time // of the last hour
	blocked   time.Time
	hours     map[string]Note
}

// NewLimits makes the Limits of a single process. wait waits for a time, or until the
// context ends; nil is a timer.
func NewLimits(now func() time.Time, wait func(context.Context, time.Duration) error) Limits {
	if wait == nil {
		wait = func(ctx context.Context, d time.Duration) error {
			t := time.NewTimer(d)
			defer t.Stop()
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-t.C:
				return nil
			}
		}
	}
	return &localLimits{now: now, wait: wait, all: map[string]*pace{}}
}

// Take implements Limits.
func (l *localLimits) Take(ctx context.Context, payer string, c Cost) error {
	if payer == "" {
		return nil
	}
	wait, err := l.take(payer, c)
	if err != nil || wait <= 0 {
		return err
	}
	return l.wait(ctx, wait)
}

func (l *localLimits) take(payer string, c Cost) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	p := l.of(payer)
	if p.blocked.After(now) {
		return 0, busyFor(p.blocked.Sub(now))
	}
	for _, hour := range p.hours {
		if hour.Reset.After(now) && hour.Remaining <= reserve(hour.Limit, c.Urgency) {
			return 0, busyFor(hour.Reset.Sub(now))
		}
	}
	if !c.Write {
		return 0, nil
	}
	for len(p.contents) > 0 && !p.contents[0].After(now.Add(-time.Hour)) {
		p.contents = p.contents[1:]
	}
	if most := contentShare(c.Urgency); c.Content && len(p.contents) >= most {
		return 0, busyFor(p.contents[len(p.contents)-most].Add(time.Hour).Sub(now))
	}
	at := now
	if p.nextWrite.After(now) {
		at = p.nextWrite
	}
	if wait := at.Sub(now); wait > longestWait {
		return 0, busyFor(wait)
	}
	p.nextWrite = at.Add(writeEvery)
	if c.Content {
		p.contents = append(p.contents, at)
	}
	return at.Sub(now), nil
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

func busyFor(d time.Duration) error {
	return &codehost.BusyError{After: d, Limit: true, Cause: errPace}
}

// Note implements Limits.
func (l *localLimits) Note(payer string, n Note) {
	if payer == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.of(payer)
	if n.Blocked > 0 {
		p.blocked = l.now().Add(n.Blocked)
	}
	if n.Resource != "" {
		p.hours[n.Resource] = n
	}
}

func (l *localLimits) of(payer string) *pace {
	p := l.all[payer]
	if p == nil {
		p = &pace{hours: map[string]Note{}}
		l.all[payer] = p
	}
	return p
}
