package limits

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The paces of the watch.
const (
	calm     = 250 * time.Millisecond // between two looks at the processes
	alert    = 50 * time.Millisecond  // the same, while a run is beyond half of a limit
	glance   = 50 * time.Millisecond  // between two looks at how full the disk is, which cost nothing
	rewalk   = 2 * time.Second        // between two walks through a run's folders
	suspect  = 100 * time.Millisecond // the same, while the disk tells that a limit may be broken
	idleCost = 20                     // a look or walk is followed by a pause so many times as long as the processor worked for it
	busyCost = 4                      // the same, while the disk tells that a limit may be broken
)

// clock measures what a look costs. It counts what the thread has worked: on a
// busy machine a look takes long without costing more, and that is when the next
// one must not be put off. A slow disk is let alone for as long as a walk took.
type clock struct {
	began  time.Time
	worked time.Duration
}

// startClock begins to measure; the goroutine stays on its thread until stop.
func startClock() clock {
	runtime.LockOSThread()
	return clock{time.Now(), threadTime()}
}

// stop tells for how long the processor worked, and how long it all took.
func (c clock) stop() (worked, took time.Duration) {
	worked, took = threadTime()-c.worked, time.Since(c.began)
	runtime.UnlockOSThread()
	return worked, took
}

func threadTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Run watches until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var tasks sync.WaitGroup
	tasks.Go(func() { w.watchProcesses(ctx) })
	tasks.Go(func() { w.watchDisk(ctx) })
	tasks.Wait()
}

// watchProcesses looks at the processes of all runs again and again.
func (w *Watch) watchProcesses(ctx context.Context) {
	var read reader
	for ctx.Err() == nil {
		w.wait(ctx)
		c := startClock()
		pause := calm
		if w.lookAtProcesses(&read) {
			pause = alert
		}
		worked, _ := c.stop()
		rest(ctx, max(pause, idleCost*worked))
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

// lookAtProcesses tells whether a run is beyond half of a limit.
func (w *Watch) lookAtProcesses(read *reader) (near bool) {
	var table map[int][]process
	for _, r := range w.followed() {
		if r.group == nil && table == nil {
			table = read.table()
		}
		b, close := r.look(read, table)
		if b != nil {
			r.found(b)
		}
		near = near || close
	}
	return near
}

// processes are those of the run, the first one first.
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

func (r *Run) look(read *reader, table map[int][]process) (b *Breach, near bool) {
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

// temporary is what is in a sandbox's temporary folders, which are memory.
func temporary(all []process) (bytes, inodes int64) {
	for i := len(all) - 1; i > 0; i-- { // the first process is outside
		root := fmt.Sprintf("/proc/%d/root", all[i].pid)
		found := false
		for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm"} {
			var fs unix.Statfs_t
			if unix.Statfs(root+dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
				found = true
				bytes += int64(fs.Blocks-fs.Bfree) * fs.Bsize
				inodes += int64(fs.Files - fs.Ffree)
			}
		}
		if found {
			break
		}
	}
	return bytes, inodes
}

// watchDisk looks at the disk again and again, and walks through the folders of
// runs when it is time or when the disk has filled by so much that one of them
// may be beyond its limit.
func (w *Watch) watchDisk(ctx context.Context) {
	for ctx.Err() == nil {
		w.wait(ctx)
		if d, err := statDisk(w.cfg.Work); err == nil {
			for _, r := range w.followed() {
				if r.due(d) {
					r.walk(d)
				}
			}
			if w.short(d) {
				w.makeRoom(d)
			}
		}
		rest(ctx, glance)
	}
}

// due tells whether it is time to walk through the run's folders.
func (r *Run) due(d disk) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.walking {
		return false
	}
	l, since := r.w.cfg.Limits, time.Since(r.at)
	// Others may have freed what the run has taken: hence the walks in between.
	grown := d.used - r.then.used
	may := l.Disk > 0 && grown >= l.Disk-r.last.bytes || l.FileBytes > 0 && grown >= l.FileBytes || l.Inodes > 0 && d.usedInodes-r.then.usedInodes >= l.Inodes-r.last.inodes
	return since >= max(rewalk, idleCost*r.worked, r.took) || may && since >= max(suspect, busyCost*r.worked, r.took)
}

// walk adds up the run's folders, on a goroutine of its own.
func (r *Run) walk(d disk) {
	r.mu.Lock()
	r.walking = true
	r.mu.Unlock()
	r.tasks.Go(func() {
		c := startClock()
		u, memory := r.count(r.ctx)
		r.mu.Lock()
		if r.began == nil {
			r.began = &u
			close(r.first)
		}
		r.last, r.memory, r.then = u, memory, d
		r.worked, r.took = c.stop()
		r.at, r.walking = time.Now(), false
		r.mu.Unlock()
		if b := r.w.cfg.Limits.judge(u); b != nil && r.ctx.Err() == nil {
			r.found(b)
		}
	})
}

// count adds up what the run has on the disk, and in memory without a name.
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
	onDisk, memory := hidden(r.dirs[0], pids)
	u.bytes += onDisk
	if private {
		_, inodes := temporary(all)
		u.inodes += inodes
	}
	return u, memory
}

// judge finds the limit that the use of the disk breaks.
func (l Limits) judge(u use) *Breach {
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

// inodeReserve is how many files the box needs for itself, unless a tenth of
// what the disk can hold is less.
const inodeReserve = 10_000

// reserves are the free bytes and files below which a run is ended: twice what
// the box needs, since a disk fills while one looks.
func (w *Watch) reserves(d disk) (bytes, inodes int64) {
	if w.cfg.Reserve != nil {
		bytes = 2 * w.cfg.Reserve(d.total)
	}
	return bytes, 2 * min(inodeReserve, d.inodes/10)
}

// short tells whether the disk is nearly full.
func (w *Watch) short(d disk) bool {
	bytes, inodes := w.reserves(d)
	return d.free < bytes || d.inodes > 0 && d.freeInodes < inodes
}

// makeRoom ends the run that has filled the disk, if one has.
func (w *Watch) makeRoom(d disk) {
	w.mu.Lock()
	wait := w.freeing > 0 || w.relieve || time.Since(w.relieved) < 0
	w.relieve = w.relieve || !wait
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
			if b := r.blame(d, u); b != nil && (worst == nil || b.Used > worst.Used) {
				worst, who = b, r
			}
		}
		if who != nil {
			who.found(worst)
		}
		worked, _ := c.stop()
		w.mu.Lock()
		w.relieve, w.relieved = false, time.Now().Add(max(suspect, busyCost*worked))
		w.mu.Unlock()
	}()
}

// blame tells whether it is the run that has filled the disk: it has itself
// written a good part of what is missing, and its end would help.
func (r *Run) blame(d disk, u use) *Breach {
	bytes, inodes := r.w.reserves(d)
	var before use
	r.mu.Lock()
	if r.began != nil {
		before = *r.began
	}
	r.mu.Unlock()
	switch {
	case d.free < bytes && u.bytes-before.bytes >= bytes/4 && d.free+u.bytes >= bytes:
		return &Breach{Resource: Disk, Used: u.bytes, Free: d.free}
	case d.inodes > 0 && d.freeInodes < inodes && u.inodes-before.inodes >= inodes/4 && d.freeInodes+u.inodes >= inodes:
		return &Breach{Resource: Inodes, Used: u.inodes, Free: d.freeInodes}
	}
	return nil
}
