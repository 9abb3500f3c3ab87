package box

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/protocol"
)

// Cadence of the loops.
const (
	sweepEvery = 5 * time.Second
	gather     = 200 * time.Millisecond // beats of this long share a transaction
	retryAfter = time.Second
)

// Serve answers the calls of boxes from here on.
func (s *Service) Serve() error {
	if err := s.Bus.Handle(protocol.CallHello, s.hello); err != nil {
		return fmt.Errorf("box: %w", err)
	}
	if err := s.Bus.Handle(protocol.CallCredential, s.renew); err != nil {
		return fmt.Errorf("box: %w", err)
	}
	return nil
}

// Loop follows the boxes' presence, hands owed commands and revocations to the
// bus, and notices who has fallen silent, until ctx ends. Any number of nodes
// may run it.
func (s *Service) Loop(ctx context.Context) error {
	s.beats.init()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { s.watch(ctx); return nil })
	g.Go(func() error { s.keepBeats(ctx); return nil })
	g.Go(func() error { s.deliver(ctx); return nil })
	g.Go(func() error { s.sweep(ctx); return nil })
	return g.Wait()
}

// hello takes what a box says of itself as it connects.
func (s *Service) hello(ctx context.Context, boxID string, data []byte) (any, error) {
	var h protocol.Hello
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fault.New(fault.Invalid, "", "The hello cannot be read.").Because(err)
	}
	if h.Slots < 1 || len(h.Labels) > 32 || len(h.Agents) > 64 || len(h.Isolation) > 16 || tooMuch(h.Holds) {
		return nil, fault.New(fault.Invalid, "", "The hello names no slots, or too much of something.")
	}
	if err := checkLabels(h.Labels); err != nil {
		return nil, err
	}
	out := protocol.HelloReply{Runs: []protocol.RunVerdict{}}
	err := s.DB.Write(asBox(ctx, boxID), func(tx *db.Tx) error {
		r, err := s.connected(tx, boxID)
		if err != nil {
			return err
		}
		out.Draining, out.ServerMS = r.State != Enrolled, tx.Now.UnixMilli()
		before := r
		r.Version, r.OS, r.Arch, r.Slots = h.Version, h.OS, h.Arch, slotsOf(int64(min(h.Slots, 256)), r.SetSlots)
		r.Labels, r.Agents.V, r.Isolation.V = labels(labelsOf(h.Labels, r.SetLabels.V)), h.Agents, h.Isolation
		r.IsolationHolds.V = holdsOf(h)
		if same(before, r) {
			return nil
		}
		if _, err := report.Exec(tx, r.ID, r.Version, r.OS, r.Arch, r.Slots, r.Labels, r.Agents, r.Isolation, r.IsolationHolds); err != nil {
			return err
		}
		s.wake(tx)
		return event.Record(tx, event.Change{Kind: "box.reported", Object: r.ID, Data: map[string]any{"version": r.Version, "slots": r.Slots, "agents": h.Agents, "isolation": h.Isolation, "isolation_holds": r.IsolationHolds.V}})
	})
	if err != nil {
		return nil, err
	}
	// Its queue may be missing: enrollment could not make it, or the bus has
	// lost its data.
	if err := s.Bus.AddBox(ctx, boxID); err != nil {
		return nil, err
	}
	// Also a box that names no runs is asked about: it may have lost some.
	if out.Runs, err = s.Verdicts(ctx, boxID, h.Runs); err != nil {
		return nil, err
	}
	return out, nil
}

// same tells whether a box has reported nothing new.
func same(a, b row) bool {
	return a.Version == b.Version && a.OS == b.OS && a.Arch == b.Arch && a.Slots == b.Slots && maps.Equal(a.Labels.V, b.Labels.V) &&
		slices.Equal(a.Agents.V, b.Agents.V) && slices.Equal(a.Isolation.V, b.Isolation.V) &&
		maps.EqualFunc(a.IsolationHolds.V, b.IsolationHolds.V, slices.Equal[[]string])
}

// tooMuch tells whether a box says more of its isolation than there is to say.
func tooMuch(holds map[string][]string) bool {
	for level, held := range holds {
		if len(level) > 32 || len(held) > 32 || slices.ContainsFunc(held, func(p string) bool { return len(p) > 32 }) {
			return true
		}
	}
	return len(holds) > 16
}

// holdsOf is what each of the levels held that a box has. Of a box that does
// not say, none holds anything.
func holdsOf(h protocol.Hello) Holds {
	out := Holds{}
	for _, level := range h.Isolation {
		out[level] = append([]string{}, h.Holds[level]...)
	}
	return out
}

// connected locks the box that makes a call over the bus.
func (s *Service) connected(tx *db.Tx, boxID string) (row, error) {
	r, ok, err := byIdentity.ForUpdate().Maybe(tx, boxID)
	switch {
	case err != nil:
		return r, err
	case !ok, r.State == Revoked:
		return r, fault.New(fault.Forbidden, "box-revoked", "This box is revoked.")
	}
	tx.Account = r.AccountID
	return r, nil
}

// renew signs a fresh credential for the key a box already has.
func (s *Service) renew(ctx context.Context, boxID string, _ []byte) (any, error) {
	var key string
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, ok, err := byIdentity.Maybe(tx, boxID)
		if err == nil && (!ok || r.State == Revoked) {
			err = fault.New(fault.Forbidden, "box-revoked", "This box is revoked.")
		}
		key = r.NKey
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := s.credentials(boxID, key)
	return protocol.CredentialReply{JWT: c.NATSJWT, ExpiresMS: (credentialTTL - time.Second).Milliseconds()}, err
}

// beats holds the newest beat of each box that is not stored yet.
type beats struct {
	mu   sync.Mutex
	last map[string]protocol.Presence
	news chan struct{}
}

func (b *beats) init() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news == nil {
		b.last, b.news = map[string]protocol.Presence{}, make(chan struct{}, 1)
	}
}

func (b *beats) put(boxID string, p protocol.Presence) {
	b.mu.Lock()
	b.last[boxID] = p
	b.mu.Unlock()
	select {
	case b.news <- struct{}{}:
	default:
	}
}

func (b *beats) take() map[string]protocol.Presence {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.last
	b.last = map[string]protocol.Presence{}
	return out
}

// Most that is kept of a beat: the version's length in bytes, and runs.
const (
	maxVersion = 100
	maxRuns    = 256
)

// sane takes out of a beat what cannot be stored: the beats of many boxes are
// stored at once, and none may spoil the others'.
func sane(p protocol.Presence) protocol.Presence {
	p.Version = strings.ReplaceAll(strings.ToValidUTF8(p.Version[:min(len(p.Version), maxVersion)], ""), "\x00", "")
	p.Runs = p.Runs[:min(len(p.Runs), maxRuns)]
	p.Unfit = reason(p.Unfit)
	return p
}

// watch collects beats. That the bus has forgotten one is no news: the sweep
// goes by the age of what is stored.
func (s *Service) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.Bus.WatchPresence(ctx, func(boxID string, p *protocol.Presence) {
			if p != nil {
				s.beats.put(boxID, sane(*p))
			}
		})
		if err == nil {
			return
		}
		s.log().ErrorContext(ctx, "presence of boxes is not followed", "error", err)
		pause(ctx, retryAfter)
	}
}

func (s *Service) keepBeats(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.beats.news:
		}
		if err := s.store(ctx, s.beats.take()); err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, "beats of boxes are not stored", "error", err)
		}
		pause(ctx, gather)
	}
}

// store writes the beats that say something new, or prove that a box is still
// there after a while.
func (s *Service) store(ctx context.Context, heard map[string]protocol.Presence) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		// In one order on all nodes, so that they do not lock crosswise.
		rows, err := known(tx, slices.Sorted(maps.Keys(heard)))
		if err != nil {
			return err
		}
		slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.ID, b.ID) })
		for _, r := range rows {
			p, was := heard[r.ID], presenceAt(r.Presence, r.LastBeatAt, tx.Now)
			drained := r.State == Draining && p.State == Drained // only the box knows when it has given back its last work
			if !drained && r.Presence == Online && was == Online && tx.Now.Sub(*r.LastBeatAt).Abs() < protocol.BeatEvery/2 && alike(r, p) {
				continue
			}
			if _, err := beat.Exec(tx, r.ID, tx.Now, db.JSON[protocol.Presence]{V: p}, firstOf(p.Version, r.Version)); err != nil {
				return err
			}
			tx.Account = r.AccountID
			if drained {
				n, err := setDrained.Exec(tx, r.ID)
				if err == nil && n > 0 {
					err = event.Record(tx, event.Change{Kind: "box.emptied", Object: r.ID})
				}
				if err != nil {
					return err
				}
			}
			if r.Presence != Online || was == Offline {
				if err := event.Record(tx, event.Change{Kind: "box.online", Object: r.ID, Data: map[string]string{"version": p.Version}}); err != nil {
					return err
				}
			}
			if r.Presence != Online {
				s.wake(tx)
			}
			if p.Unfit != r.unfit() {
				if err := s.judge(tx, r.ID, p.Unfit); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// alike tells whether a beat differs from what is known of its box in nothing
// that is shown as a state. That the box is unfit may be known from elsewhere
// than from its last beat.
func alike(r row, b protocol.Presence) bool {
	a := r.Telemetry.V
	return a.Version == b.Version && a.State == b.State && a.Slots == b.Slots && a.Free == b.Free && len(a.Runs) == len(b.Runs) && r.unfit() == b.Unfit
}

// sweep notices boxes that have fallen silent, and pays what is owed to the
// bus for revocations.
func (s *Service) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.age(ctx); err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, "presence of boxes is not aged", "error", err)
		}
		if err := s.settleAll(ctx); err != nil && ctx.Err() == nil {
			s.log().ErrorContext(ctx, "revoked keys are not refused yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// age moves boxes without a beat to stale and to offline.
func (s *Service) age(ctx context.Context) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		rows, err := selectQuiet.All(tx, tx.Now.Add(-staleAfter), tx.Now.Add(-offlineAfter))
		if err != nil {
			return err
		}
		for _, r := range rows {
			now := presenceAt(r.Presence, r.LastBeatAt, tx.Now)
			n, err := setPresence.Exec(tx, r.ID, r.Presence, now, r.LastBeatAt)
			if err != nil {
				return err
			}
			if n == 0 {
				continue // a beat came, or another node was here
			}
			tx.Account = r.AccountID
			s.wake(tx)
			if err := event.Record(tx, event.Change{Kind: "box." + now, Object: r.ID, Data: map[string]any{"last_beat": r.LastBeatAt}}); err != nil {
				return err
			}
		}
		return nil
	})
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
