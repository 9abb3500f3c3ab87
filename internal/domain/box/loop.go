package box

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nkeys"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
	"yardmaster/internal/protocol"
)

// The intervals of the loops.
const (
	sweepEvery = 5 * time.Second
	beatBatch  = 200 * time.Millisecond // beats of one such interval share a transaction
)

// Serve registers the handlers of the boxes' calls on the bus.
func (s *Service) Serve() error {
	s.beats.init()
	for method, fn := range map[string]func(context.Context, string, []byte) (any, error){
		protocol.CallHello:      s.hello,
		protocol.CallBeat:       s.beat,
		protocol.CallCommands:   s.nextCommands,
		protocol.CallDone:       s.commandsDone,
		protocol.CallCredential: s.renew,
	} {
		if err := s.Bus.Handle(method, fn); err != nil {
			return fmt.Errorf("box: answer %s: %w", method, err)
		}
	}
	return nil
}

// Loop stores the boxes' beats, shuts revoked boxes out of the bus, and marks
// boxes without beats as stale or offline, until ctx ends. Several nodes may
// run it at once.
func (s *Service) Loop(ctx context.Context) error {
	s.beats.init()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { s.keepBeats(ctx); return nil })
	g.Go(func() error { observe.Every(ctx, "box.sweep", sweepEvery, s.sweepOnce); return nil })
	return g.Wait()
}

// hello stores the report that a box makes of itself as it connects, and
// answers which of its runs go on. It returns fault.Invalid for another version
// of the protocol and for a report that is malformed or too large, and
// fault.RateLimited for a box whose reports change too often.
func (s *Service) hello(ctx context.Context, boxID string, data []byte) (any, error) {
	var h protocol.Hello
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fault.New(fault.Invalid, "", "The hello cannot be read.").Because(err)
	}
	if h.V != protocol.Version {
		return nil, fault.Newf(fault.Invalid, "protocol-version",
			"The box speaks version %d of the protocol, the control plane version %d: give both the same program.", h.V, protocol.Version)
	}
	if h.Slots < 1 || len(h.Labels) > 32 || len(h.Agents) > 64 || len(h.Isolation) > 16 || tooMuch(h.Holds) ||
		len(h.Version)+len(h.OS)+len(h.Arch) > 3*maxVersion ||
		slices.ContainsFunc(h.Agents, func(a protocol.AgentInfo) bool {
			return len(a.Name)+len(a.Version) > 2*maxVersion || len(a.Missing) > protocol.MaxMissing
		}) ||
		slices.ContainsFunc(h.Isolation, func(level string) bool { return len(level) > maxVersion }) {
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
		if err := adoptKey(tx, r, h); err != nil {
			return err
		}
		if r.Presence == left { // the box has come back
			if _, err := clearLeft.Exec(tx, r.ID); err != nil {
				return err
			}
		}
		before := r
		r.Version, r.OS, r.Arch, r.Slots = h.Version, h.OS, h.Arch, slotsOf(int64(min(h.Slots, 256)), r.SetSlots)
		r.Labels, r.Agents.V, r.Isolation.V = labels(labelsOf(h.Labels, r.SetLabels.V)), h.Agents, h.Isolation
		r.IsolationHolds.V = holdsOf(h)
		if same(before, r) {
			return nil
		}
		if !s.beats.mayChange(boxID) {
			return changesTooOften
		}
		if _, err := report.Exec(tx, r); err != nil {
			return err
		}
		s.wake(tx, tx.Account)
		return reportedEvent.Record(tx, event.Subject{ID: r.ID},
			reportedData{Agents: h.Agents, Isolation: h.Isolation, IsolationHolds: r.IsolationHolds.V, Slots: r.Slots, Version: r.Version})
	})
	if err != nil {
		return nil, err
	}
	// A box that names no runs is checked too: it may have lost some.
	if out.Runs, err = s.Runs.Verdicts(ctx, boxID, h.Runs); err != nil {
		return nil, err
	}
	return out, nil
}

// same tells whether a box has reported the same as before.
func same(a, b row) bool {
	return a.Version == b.Version && a.OS == b.OS && a.Arch == b.Arch && a.Slots == b.Slots && maps.Equal(a.Labels.V, b.Labels.V) &&
		slices.Equal(a.Agents.V, b.Agents.V) && slices.Equal(a.Isolation.V, b.Isolation.V) &&
		maps.EqualFunc(a.IsolationHolds.V, b.IsolationHolds.V, slices.Equal[[]string])
}

// tooMuch tells whether a report of isolation is longer than any honest one.
func tooMuch(holds map[string][]string) bool {
	for level, held := range holds {
		if len(level) > 32 || len(held) > 32 || slices.ContainsFunc(held, func(p string) bool { return len(p) > 32 }) {
			return true
		}
	}
	return len(holds) > 16
}

// holdsOf returns the protections of each level that the box has. A level
// without a report holds none.
func holdsOf(h protocol.Hello) Holds {
	out := Holds{}
	for _, level := range h.Isolation {
		out[level] = append([]string{}, h.Holds[level]...)
	}
	return out
}

// connected locks the box that calls over the bus and makes its account
// tx.Account. It returns fault.Forbidden for a revoked or unknown box.
func (s *Service) connected(tx *db.Tx, boxID string) (row, error) {
	r, ok, err := byIdentity.ForUpdate().Maybe(tx, boxID)
	switch {
	case err != nil:
		return r, err
	case !ok, r.State == Revoked:
		return r, revoked()
	}
	tx.Account = r.AccountID
	return r, nil
}

// adoptKey stores the key to which secrets for the box are sealed, if the box's
// own nkey has signed it: a connection to the bus is not proof enough. It
// returns fault.Invalid without a signature and fault.Forbidden for a wrong
// one.
func adoptKey(tx *db.Tx, r row, h protocol.Hello) error {
	signature, err := base64.StdEncoding.DecodeString(h.Signature)
	if err != nil || h.Key == "" || len(h.Key) > maxKeyText {
		return fault.New(fault.Invalid, "", "The hello brings no key with a signature.").Because(err)
	}
	pair, err := nkeys.FromPublicKey(r.NKey)
	if err == nil {
		err = pair.Verify(protocol.KeyStatement(r.ID, h.Key), signature)
	}
	if err != nil {
		return fault.New(fault.Forbidden, "", "The key of the hello is not signed by the box.").Because(err)
	}
	if r.SealKey == h.Key {
		return nil
	}
	_, err = setSealKey.Exec(tx, r.ID, h.Key)
	return err
}

// maxKeyText is the most bytes that a public key may have.
const maxKeyText = 100

// renew signs a new credential for the key that the box already has.
func (s *Service) renew(ctx context.Context, boxID string, _ []byte) (any, error) {
	var r row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		var ok bool
		r, ok, err = byIdentity.Maybe(tx, boxID)
		if err == nil && (!ok || r.State == Revoked || r.NATSAccount == nil) {
			err = revoked()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	jwt, err := s.Bus.Issue(r.ID, *r.NATSAccount, r.NKey, credentialTTL)
	return protocol.CredentialReply{JWT: jwt, ExpiresMS: (credentialTTL - time.Second).Milliseconds()}, err
}

// beat takes a box's report of its state, and answers whether commands wait for
// the box.
func (s *Service) beat(ctx context.Context, boxID string, data []byte) (any, error) {
	var p protocol.Presence
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fault.New(fault.Invalid, "", "The beat cannot be read.").Because(err)
	}
	out := protocol.BeatReply{}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := standingOf(tx, boxID)
		out.Commands, out.ServerMS = r.Waiting, tx.Now.UnixMilli()
		return err
	})
	if err != nil {
		return nil, err
	}
	if p.State != readyState {
		s.Runs.Dismiss(boxID)
	}
	if p = storable(p); p.State == protocol.PresenceLeft {
		return out, s.leave(ctx, boxID, p)
	}
	s.beats.put(boxID, p)
	return out, nil
}

// readyState is the state in the beat of a box that takes work.
const readyState = "ready"

// beats holds the newest beat of each box that is not stored yet, and the
// limiter of each box's changes.
type beats struct {
	mu      sync.Mutex
	last    map[string]protocol.Presence
	changes map[string]*rate.Limiter
	changed chan struct{}
}

// A box whose reports change on and on would fill the audit log.
const (
	changeEvery = 10 * time.Second
	changeBurst = 20
)

var changesTooOften = fault.New(fault.RateLimited, "", "The box changes what it says of itself too often.")

func (b *beats) init() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.last, b.changed = map[string]protocol.Presence{}, make(chan struct{}, 1)
	}
}

// mayChange tells whether the box may report another change now.
func (b *beats) mayChange(boxID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.changes[boxID]
	if l == nil {
		if b.changes == nil {
			b.changes = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Every(changeEvery), changeBurst)
		b.changes[boxID] = l
	}
	return l.Allow()
}

func (b *beats) put(boxID string, p protocol.Presence) {
	b.mu.Lock()
	b.last[boxID] = p
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
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

// The limits of a stored beat: lengths in bytes, and the number of runs.
const (
	maxVersion = 100
	maxState   = 20
	maxRuns    = 256
	maxRunID   = 64
)

// storable removes from a beat everything that cannot be stored. Beats of many
// boxes are stored in one transaction, and none may make it fail.
func storable(p protocol.Presence) protocol.Presence {
	p.Version = strings.ReplaceAll(strings.ToValidUTF8(p.Version[:min(len(p.Version), maxVersion)], ""), "\x00", "")
	p.State = p.State[:min(len(p.State), maxState)]
	p.Runs = slices.DeleteFunc(p.Runs[:min(len(p.Runs), maxRuns)], func(r protocol.RunRef) bool { return len(r.Run) > maxRunID })
	p.Unfit, p.UnfitFor = reason(p.Unfit), unfitFor(p.UnfitFor)
	p.Update = updateOf(p.Update)
	return p
}

func (s *Service) keepBeats(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.beats.changed:
		}
		in, end := observe.Pass(ctx, "box.beats")
		err := s.store(in, s.beats.take())
		observe.Failed(in, err)
		end()
		if err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "beats of boxes are not stored", "error", err)
		}
		pause(ctx, beatBatch)
	}
}

// store writes the beats that say something new, and those that show after a
// while that a box is still online.
func (s *Service) store(ctx context.Context, heard map[string]protocol.Presence) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		// All nodes lock the boxes in the same order, so that none waits in a
		// circle.
		rows, err := unrevoked(tx, slices.Sorted(maps.Keys(heard)))
		if err != nil {
			return err
		}
		slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.ID, b.ID) })
		for _, r := range rows {
			p, was := heard[r.ID], presenceAt(r.Presence, r.LastBeatAt, tx.Now)
			drained := r.State == Draining && p.State == Drained // the box alone knows when it has handed back its last run
			if !drained && r.Presence == Online && was == Online && tx.Now.Sub(*r.LastBeatAt).Abs() < protocol.BeatEvery/2 &&
				sameState(r, p) {
				continue
			}
			if n, err := beat.Exec(tx, beatOf(r, p, tx.Now)); err != nil {
				return err
			} else if n == 0 {
				continue // the box has left, or was revoked, since this beat
			}
			tx.Account = r.AccountID
			if drained {
				if err := emptied(tx, r.ID); err != nil {
					return err
				}
			}
			if r.Presence != Online || was == Offline {
				if err := onlineEvent.Record(tx, event.Subject{ID: r.ID}, onlineData{Version: p.Version}); err != nil {
					return err
				}
			}
			if r.Presence != Online || !maps.Equal(r.Telemetry.V.UnfitFor, p.UnfitFor) {
				s.wake(tx, tx.Account)
			}
			if p.Unfit != r.unfit() && s.beats.mayChange(r.ID) {
				if err := s.setFitness(tx, r.ID, p.Unfit); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// sameState tells whether a beat differs from the stored row in no field that
// is shown as a state. The server may have marked the box as unfit without a
// beat.
func sameState(r row, b protocol.Presence) bool {
	a := r.Telemetry.V
	return a.Version == b.Version && a.State == b.State && a.Slots == b.Slots && a.Free == b.Free && len(a.Runs) == len(b.Runs) &&
		r.unfit() == b.Unfit && maps.Equal(a.UnfitFor, b.UnfitFor) && sameUpdate(a.Update, b.Update)
}

// sweepOnce is one pass over the periodic work of boxes: presence, decommissions, revocations,
// old commands. A step that fails does not keep the others from running.
func (s *Service) sweepOnce(ctx context.Context) {
	for _, step := range []struct {
		failure string
		do      func(context.Context) error
	}{
		{"presence of boxes is not aged", s.age},
		{"decommissioned boxes are not revoked yet", s.retireAll},
		{"revoked boxes are not shut out yet", s.settleAll},
		{"old commands and tokens are not dropped", s.expire},
	} {
		err := step.do(ctx)
		observe.Failed(ctx, err)
		if err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, step.failure, "error", err)
		}
	}
}

// age marks boxes whose last beat is too old as stale or offline.
func (s *Service) age(ctx context.Context) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		rows, err := selectQuiet.All(tx, tx.Now.Add(-staleAfter), tx.Now.Add(-offlineAfter))
		if err != nil {
			return err
		}
		for _, r := range rows {
			now := presenceAt(r.Presence, r.LastBeatAt, tx.Now)
			n, err := setPresence.Exec(tx, setPresenceArgs{ID: r.ID, Presence: r.Presence, Now: now, LastBeatAt: r.LastBeatAt})
			if err != nil {
				return err
			}
			if n == 0 {
				continue // a beat came, or another node was faster
			}
			tx.Account = r.AccountID
			s.wake(tx, tx.Account)
			if err := quietEvents[now].Record(tx, event.Subject{ID: r.ID}, quietData{LastBeat: r.LastBeatAt}); err != nil {
				return err
			}
		}
		return nil
	})
}

// expire deletes commands that no box has fetched for a day, and what is known of tokens that have expired.
func (s *Service) expire(ctx context.Context) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := expireCommands.Exec(tx, tx.Now.Add(-commandAge)); err != nil {
			return err
		}
		_, err := expireRevokedTokens.Exec(tx, tx.Now)
		return err
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
