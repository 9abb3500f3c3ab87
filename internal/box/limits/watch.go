package limits

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// Config is what a Watch needs.
type Config struct {
	Limits Limits
	Slots  int    // runs at once
	Name   string // of the box's control group
	Work   string // folder on the disk that runs fill
	// Reserve is how much of that disk, of so many bytes in all, the box needs
	// for itself. Runs are ended before it is touched.
	Reserve func(total int64) int64
	Watch   bool // make no control groups, watch everything
	Logger  *slog.Logger
}

// Watch holds the runs of a box to its limits.
type Watch struct {
	cfg  Config
	tree *Tree  // nil: no control groups
	why  string // there are none, or not all

	mu       sync.Mutex
	runs     map[*Run]bool
	news     chan struct{} // closed and replaced when there is one more
	freeing  int           // runs ended for the room they take, which is not free yet
	freed    chan struct{} // closed and replaced when that changes
	relieved time.Time     // until when nobody looks again for who has filled the disk
	relieve  bool          // that is being done
}

// New prepares to hold runs to limits. What it finds on this machine decides
// how; it never fails, since all that matters can be watched.
func New(cfg Config) *Watch {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Watch{cfg: cfg, runs: map[*Run]bool{}, news: make(chan struct{}), freed: make(chan struct{})}
	if cfg.Watch {
		w.why = "not wanted"
		return w
	}
	var err error
	if w.tree, err = OpenTree(cfg.Name); err != nil {
		w.tree, w.why = nil, err.Error()
	} else if w.tree.missing != nil {
		w.why = w.tree.missing.Error()
	}
	return w
}

// Means is how a limit is held.
type Means string

// The means.
const (
	ByKernel  Means = "control group"   // nothing can get beyond it
	ByProcess Means = "each process"    // the kernel refuses a single process more
	ByWatch   Means = "watch"           // whoever is beyond it is ended within about a second
	NotHeld   Means = "not held"        // there is no means on this machine
	NotSet    Means = "no limit is set" // the operator's wish
)

// Held tells how each limit is held on this machine.
func (w *Watch) Held() map[Resource]Means {
	out := map[Resource]Means{
		Processes: ByWatch, Memory: ByWatch, CPU: NotHeld, OpenFiles: ByWatch, FileBytes: ByProcess, Disk: ByWatch, Inodes: ByWatch,
	}
	for controller, r := range map[string]Resource{"pids": Processes, "memory": Memory, "cpu": CPU} {
		if w.tree.has(controller) {
			out[r] = ByKernel
		}
	}
	for r := range out {
		if w.cfg.Limits.of(r) == 0 {
			out[r] = NotSet
		}
	}
	return out
}

// Report logs the limits and how they are held.
func (w *Watch) Report() {
	by := map[Means][]string{}
	for r, m := range w.Held() {
		by[m] = append(by[m], string(r))
	}
	args := []any{"limits", w.cfg.Limits.String()}
	for _, m := range slices.Sorted(maps.Keys(by)) {
		if m != NotSet {
			args = append(args, string(m), slices.Sorted(slices.Values(by[m])))
		}
	}
	if w.why != "" {
		args = append(args, "why_no_control_group", w.why)
	}
	w.cfg.Logger.Info("what one run may take", args...)
	if w.Held()[CPU] == NotHeld {
		w.cfg.Logger.Warn("the limit cpu is not held: that needs the cpu controller of control groups of version 2", "cpu", showShare(w.cfg.Limits.CPU))
	}
}

// Close removes what New made. There must be no runs.
func (w *Watch) Close() error {
	if w.tree == nil {
		return nil
	}
	return w.tree.Close()
}

// Run is one run held to the limits.
type Run struct {
	w     *Watch
	name  string
	dirs  []string // its task and home folder
	group *group   // nil: none
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu      sync.Mutex
	pid     int  // of its first process; 0 before Follow
	private bool // it has temporary folders of its own
	end     func(*Breach)
	broken  *Breach
	freed   bool

	walking bool
	began   *use          // nil before the first walk
	first   chan struct{} // closed after it
	last    use
	at      time.Time     // of the last walk
	worked  time.Duration // the processor, for it
	took    time.Duration // it, with waiting for the disk
	then    disk          // the disk then
	memory  int64         // in files without a name, then
}

// Begin prepares for a run of that name, whose task and home folders are dirs.
func (w *Watch) Begin(name string, dirs ...string) (*Run, error) {
	r := &Run{w: w, name: name, dirs: dirs, first: make(chan struct{})}
	if w.tree != nil {
		var err error
		if r.group, err = w.tree.group(name, w.cfg.Limits); err != nil {
			return nil, err
		}
	}
	r.ctx, r.stop = context.WithCancel(context.Background())
	w.mu.Lock()
	w.runs[r] = true
	w.mu.Unlock()
	if d, err := statDisk(w.cfg.Work); err == nil {
		r.walk(d)
		// What is there before the run begins is not its doing. Large folders are
		// not waited for.
		select {
		case <-r.first:
		case <-time.After(firstWait):
		}
	}
	return r, nil
}

// firstWait bounds how long a run waits for the first walk through its folders.
const firstWait = 500 * time.Millisecond

// Group is the folder of the run's control group, to start its first process
// in; nil if there is none.
func (r *Run) Group() *os.File {
	if r.group == nil {
		return nil
	}
	return r.group.folder
}

// Fence is how many processes and threads the kernel is to let the run's user
// have in all, where no control group counts those of a run. It counts those of
// the user's other runs and programs as well (setrlimit(2), RLIMIT_NPROC), which
// must not suffer from one that forks without end: so it is wide, and only keeps
// the machine alive until the watch has looked. 0 is no fence.
func (r *Run) Fence() uint64 {
	l := r.w.cfg.Limits
	if l.Processes == 0 || r.w.tree.has("pids") {
		return 0
	}
	var read reader
	return uint64(threads(read.table()) + int64(r.w.cfg.Slots)*l.Processes + headroom)
}

// headroom is how many processes a run can start, at the most, before the watch
// has ended it: some thousands in a second for each processor.
const headroom = 2000

// Limits are those of the run.
func (r *Run) Limits() Limits { return r.w.cfg.Limits }

// Follow watches the processes below pid, that one included, until Close.
// private tells that they have temporary folders of their own, in memory. end is
// called once, on a goroutine of its own, when a limit is broken: it ends the run.
func (r *Run) Follow(pid int, private bool, end func(*Breach)) {
	r.mu.Lock()
	r.pid, r.private, r.end = pid, private, end
	r.mu.Unlock()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	close(r.w.news)
	r.w.news = make(chan struct{})
}

// found notes what the run has broken, the first time, and ends it.
func (r *Run) found(b *Breach) {
	r.mu.Lock()
	if r.broken != nil || r.end == nil {
		r.mu.Unlock()
		return
	}
	r.broken = b
	end := r.end
	if b.OnDisk() && !r.freed {
		r.w.free(1)
	} else {
		r.freed = true
	}
	r.mu.Unlock()
	r.w.cfg.Logger.Warn("a run has broken a limit", "run", r.name, "limit", b.Resource, "allowed", b.Limit, "used", b.Used)
	if r.group != nil {
		r.group.kill()
	}
	go end(b)
}

// Check looks once more at what the run has taken, after its end or when the
// box finds no room, and answers the limit that it has broken; nil if none.
func (r *Run) Check() *Breach {
	r.mu.Lock()
	broken := r.broken
	r.mu.Unlock()
	if broken != nil {
		return broken
	}
	if r.group != nil {
		if b := r.group.breach(r.w.cfg.Limits); b != nil {
			return b
		}
	}
	ctx, cancel := context.WithTimeout(r.ctx, checkWait)
	defer cancel()
	u, _ := r.count(ctx)
	if b := r.w.cfg.Limits.judge(u); b != nil {
		return b
	}
	if d, err := statDisk(r.w.cfg.Work); err == nil && r.w.short(d) {
		return r.blame(d, u)
	}
	return nil
}

// checkWait bounds the last look at a run's folders.
const checkWait = 5 * time.Second

// Close ends what is left of the run's processes and stops watching it.
func (r *Run) Close() error {
	r.w.mu.Lock()
	delete(r.w.runs, r)
	r.w.mu.Unlock()
	r.stop()
	var err error
	if r.group != nil {
		err = r.group.close()
	}
	r.tasks.Wait()
	return err
}

// Freed says that nothing of the run is on the disk any more.
func (r *Run) Freed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.freed && r.broken != nil {
		r.w.free(-1)
	}
	r.freed = true
}

func (w *Watch) free(change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.freeing += change
	close(w.freed)
	w.freed = make(chan struct{})
}

// Settle waits until no run that was ended for the room it takes holds it any
// more, and tells whether there was one.
func (w *Watch) Settle(ctx context.Context) (waited bool) {
	for {
		w.mu.Lock()
		n, freed := w.freeing, w.freed
		w.mu.Unlock()
		if n == 0 || ctx.Err() != nil {
			return waited
		}
		waited = true
		select {
		case <-freed:
		case <-ctx.Done():
		}
	}
}

// wait waits until there is a run to follow, or ctx ends.
func (w *Watch) wait(ctx context.Context) {
	w.mu.Lock()
	news := w.news
	w.mu.Unlock()
	if len(w.followed()) > 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-news:
	}
}

// followed are the runs whose processes run.
func (w *Watch) followed() (out []*Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.runs {
		r.mu.Lock()
		if r.pid != 0 && r.broken == nil {
			out = append(out, r)
		}
		r.mu.Unlock()
	}
	return out
}
