package builtin

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/smarthttp"
)

// flows counts what accounts push at once.
type flows struct {
	mu  sync.Mutex
	all map[string]*flow // by account
}

// flow is what an account pushes.
type flow struct {
	pushes int
	total  int64 // bytes that came since the first of these pushes began
	here   int64 // those of pushes that have not ended
}

// room is what a push may have: what its account has left, less what the other pushes of the
// account bring meanwhile.
type room struct {
	flows   *flows
	account string
	limited bool
	full    string // the sentence of the refusal
	left    int64
	begun   int64 // flow.total when the push began
	mine    int64
	spent   atomic.Bool
}

// errNoRoom ends the pack of a push that does not fit.
var errNoRoom = errors.New("the account has no room for the push")

// room asks how much a push may have. A push that only deletes needs none. The caller calls
// leave.
func (q *request) room(ctx context.Context, p smarthttp.Push) (*room, error) {
	r := &room{flows: &q.host.flows, account: q.access.Account}
	deletes := true
	for _, u := range p.Updates {
		deletes = deletes && u.New == codehost.ZeroSHA
	}
	if q.hooks.Room == nil || deletes {
		return r, nil
	}
	left, full, err := q.hooks.Room(ctx, r.account)
	if err != nil || left < 0 {
		return r, err
	}
	r.limited, r.full = true, full
	r.flows.mu.Lock()
	defer r.flows.mu.Unlock()
	if r.flows.all == nil {
		r.flows.all = map[string]*flow{}
	}
	f := r.flows.all[r.account]
	if f == nil {
		f = &flow{}
		r.flows.all[r.account] = f
	}
	f.pushes++
	r.left, r.begun = left-f.here, f.total
	return r, nil
}

// refuses gives the reasons to refuse a push before its pack comes.
func (r *room) refuses(p smarthttp.Push) map[string]string {
	if !r.limited || r.left > 0 {
		return nil
	}
	return r.reasons(p)
}

// reasons says for every ref of a push that it does not fit.
func (r *room) reasons(p smarthttp.Push) map[string]string {
	out := make(map[string]string)
	for _, u := range p.Updates {
		out[u.Ref] = r.full
	}
	return out
}

// take counts bytes of the pack; false if they do not fit.
func (r *room) take(n int) bool {
	r.flows.mu.Lock()
	defer r.flows.mu.Unlock()
	f := r.flows.all[r.account]
	f.total += int64(n)
	f.here += int64(n)
	r.mine += int64(n)
	return f.total-r.begun <= r.left
}

// leave ends what take has counted: the repository was measured, or nothing was kept.
func (r *room) leave() {
	if !r.limited {
		return
	}
	r.flows.mu.Lock()
	defer r.flows.mu.Unlock()
	f := r.flows.all[r.account]
	f.here -= r.mine
	if f.pushes--; f.pushes == 0 {
		delete(r.flows.all, r.account)
	}
}

// over tells whether the push did not fit.
func (r *room) over() bool { return r.spent.Load() }

// limit reads a pack up to what fits; what comes after fails with errNoRoom, so that git
// gets a pack that is cut off, and keeps nothing of it.
func (r *room) limit(pack io.Reader) io.Reader {
	if !r.limited {
		return pack
	}
	return &limited{r, pack}
}

type limited struct {
	room *room
	pack io.Reader
}

func (l *limited) Read(p []byte) (int, error) {
	if l.room.over() {
		return 0, errNoRoom
	}
	n, err := l.pack.Read(p)
	if n > 0 && !l.room.take(n) {
		l.room.spent.Store(true)
		return 0, errNoRoom
	}
	return n, err
}

// answer passes the answer of git on, until the push does not fit.
func (r *room) answer(to io.Writer) io.Writer { return &answer{r, to} }

type answer struct {
	room *room
	to   io.Writer
}

func (a *answer) Write(p []byte) (int, error) {
	if a.room.over() {
		return len(p), nil
	}
	return a.to.Write(p)
}
