package stream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// feed follows one account for all its listeners on this node.
type feed struct {
	s    *Service
	ctx  context.Context // carries the account
	stop context.CancelFunc

	mu        sync.Mutex
	seq       int64 // of the newest change that listeners were told of
	listeners map[*listener]struct{}

	taking    sync.Mutex // one snapshot is taken at a time
	snapshots map[string]snapshot
}

type snapshot struct {
	seq    int64
	frames []byte
}

// listener is one connection. Its frames end when it has lagged too far
// behind, or the feed has.
type listener struct {
	topics []*Topic
	frames chan []byte
}

// listen adds a listener to the feed of an account and makes that if need be.
func (s *Service) listen(ctx context.Context, account string, topics []*Topic) (*feed, *listener, error) {
	l := &listener{topics, make(chan []byte, backlog)}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[account]
	if f == nil {
		f = &feed{s: s, listeners: map[*listener]struct{}{}, snapshots: map[string]snapshot{}}
		// It outlives the request of its first listener, and shows nothing that
		// this one alone may see.
		f.ctx, f.stop = context.WithCancel(db.WithAccount(policy.With(context.WithoutCancel(ctx), policy.Actor{AccountID: account}),
			account))
		if err := s.DB.Read(f.ctx, func(tx *db.Tx) (err error) { f.seq, err = head(tx); return err }); err != nil {
			f.stop()
			return nil, nil, err
		}
		if s.feeds == nil {
			s.feeds = map[string]*feed{}
		}
		s.feeds[account] = f
		go f.run(account)
	}
	f.mu.Lock()
	f.listeners[l] = struct{}{}
	f.mu.Unlock()
	return f, l, nil
}

// leave takes a listener out; the feed ends with its last.
func (s *Service) leave(account string, f *feed, l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(l)
	if len(f.listeners) == 0 && s.feeds[account] == f {
		delete(s.feeds, account)
		f.stop()
	}
}

func (f *feed) drop(l *listener) {
	if _, ok := f.listeners[l]; ok {
		delete(f.listeners, l)
		close(l.frames)
	}
}

// run tells the listeners what changes until the last has left. When the
// database fails, they are cut off: they come again, for a fresh snapshot.
func (f *feed) run(account string) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		news := f.s.Hub.Watch(event.QueueTopic(account))
		if err := f.read(); err != nil && f.ctx.Err() == nil {
			f.mu.Lock()
			for l := range f.listeners {
				f.drop(l)
			}
			f.mu.Unlock()
		}
		select {
		case <-news:
		case <-t.C:
		case <-f.ctx.Done():
			return
		}
	}
}

// read tells what has changed since the last time.
func (f *feed) read() error {
	for {
		done, err := f.tell(f.followed())
		if done || err != nil {
			return err
		}
	}
}

func (f *feed) followed() map[*Topic]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[*Topic]bool{}
	for l := range f.listeners {
		for _, t := range l.topics {
			out[t] = true
		}
	}
	return out
}

// tell hands out the next changes of the topics that are followed. It is not
// done if there may be more, or if somebody has come who follows a topic beside
// those: what is told now would be lost to them.
func (f *feed) tell(followed map[*Topic]bool) (done bool, err error) {
	f.mu.Lock()
	since := f.seq
	f.mu.Unlock()
	patches, upTo, err := f.patches(since, followed)
	if err != nil {
		return false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for l := range f.listeners {
		if slices.ContainsFunc(l.topics, func(t *Topic) bool { return !followed[t] }) {
			return false, nil
		}
	}
	f.seq = upTo
	for l := range f.listeners {
		l.offer(f, patches)
	}
	return upTo-since < behind, nil
}

// offer hands a listener the frames of its topics at once.
func (l *listener) offer(f *feed, patches map[*Topic][]byte) {
	var own []byte
	for _, t := range l.topics {
		if p := patches[t]; len(own) == 0 {
			own = p // most follow one topic that has changed: nothing is copied
		} else if len(p) > 0 {
			own = slices.Concat(own, p)
		}
	}
	if len(own) == 0 {
		return
	}
	select {
	case l.frames <- own:
	default:
		f.drop(l)
	}
}

// patches loads the rows that changed after since, and encodes them.
func (f *feed) patches(since int64, followed map[*Topic]bool) (out map[*Topic][]byte, upTo int64, err error) {
	err = f.s.DB.Read(f.ctx, func(tx *db.Tx) error {
		out, upTo = map[*Topic][]byte{}, since
		now, err := head(tx)
		if err != nil || now == since {
			return err
		}
		changes, err := selectChanges.All(tx, tx.Account, since, behind)
		if err != nil || len(changes) == 0 {
			return err
		}
		upTo = changes[len(changes)-1].Seq
		for t := range followed {
			ids := map[string]bool{}
			for _, c := range changes {
				t.touched(c, ids)
			}
			if len(ids) == 0 {
				continue
			}
			rows, err := t.Rows(tx, slices.Sorted(maps.Keys(ids)), len(ids))
			if err != nil {
				return fmt.Errorf("rows of %s: %w", t.Name, err)
			}
			if t.Fixed {
				ids = nil
			}
			if out[t], err = t.frames(rows, ids); err != nil {
				return err
			}
		}
		return nil
	})
	return out, upTo, err
}

// frames encodes rows, and the removal of those that are looked for and not
// there.
func (t *Topic) frames(rows []Row, want map[string]bool) (out []byte, err error) {
	gone := maps.Clone(want)
	for _, r := range rows {
		delete(gone, r.ID)
		b, err := op.Frame("patch", Patch{Topic: t.Name, Op: "upsert", ID: r.ID, Row: r.Value})
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		b, err := op.Frame("patch", Patch{Topic: t.Name, Op: "remove", ID: id})
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// snapshot is what a topic's newest rows are now. Listeners that come while
// nothing changes share one.
func (f *feed) snapshot(t *Topic) ([]byte, error) {
	f.taking.Lock()
	defer f.taking.Unlock()
	var out snapshot
	err := f.s.DB.Read(f.ctx, func(tx *db.Tx) error {
		seq, err := head(tx)
		if err != nil {
			return err
		}
		if last, ok := f.snapshots[t.Name]; ok && last.seq == seq {
			out = last
			return nil
		}
		rows, err := t.Rows(tx, nil, snapshotRows)
		if err != nil {
			return fmt.Errorf("newest of %s: %w", t.Name, err)
		}
		slices.Reverse(rows)
		frames, err := t.frames(rows, nil)
		out = snapshot{seq, frames}
		return err
	})
	if err == nil {
		f.snapshots[t.Name] = out
	}
	return out.frames, err
}
