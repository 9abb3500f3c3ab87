package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// toldAfter is how long a call waits before anybody is told of it.
	toldAfter = 10 * time.Second
	// Patience is the longest time that a call waits for a server that asks it to wait, or
	// that sends next to nothing.
	Patience = 2 * time.Minute
	// leastSent are the bytes within Patience that are progress.
	leastSent = 1 << 10
)

// tooManyOpen is the slug of the refusal of what would be held open beyond a limit.
const tooManyOpen = "too-many-open"

// later tells whether a server has refused a call for now, and has done nothing: it limits
// calls, or what is open at once.
func (p *Problem) later() bool {
	return p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable && p.Slug() == tooManyOpen
}

// why says in words what a refusal for now waits for.
func (c *Client) why(p *Problem) string {
	switch p.Slug() {
	case "queue-full", tooManyOpen:
		if said, _, _ := strings.Cut(p.Detail, ". "); said != "" {
			return strings.TrimSuffix(said, ".")
		}
	}
	return c.URL + " limits calls"
}

// answer makes a call and has take read the body of the answer. When the server refuses it
// for now, which means that it has done nothing, answer waits as long as the server asks and calls
// again, and says so. It fails with the refusal when that would take longer than Patience
// altogether, or than ctx has time.
func (c *Client) answer(ctx context.Context, method, path string, in any, take func(io.Reader) error) error {
	end := time.Now().Add(Patience)
	if at, some := ctx.Deadline(); some && at.Before(end) {
		end = at
	}
	for {
		err := c.attempt(ctx, method, path, in, take)
		p, ok := errors.AsType[*Problem](err)
		if !ok || !p.later() {
			return err
		}
		pause := max(wait(p.RetryAfter), time.Second)
		if time.Now().Add(pause).After(end) {
			return fmt.Errorf("%w\n  it asks to be called again in %s; %s are waited at most", err, pause, Patience)
		}
		tell(ctx, fmt.Sprintf("%s: the next one is in %s; Ctrl-C ends it", c.why(p), pause))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

type tellingKey struct{}

// Telling is a context whose calls say what they wait for, and how long, where that is long.
// With nil nobody is told.
func Telling(ctx context.Context, tell func(text string)) context.Context {
	return context.WithValue(ctx, tellingKey{}, tell)
}

// tell says what a call waits for.
func tell(ctx context.Context, text string) {
	if tell, _ := ctx.Value(tellingKey{}).(func(string)); tell != nil {
		tell(text)
	}
}

// attempt makes a call once. It fails with Unreachable when the answer makes no progress
// within Patience. A call that changes something is given up only once its answer has begun:
// until then nobody knows what it did.
func (c *Client) attempt(ctx context.Context, method, path string, in any, take func(io.Reader) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var came atomic.Int64
	var begun atomic.Bool
	begun.Store(method == http.MethodGet)
	go c.hurry(ctx, end, &came, &begun)
	resp, err := c.send(ctx, method, path, in, nil)
	if err == nil {
		defer resp.Body.Close()
		begun.Store(true)
		err = take(counted{resp.Body, &came})
	}
	if slow, ok := errors.AsType[*Unreachable](context.Cause(ctx)); ok && err != nil {
		return slow
	}
	return err
}

// hurry says that an answer takes long, and ends the call when it makes no progress.
func (c *Client) hurry(ctx context.Context, end context.CancelCauseFunc, came *atomic.Int64, begun *atomic.Bool) {
	tick := time.NewTicker(toldAfter)
	defer tick.Stop()
	since, mark, told := time.Now(), int64(0), false
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			n := came.Load()
			if n-mark >= leastSent {
				since, mark, told = now, n, false
				continue
			}
			if now.Sub(since) >= Patience && begun.Load() {
				end(&Unreachable{c.URL, fmt.Errorf("it has sent %d bytes in %s, and that is not all of its answer", n-mark, Patience)})
				return
			}
			if !told {
				told = true
				tell(ctx, fmt.Sprintf("waiting for %s, which has sent %d bytes in %s; Ctrl-C ends it", c.URL, n-mark, toldAfter))
			}
		}
	}
}

// counted counts what is read.
type counted struct {
	r    io.Reader
	came *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.came.Add(int64(n))
	return n, err
}

// ErrCircle is the error for a list whose next page is one that was read before.
var ErrCircle = errors.New("the pages of the list have no end: the server names one that it gave before")

// Limits of a list.
const (
	mostPages = 20_000    // of a list that is kept
	mostRead  = 100_000   // pages of one that is read row by row
	mostBytes = 256 << 20 // of the rows that are kept
)

// Pages follows the pages of one list.
type Pages struct {
	most  int // pages; 0: mostPages
	seen  map[string]bool
	bytes int
}

// Next takes note of the name of the next page of a list, and of the size of the rows that
// were kept of the one before. It fails when the pages have no end.
func (p *Pages) Next(cursor string, kept int) error {
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	if p.most == 0 {
		p.most = mostPages
	}
	p.bytes += kept
	switch {
	case p.seen[cursor]:
		return ErrCircle
	case len(p.seen) == p.most-1:
		return fmt.Errorf("the list has more than %d pages: the server names yet another one; narrow the list, or name a limit", p.most)
	case p.bytes > mostBytes:
		return fmt.Errorf("the list has more than %s, and the server names yet another page; narrow the list, or name a limit", Size(mostBytes))
	}
	p.seen[cursor] = true
	return nil
}

// Each calls take with every row of a collection, page after page.
func Each[T any](ctx context.Context, c *Client, path string, take func(T) error) error {
	pages := Pages{most: mostRead}
	for at := path; ; {
		var page struct {
			Data []T     `json:"data"`
			Next *string `json:"next_cursor"`
		}
		if err := c.Call(ctx, http.MethodGet, at, nil, &page); err != nil {
			return err
		}
		for _, row := range page.Data {
			if err := take(row); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		if err := pages.Next(*page.Next, 0); err != nil {
			return err
		}
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		at = path + sep + "cursor=" + url.QueryEscape(*page.Next)
	}
}
