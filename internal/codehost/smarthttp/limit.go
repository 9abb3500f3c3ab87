package smarthttp

import (
	"context"
	"sync"
)

// AtOnce is the number of transfers of one credential that run at a time. Further ones
// wait, because each may use the memory of a git process.
const AtOnce = 8

// Limit makes the transfers of one credential wait for each other. The zero
// value is ready.
type Limit struct {
	mu   sync.Mutex
	held map[string]*credentialLimit
}

// credentialLimit is the limit of one credential, kept while it has users.
type credentialLimit struct {
	slots chan struct{}
	users int
}

// Take waits until a transfer of who may run. The caller calls leave at its end.
func (t *Limit) Take(ctx context.Context, who string) (leave func(), err error) {
	t.mu.Lock()
	if t.held == nil {
		t.held = map[string]*credentialLimit{}
	}
	at := t.held[who]
	if at == nil {
		at = &credentialLimit{slots: make(chan struct{}, AtOnce)}
		t.held[who] = at
	}
	at.users++
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if at.users--; at.users == 0 {
			delete(t.held, who)
		}
	}
	select {
	case at.slots <- struct{}{}:
		return func() { <-at.slots; forget() }, nil
	case <-ctx.Done():
		forget()
		return nil, context.Cause(ctx)
	}
}
