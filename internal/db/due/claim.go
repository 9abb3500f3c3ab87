package due

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/db"
)

// A claim takes as many entries as there are free places. Where the work of a queue is short,
// it takes up to twice the places more, which wait on this node: a commit for each place that
// becomes free would cost more than the work. They are given back if they wait for long.

// short is how long work may last, on average, for entries to be claimed ahead.
const short = 20 * time.Millisecond

// held is an entry that this node has.
type held struct {
	taken
	fence  int64
	until  time.Time // by the monotonic clock of this process
	row    any       // as loaded then
	there  bool
	loaded time.Time // zero: it is to be loaded
}

func (h *held) account() string { return h.Lane[1:] }

// old tells whether a third of the hold is over, so that it is time to renew.
func (h *held) old(w *worker) bool { return time.Until(h.until) < w.hold*2/3 }

// room is how many entries more may wait for a place; the caller has locked w. It is 0 while
// enough do, so that a claim takes several.
func (w *worker) room() int {
	if w.took == 0 || w.took >= short || len(w.ahead) >= w.atOnce {
		return 0
	}
	return 2*w.atOnce - len(w.ahead)
}

// wants tells whether there is a place, or room to wait for one.
func (w *worker) wants() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all < w.atOnce || w.room() > 0
}

// next begins at an entry that has waited for a place, if there is one that may have it.
func (w *worker) next() *held {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= w.atOnce {
		return nil
	}
	for i, h := range w.ahead {
		if h.old(w) { // see putBack
			continue
		}
		if h.Suspect == 1 || w.busy[h.account()] < w.share {
			w.ahead = slices.Delete(w.ahead, i, i+1)
			w.busy[h.account()]++
			w.all++
			return h
		}
	}
	return nil
}

// over gives the place of an entry back, after it was in work for so long.
func (w *worker) over(h *held, lasted time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[h.account()]--; w.busy[h.account()] == 0 {
		delete(w.busy, h.account())
	}
	w.all--
	w.suspects -= int(h.Suspect)
	if w.took == 0 {
		w.took = lasted
	}
	w.took = max((7*w.took+lasted)/8, 1)
}

// stale takes out of those that wait for a place the ones that do for too long, or all.
func (w *worker) stale(all bool) (out []*held) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead = slices.DeleteFunc(w.ahead, func(h *held) bool {
		old := all || h.old(w)
		if old {
			out = append(out, h)
			w.suspects -= int(h.Suspect)
		}
		return old
	})
	return out
}

// putBack gives back what has waited for a place for too long; all that waits, if the node
// stops. It answers when to look again, the interval of the loop at most.
func (k *Kernel) putBack(ctx context.Context, stop bool) time.Duration {
	again := k.Every
	var all []giveBackArgs
	for _, w := range k.queues {
		for _, h := range w.stale(stop) {
			all = append(all, giveBackArgs{Queue: w.name, Key: h.Key, Fence: h.fence})
		}
		w.mu.Lock()
		if len(w.ahead) > 0 {
			again = min(again, w.hold/6)
		}
		w.mu.Unlock()
	}
	if len(all) == 0 {
		return again
	}
	slices.SortFunc(all, func(a, b giveBackArgs) int { return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Key, b.Key)) })
	err := k.DB.Write(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		k.notify(tx)
		for _, a := range all {
			a.Now = db.Micros(k.now(tx))
			if err := giveBack(tx, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		k.Logger.WarnContext(ctx, "give back what was not begun", slog.Any("error", err))
	}
	return again
}

// fill begins at what has waited for a place of a queue, and takes more while there is one.
func (k *Kernel) fill(ctx context.Context, w *worker, working *sync.WaitGroup) error {
	for ctx.Err() == nil {
		for h := w.next(); h != nil; h = w.next() {
			working.Go(func() { k.carryOn(ctx, w, h) })
		}
		got, some, err := k.claim(ctx, w)
		if err != nil {
			return err
		}
		if w.more = some; len(got) == 0 { // no place, none are left, or another node was quicker
			return nil
		}
		k.point("claimed")
		if len(got) > 1 {
			k.loadAll(ctx, w, got)
		}
		w.mu.Lock()
		w.ahead = append(w.ahead, got...)
		w.mu.Unlock()
	}
	return nil
}

// carryOn works on an entry, and on those that wait for its place.
func (k *Kernel) carryOn(ctx context.Context, w *worker, h *held) {
	for ; h != nil; h = w.next() {
		begun := time.Now()
		k.carry(ctx, w, h)
		w.over(h, time.Since(begun))
		if w.wants() {
			k.free()
		}
		if ctx.Err() != nil {
			break
		}
	}
	k.free()
}

// free has the loop look for more work.
func (k *Kernel) free() {
	select {
	case k.freed <- struct{}{}:
	default:
	}
}

// loadAll loads the rows of a claim in one snapshot. If that fails, each is loaded alone,
// which shows whose fault it is.
func (k *Kernel) loadAll(ctx context.Context, w *worker, got []*held) {
	now := time.Now()
	err := k.DB.Read(ctx, func(tx *db.Tx) error {
		for _, h := range got {
			if h.Suspect == 1 || h.Deaths >= mostDeaths {
				continue
			}
			if err := k.loadInto(tx, w, h, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		for _, h := range got {
			h.row, h.loaded = nil, time.Time{}
		}
	}
}

func (k *Kernel) loadInto(tx *db.Tx, w *worker, h *held, now time.Time) error {
	return tx.As(h.account(), func() error {
		return safely(func() (err error) {
			h.row, h.there, err = w.load(tx, h.Key)
			h.loaded = now
			return err
		})
	})
}

// wish is how many entries are to be taken of a lane.
type wish struct {
	lane    string
	n       int
	suspect bool
}

// plan shares the free places out: lowest rank first, in it to whom has least in work, in
// turn; then what may wait for a place. A suspect has a place of its own. some tells whether
// anything is ready.
func (w *worker) plan(tx *db.Tx) (out []wish, some bool, err error) {
	w.mu.Lock()
	free, last, busy, alone, ahead := w.atOnce-w.all, w.last, map[string]int{}, w.suspects > 0, w.room()
	for account, n := range w.busy {
		busy[account] = n
	}
	for _, h := range w.ahead {
		busy[h.account()]++
	}
	w.mu.Unlock()
	var all []string
	most := free + w.atOnce
	walk := func(from string) error {
		rows, err := lanes.All(tx, w.name, from, most)
		for _, r := range rows {
			some = true
			if r.Suspect == 0 {
				all = append(all, r.Lane)
			} else if !alone && free > 0 && len(out) == 0 {
				out = append(out, wish{lane: r.Lane, n: 1, suspect: true})
			}
		}
		return err
	}
	if err := walk(""); err != nil {
		return nil, false, err
	}
	if len(all) == most && last != "" && last[0] == all[0][0] {
		if err := walk(last); err != nil { // more lanes than places: go on where the last claim ended
			return nil, false, err
		}
	}
	free -= len(out)
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(after(a, last), after(b, last)), cmp.Compare(a, b))
	})
	all = slices.Compact(all)
	wishes := map[string]int{}
	wish1 := func(share int) bool {
		best := -1
		for i, l := range all { // few: at most twice the places, see walk
			if busy[l[1:]] >= share || best >= 0 && l[0] != all[best][0] {
				continue
			}
			if best < 0 || busy[l[1:]] < busy[all[best][1:]] {
				best = i
			}
		}
		if best >= 0 {
			wishes[all[best]]++
			busy[all[best][1:]]++
		}
		return best >= 0
	}
	for free > 0 && wish1(w.share) {
		free--
	}
	for ahead > 0 && wish1(w.share+2*w.atOnce) { // those wait until their account may have a place
		ahead--
	}
	for _, l := range all {
		if wishes[l] > 0 {
			out = append(out, wish{lane: l, n: wishes[l]})
		}
	}
	return out, some, nil
}

// after orders the lanes behind the last one before those ahead of it.
func after(l, last string) int {
	if l > last {
		return 0
	}
	return 1
}

// claim takes what is planned, as far as no other node has. some tells that there was
// anything, even if it could not be taken now.
func (k *Kernel) claim(ctx context.Context, w *worker) (got []*held, some bool, err error) {
	if !w.wants() {
		return nil, true, nil
	}
	begun := time.Now()
	h := hold{queue: w.name, holder: k.node, fence: rand.Int64()}
	var rows []taken
	err = k.DB.Write(ctx, func(tx *db.Tx) error {
		rows = nil
		if err := unsynced(tx); err != nil {
			return err
		}
		var plan []wish
		var err error
		if plan, some, err = w.plan(tx); err != nil || len(plan) == 0 {
			return err
		}
		now := k.now(tx)
		h.now, h.until = db.Micros(now), db.Micros(now.Add(w.hold))
		rows, err = take(tx, h, plan)
		k.point("claiming")
		return err
	})
	if err != nil {
		return nil, false, err
	}
	slices.SortStableFunc(rows, func(a, b taken) int { return cmp.Compare(a.Lane[0], b.Lane[0]) })
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range rows {
		got = append(got, &held{taken: r, fence: h.fence, until: begun.Add(w.hold)})
		w.suspects += int(r.Suspect)
		w.last = r.Lane
	}
	return got, some, nil
}
