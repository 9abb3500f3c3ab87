package limits

import (
	"context"
	"runtime"
	"sync"
	"time"

	"yardmaster/internal/unixfile"
)

// The intervals of the watch.
const (
	processPause   = 250 * time.Millisecond // between two measurements of the processes
	alertPause     = 50 * time.Millisecond  // the same, while a run uses more than half of a limit
	diskPause      = 50 * time.Millisecond  // between two measurements of the disk, which cost nothing
	walkPause      = 2 * time.Second        // between two walks through a run's folders
	alertWalkPause = 100 * time.Millisecond // the same, while the growth of the disk says that a limit may be exceeded
	idleFactor     = 20                     // a measurement is followed by a pause of its processor time multiplied by this
	alertFactor    = 4                      // the same, while a limit may be exceeded
)

// clock measures the cost of a measurement by the processor time of its thread. On
// a busy machine a measurement takes long without costing more, and the next one
// must not be delayed then. The elapsed time of a walk also counts, so that a slow
// disk gets a pause as long as the walk.
type clock struct {
	began  time.Time
	worked time.Duration
}

// startClock begins to measure. The goroutine stays on its thread until stop.
func startClock() clock {
	runtime.LockOSThread()
	return clock{time.Now(), threadTime()}
}

// stop returns the processor time and the elapsed time since startClock.
func (c clock) stop() (worked, took time.Duration) {
	worked, took = threadTime()-c.worked, time.Since(c.began)
	runtime.UnlockOSThread()
	return worked, took
}

// Run watches all followed runs until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() { w.watchProcesses(ctx) })
	tasks.Go(func() { w.watchDisk(ctx) })
	tasks.Wait()
}

// watchProcesses measures the processes of all runs at intervals.
func (w *Watch) watchProcesses(ctx context.Context) {
	var read reader
	for ctx.Err() == nil {
		w.wait(ctx)
		c := startClock()
		pause := processPause
		if w.measureProcesses(&read) {
			pause = alertPause
		}
		worked, _ := c.stop()
		rest(ctx, max(pause, idleFactor*worked))
	}
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// measureProcesses measures the processes of all runs and tells whether a run uses
// more than half of a limit.
func (w *Watch) measureProcesses(read *reader) (near bool) {
	var table map[int][]process
	for _, r := range w.followed() {
		if r.group == nil && table == nil {
			table = read.table()
		}
		b, close := r.measure(read, table)
		if b != nil {
			r.found(b)
		}
		near = near || close
	}
	return near
}

// processes lists the processes of the run, the first one first.
func (r *Run) processes(read *reader, table map[int][]process) (out []process) {
	if r.group == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return family(table, r.pid)
	}
	for _, pid := range r.group.pids() {
		if p, ok := read.process(pid); ok {
			out = append(out, p)
		}
	}
	return out
}

func (r *Run) measure(read *reader, table map[int][]process) (b *Breach, near bool) {
	l := r.w.cfg.Limits
	if r.group != nil {
		if b := r.group.breach(l); b != nil {
			return b, true
		}
	}
	all := r.processes(read, table)
	var n, open, memory int64
	for _, p := range all {
		n += p.threads
		open += read.open(p.pid)
	}
	byWatch := l.Memory > 0 && !r.w.tree.has("memory")
	if byWatch {
		r.mu.Lock()
		memory = r.memory
		private := r.private
		r.mu.Unlock()
		if private {
			inside, _ := temporary(all)
			memory += inside
		}
		memory += read.memory(all, l.Memory-memory)
	}
	switch {
	case l.Processes > 0 && !r.w.tree.has("pids") && n > l.Processes:
		b = &Breach{Resource: Processes, Limit: l.Processes, Used: n}
	case byWatch && memory > l.Memory:
		b = &Breach{Resource: Memory, Limit: l.Memory, Used: memory}
	case l.OpenFiles > 0 && open > l.OpenFiles:
		b = &Breach{Resource: OpenFiles, Limit: l.OpenFiles, Used: open}
	}
	return b, byWatch && 2*memory > l.Memory || l.Processes > 0 && 2*n > l.Processes
}

// watchDisk measures the disk at intervals. It walks through a run's folders when
// it is time, or earlier when the disk has filled so much that the run may have
// exceeded a limit.
func (w *Watch) watchDisk(ctx context.Context) {
	for ctx.Err() == nil {
		w.wait(ctx)
		if d, err := unixfile.Room(w.cfg.Work); err == nil {
			for _, r := range w.followed() {
				if r.due(d) {
					r.walk(d)
				}
			}
			if w.nearlyFull(d) {
				w.endLargest(d)
			}
		}
		rest(ctx, diskPause)
	}
}

// due tells whether it is time to walk through the run's folders.
func (r *Run) due(d unixfile.Space) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.walking {
		return false
	}
	l, since := r.w.cfg.Limits, time.Since(r.walkedAt)
	// Other programs may have freed as much as the run has taken, so walks are also
	// due by time.
	grown := d.Used - r.walkDisk.Used
	may := l.Disk > 0 && grown >= l.Disk-r.lastUse.bytes ||
		l.FileBytes > 0 && grown >= l.FileBytes ||
		l.Inodes > 0 && d.UsedFiles-r.walkDisk.UsedFiles >= l.Inodes-r.lastUse.inodes
	return since >= max(walkPause, idleFactor*r.walkWork, r.walkTime) ||
		may && since >= max(alertWalkPause, alertFactor*r.walkWork, r.walkTime)
}

// walk measures the run's folders on a goroutine of its own.
func (r *Run) walk(d unixfile.Space) {
	r.mu.Lock()
	r.walking = true
	r.mu.Unlock()
	r.tasks.Go(func() {
		c := startClock()
		u, memory := r.count(r.ctx)
		r.mu.Lock()
		if r.baseline == nil {
			r.baseline = &u
			close(r.firstWalk)
		}
		r.lastUse, r.memory, r.walkDisk = u, memory, d
		r.walkWork, r.walkTime = c.stop()
		r.walkedAt, r.walking = time.Now(), false
		r.mu.Unlock()
		if b := r.w.cfg.Limits.check(u); b != nil && r.ctx.Err() == nil {
			r.found(b)
		}
	})
}

// count adds up what the run has on the disk, and its bytes in nameless memory
// files.
func (r *Run) count(ctx context.Context) (u use, memory int64) {
	u = walk(ctx, r.w.cfg.Limits, r.dirs...)
	r.mu.Lock()
	pid, private := r.pid, r.private
	r.mu.Unlock()
	if pid == 0 || ctx.Err() != nil {
		return u, 0
	}
	var read reader
	var table map[int][]process
	if r.group == nil {
		table = read.table()
	}
	all := r.processes(&read, table)
	pids := make([]int, len(all))
	for i, p := range all {
		pids[i] = p.pid
	}
	onDisk, memory := nameless(r.dirs[0], pids)
	u.bytes += onDisk
	if private {
		_, inodes := temporary(all)
		u.inodes += inodes
	}
	return u, memory
}

// check returns the limit that a use of the disk exceeds, nil if none.
func (l Limits) check(u use) *Breach {
	switch {
	case l.Inodes > 0 && u.inodes >= l.Inodes:
		return &Breach{Resource: Inodes, Limit: l.Inodes, Used: u.inodes}
	case l.Disk > 0 && u.bytes >= l.Disk:
		return &Breach{Resource: Disk, Limit: l.Disk, Used: u.bytes}
	case l.FileBytes > 0 && u.largest >= l.FileBytes:
		return &Breach{Resource: FileBytes, Limit: l.FileBytes, Used: u.largest}
	}
	return nil
}

// inodeReserve is how many files the box needs for itself, unless a tenth of the
// inodes of the disk is less.
const inodeReserve = 10_000

// reserves returns the free bytes and inodes below which a run is ended: twice what
// the box needs, because the disk fills further during the measurement.
func (w *Watch) reserves(d unixfile.Space) (bytes, inodes int64) {
	if w.cfg.Reserve != nil {
		bytes = 2 * w.cfg.Reserve(d.Total)
	}
	return bytes, 2 * min(inodeReserve, d.Files/10)
}

// nearlyFull tells whether the disk is nearly full.
func (w *Watch) nearlyFull(d unixfile.Space) bool {
	bytes, inodes := w.reserves(d)
	return d.Free < bytes || d.Files > 0 && d.FreeFiles < inodes
}

// endLargest ends the run that has filled the disk, if one has.
func (w *Watch) endLargest(d unixfile.Space) {
	w.mu.Lock()
	wait := w.freeing > 0 || w.searching || time.Since(w.searchAfter) < 0
	w.searching = w.searching || !wait
	w.mu.Unlock()
	if wait {
		return
	}
	go func() {
		c := startClock()
		var worst *Breach
		var who *Run
		for _, r := range w.followed() {
			u, _ := r.count(r.ctx)
			if b := r.filledDisk(d, u); b != nil && (worst == nil || b.Used > worst.Used) {
				worst, who = b, r
			}
		}
		if who != nil {
			who.found(worst)
		}
		worked, _ := c.stop()
		w.mu.Lock()
		w.searching, w.searchAfter = false, time.Now().Add(max(alertWalkPause, alertFactor*worked))
		w.mu.Unlock()
	}()
}

// filledDisk returns a Breach if this run has filled the disk: it has written at least a
// quarter of the reserve itself, and its end would restore the reserve.
func (r *Run) filledDisk(d unixfile.Space, u use) *Breach {
	bytes, inodes := r.w.reserves(d)
	var before use
	r.mu.Lock()
	if r.baseline != nil {
		before = *r.baseline
	}
	r.mu.Unlock()
	switch {
	case d.Free < bytes && u.bytes-before.bytes >= bytes/4 && d.Free+u.bytes >= bytes:
		return &Breach{Resource: Disk, Used: u.bytes, Free: d.Free}
	case d.Files > 0 && d.FreeFiles < inodes && u.inodes-before.inodes >= inodes/4 && d.FreeFiles+u.inodes >= inodes:
		return &Breach{Resource: Inodes, Used: u.inodes, Free: d.FreeFiles}
	}
	return nil
}
