package stream

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	seq       int64 // number of the newest change that listeners were sent
	listeners map[*listener]struct{}

	marks map[*Topic]map[string]string // as they were last, by id; of the goroutine of run

	snapshotMu sync.Mutex // guards snapshots; one is taken at a time
	snapshots  map[snapshotKey]snapshot
}

// snapshotKey names a snapshot that is kept: a topic's whole one, and the last narrowed
// one.
type snapshotKey struct {
	topic    string
	narrowed bool
}

type snapshot struct {
	seq    int64
	repo   string // as in listener
	frames frames
}

// listener is one connection. frames is closed when the listener lags too far behind,
// or when the feed ends.
type listener struct {
	topics []*Topic
	repo   string // owner/name; empty: of all
	frames chan []byte
}

// listen adds a listener to the feed of an account, and starts the feed if there is
// none.
func (s *Service) listen(ctx context.Context, account, repo string, topics []*Topic) (*feed, *listener, error) {
	l := &listener{topics: topics, repo: repo, frames: make(chan []byte, backlog)}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[account]
	if f == nil {
		f = &feed{s: s, listeners: map[*listener]struct{}{}, snapshots: map[snapshotKey]snapshot{}}
		// The feed outlives the request of its first listener, and uses none of the
		// rights of that caller.
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

// leave removes a listener. The feed ends with its last listener.
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

// run sends changes to the listeners until the last has left. If the database fails,
// run drops the listeners; they connect again and get a new snapshot.
func (f *feed) run(account string) {
	t, marks := time.NewTicker(tick), time.NewTicker(markTick)
	defer t.Stop()
	defer marks.Stop()
	for {
		notice := f.s.Hub.Watch(event.QueueTopic(account))
		err := f.catchUp()
		select {
		case <-marks.C:
			err = cmp.Or(err, f.compareMarks())
		default:
		}
		if err != nil && f.ctx.Err() == nil {
			f.mu.Lock()
			for l := range f.listeners {
				f.drop(l)
			}
			f.mu.Unlock()
		}
		select {
		case <-notice:
		case <-t.C:
		case <-f.ctx.Done():
			return
		}
	}
}

// catchUp sends all changes since the last call.
func (f *feed) catchUp() error {
	for {
		done, err := f.advance(f.followed())
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

// advance sends the next changes of the followed topics. done is false if there may
// be more changes, or if a listener has come that follows another topic: then nothing
// is sent, because that listener would miss changes.
func (f *feed) advance(followed map[*Topic]bool) (done bool, err error) {
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
	f.offer(patches)
	return upTo-since < batch, nil
}

// compareMarks sends the rows of the followed topics whose marks have changed.
func (f *feed) compareMarks() error {
	patches := map[*Topic]frames{}
	err := f.s.DB.Read(f.ctx, func(tx *db.Tx) error {
		for t := range f.followed() {
			if t.Marks == nil {
				continue
			}
			now, err := t.Marks.Marks(tx)
			if err != nil {
				return fmt.Errorf("marks of %s: %w", t.Name, err)
			}
			var ids []string
			for id, text := range now {
				if f.marks[t][id] != text {
					ids = append(ids, id)
				}
			}
			if f.marks == nil {
				f.marks = map[*Topic]map[string]string{}
			}
			if f.marks[t] = now; len(ids) == 0 {
				continue
			}
			slices.Sort(ids)
			rows, err := t.Rows(tx, ids, len(ids))
			if err != nil {
				return fmt.Errorf("rows of %s: %w", t.Name, err)
			}
			if patches[t], err = framesOf(t.Name, rows, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(patches) > 0 {
		f.send(patches)
	}
	return err
}

// send hands frames to the listeners that follow their topics.
func (f *feed) send(patches map[*Topic]frames) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offer(patches)
}

// offer is send for a caller that holds mu.
func (f *feed) offer(patches map[*Topic]frames) {
	whole := map[*Topic][]byte{} // the same bytes for every listener that wants them all
	for t, p := range patches {
		whole[t], _ = p.of(t, "")
	}
	for l := range f.listeners {
		l.offer(f, patches, whole)
	}
}

// offer sends a listener the frames of its topics. It drops a listener that lags too
// far behind, instead of waiting.
func (l *listener) offer(f *feed, patches map[*Topic]frames, whole map[*Topic][]byte) {
	var own []byte
	for _, t := range l.topics {
		p := whole[t]
		if l.repo != "" && t.In != nil {
			p, _ = patches[t].of(t, l.repo)
		}
		if len(own) == 0 {
			own = p // usually one followed topic has changed; then nothing is copied
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

// patches loads the rows that changed after since and encodes them. upTo is the
// number of the last change that it has read.
func (f *feed) patches(since int64, followed map[*Topic]bool) (out map[*Topic]frames, upTo int64, err error) {
	err = f.s.DB.Read(f.ctx, func(tx *db.Tx) error {
		out, upTo = map[*Topic]frames{}, since
		now, err := head(tx)
		if err != nil || now == since {
			return err
		}
		changes, err := selectChanges.All(tx, tx.Account, since, batch)
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
			if out[t], err = framesOf(t.Name, rows, ids); err != nil {
				return err
			}
		}
		return nil
	})
	return out, upTo, err
}

// framesOf encodes rows of a topic as frames, and a removal for each wanted id without a
// row.
func framesOf(topic string, rows []Row, want map[string]bool) (out frames, err error) {
	gone := maps.Clone(want)
	for _, r := range rows {
		delete(gone, r.ID)
		p := Patch{Topic: topic, Op: "upsert", ID: r.ID, Row: r.Value}
		if r.Value == nil {
			p.Op = "remove"
		}
		b, err := op.Frame("patch", p)
		if err != nil {
			return nil, err
		}
		out = append(out, frame{bytes: b, repos: r.Repos, removal: r.Value == nil})
	}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		b, err := op.Frame("patch", Patch{Topic: topic, Op: "remove", ID: id})
		if err != nil {
			return nil, err
		}
		out = append(out, frame{bytes: b, removal: true})
	}
	return out, nil
}

// snapshot returns the frames of a topic's newest rows, of those about a repository if repo
// is not empty and the topic's rows are about repositories. Listeners that come while
// nothing changes share one snapshot.
func (f *feed) snapshot(t *Topic, repo string) (frames, error) {
	if t.In == nil {
		repo = ""
	}
	key := snapshotKey{t.Name, repo != ""}
	f.snapshotMu.Lock()
	defer f.snapshotMu.Unlock()
	var out snapshot
	err := f.s.DB.Read(f.ctx, func(tx *db.Tx) error {
		seq, err := head(tx)
		if err != nil {
			return err
		}
		if last, ok := f.snapshots[key]; ok && last.seq == seq && last.repo == repo {
			out = last
			return nil
		}
		rows, err := f.s.newest(tx, t, repo)
		if err != nil {
			return fmt.Errorf("newest of %s: %w", t.Name, err)
		}
		slices.Reverse(rows)
		frames, err := framesOf(t.Name, rows, nil)
		out = snapshot{seq, repo, frames}
		return err
	})
	if err == nil {
		f.snapshots[key] = out
	}
	return out.frames, err
}

// newest reads the newest rows of a topic, newest first; those about repo if it is not
// empty.
func (s *Service) newest(tx *db.Tx, t *Topic, repo string) ([]Row, error) {
	if repo == "" {
		return t.Rows(tx, nil, snapshotRows)
	}
	owner, name, _ := strings.Cut(repo, "/")
	repoID, ok, err := s.Repos.RepoID(tx, owner, name)
	if err != nil || !ok {
		return nil, err
	}
	ids, err := t.In.NewestIn(tx, repoID, snapshotRows)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	rows, err := t.Rows(tx, ids, len(ids))
	rows = slices.DeleteFunc(rows, func(r Row) bool { return !slices.Contains(r.Repos, repo) })
	return rows[:min(len(rows), snapshotRows)], err
}
