package op

import (
	"context"
	"errors"
	"sync"

	"yardmaster/internal/fault"
)

// Barred are the addresses whose refused calls of Raw rows have reached the limit of an
// address. A Raw row that takes signed deliveries counts only those that it refuses, since
// a system sends all of its deliveries from few addresses. The zero value is empty. Safe
// for concurrent use.
type Barred struct {
	mu  sync.Mutex
	all map[string]bool
}

// mostBarred limits the addresses that a node remembers.
const mostBarred = 10_000

// Stop counts a call from an address that is barred, before anything of the call is read.
// It fails with fault.RateLimited while the address has used up its limit.
func (b *Barred) Stop(ctx context.Context, p *Pipeline, c *Call) error {
	if !b.has(c.Request.IP) {
		return nil
	}
	if _, _, limited := p.Admit(ctx, c); limited != nil {
		return limited
	}
	b.set(c.Request.IP, false)
	return nil
}

// Refuse counts a call for its address, and answers it with err, or with
// fault.RateLimited if the address has used up its limit.
func (b *Barred) Refuse(ctx context.Context, p *Pipeline, c *Call, err error) Answer {
	_, _, limited := p.Admit(ctx, c)
	if f, is := errors.AsType[*fault.Error](limited); is && f.Kind == fault.RateLimited {
		b.set(c.Request.IP, true)
	}
	if limited != nil {
		err = limited
	}
	return p.Refuse(c, err)
}

func (b *Barred) has(ip string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[ip]
}

func (b *Barred) set(ip string, is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all == nil || len(b.all) >= mostBarred {
		b.all = map[string]bool{}
	}
	if is {
		b.all[ip] = true
	} else {
		delete(b.all, ip)
	}
}
