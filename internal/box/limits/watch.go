package limits

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/unixfile"
)

// Config configures a Watch.
type Config struct {
	Limits Limits
	Slots  int    // runs at once
	Name   string // of the box's control group
	Work   string // folder on the disk that runs fill
	// Reserve returns how many bytes of that disk, given its size in bytes, the box
	// needs for itself. Runs are ended before the free space falls below it.
	Reserve func(total int64) int64
	Watch   bool // make no control groups, measure everything
	Logger  *slog.Logger
}

// Watch holds the runs of a box to its limits.
type Watch struct {
	cfg    Config
	tree   *Tree  // nil: no control groups
	reason string // why there are no control groups, or not all controllers

	mu          sync.Mutex
	runs        map[*Run]bool
	added       chan struct{} // closed and replaced when a run begins to be followed
	freeing     int           // runs that were ended for their use of the disk and are still on it
	freed       chan struct{} // closed and replaced when freeing changes
	searchAfter time.Time     // until then, no search for the run that has filled the disk
	searching   bool          // that search is running
}

// New prepares to hold runs to limits. It uses the means that this machine has; it
// never fails, because all essential limits can be watched.
func New(cfg Config) *Watch {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Watch{cfg: cfg, runs: map[*Run]bool{}, added: make(chan struct{}), freed: make(chan struct{})}
	if cfg.Watch {
		w.reason = "not wanted"
		return w
	}
	var err error
	if w.tree, err = OpenTree(cfg.Name); err != nil {
		w.tree, w.reason = nil, err.Error()
	} else if w.tree.missing != nil {
		w.reason = w.tree.missing.Error()
	}
	return w
}

// Means is the way in which a limit is held.
type Means string

// The means.
const (
	ByKernel  Means = "control group"   // the kernel prevents any excess
	ByProcess Means = "each process"    // the kernel limits each process by itself
	ByWatch   Means = "watch"           // a run that exceeds the limit is ended within about a second
	NotHeld   Means = "not held"        // this machine has no means for it
	NotSet    Means = "no limit is set" // the operator has set no limit
)

// Held returns the means by which each limit is held on this machine.
func (w *Watch) Held() map[Resource]Means {
	out := map[Resource]Means{
		Processes: ByWatch, Memory: ByWatch, CPU: NotHeld, OpenFiles: ByWatch, FileBytes: ByProcess, Disk: ByWatch, Inodes: ByWatch,
	}
	if !measured {
		out[Processes], out[Memory], out[OpenFiles] = ByProcess, NotHeld, ByProcess
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

// Report logs the limits and the means by which they are held.
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
	if w.reason != "" {
		args = append(args, "why_no_control_group", w.reason)
	}
	w.cfg.Logger.Info("what one run may take", args...)
	if w.Held()[CPU] == NotHeld {
		w.cfg.Logger.Warn("the limit cpu is not held: that needs the cpu controller of control groups of version 2",
			"cpu", showShare(w.cfg.Limits.CPU))
	}
	if w.Held()[Memory] == NotHeld {
		w.cfg.Logger.Warn("the limit memory is not held: this system does not tell what the processes of a run use",
			"memory", showBytes(w.cfg.Limits.Memory))
	}
}

// Close removes the control group that New has made. No run may be left.
func (w *Watch) Close() error {
	if w.tree == nil {
		return nil
	}
	return w.tree.Close()
}

// Run is one run that is held to the limits.
type Run struct {
	w     *Watch
	name  string
	dirs  []string // its task and home folders
	group *group   // its control group; nil: none
	ctx   context.Context
	stop  context.CancelFunc
	tasks sync.WaitGroup

	mu       sync.Mutex
	pid      int  // of its first process; 0 before Follow
	private  bool // the run has temporary folders of its own
	onBreach func(*Breach)
	broken   *Breach
	freed    bool

	walking   bool
	baseline  *use           // use at the first walk; nil before it
	firstWalk chan struct{}  // closed after the first walk
	lastUse   use            // use at the last walk
	walkedAt  time.Time      // of the last walk
	walkWork  time.Duration  // processor time of the last walk
	walkTime  time.Duration  // elapsed time of the last walk
	walkDisk  unixfile.Space // the disk at the last walk
	memory    int64          // bytes in nameless memory files at the last walk
}

// Begin prepares for a run with that name, whose task and home folders are dirs.
func (w *Watch) Begin(name string, dirs ...string) (*Run, error) {
	r := &Run{w: w, name: name, dirs: dirs, firstWalk: make(chan struct{})}
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
	if d, err := unixfile.Room(w.cfg.Work); err == nil {
		r.walk(d)
		// Files that exist before the run begins do not count as its own. Begin
		// does not wait for large folders.
		select {
		case <-r.firstWalk:
		case <-time.After(firstWait):
		}
	}
	return r, nil
}

// firstWait limits how long Begin waits for the first walk through a run's folders.
const firstWait = 500 * time.Millisecond

// Group returns the folder of the run's control group, in which the first process
// has to start; nil if there is none.
func (r *Run) Group() *os.File {
	if r.group == nil {
		return nil
	}
	return r.group.folder
}

// ProcessCeiling returns the limit on all processes and threads of the run's user for where
// no control group counts those of a run; 0 means none. The kernel counts the
// processes of that user's other runs and programs as well (setrlimit(2),
// RLIMIT_NPROC), and these must not suffer from a run that forks endlessly. So the
// limit is high, and only keeps the machine alive until the watch has measured.
func (r *Run) ProcessCeiling() uint64 {
	l := r.w.cfg.Limits
	if l.Processes == 0 || r.w.tree.has("pids") {
		return 0
	}
	var read reader
	return uint64(threads(read.table()) + int64(r.w.cfg.Slots)*l.Processes + headroom)
}

// headroom is how many processes a run can start at most before the watch ends it:
// some thousands in a second for each processor.
const headroom = 2000

// Limits returns the limits of the run.
func (r *Run) Limits() Limits { return r.w.cfg.Limits }

// Follow watches pid and the processes below it until Close. private says that they
// have temporary folders of their own, in memory. Follow calls end once, on a
// goroutine of its own, when a limit is exceeded; end has to end the run.
func (r *Run) Follow(pid int, private bool, end func(*Breach)) {
	r.mu.Lock()
	r.pid, r.private, r.onBreach = pid, private, end
	r.mu.Unlock()
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	close(r.w.added)
	r.w.added = make(chan struct{})
}

// found records the first breach of the run and ends it.
func (r *Run) found(b *Breach) {
	r.mu.Lock()
	if r.broken != nil || r.onBreach == nil {
		r.mu.Unlock()
		return
	}
	r.broken = b
	end := r.onBreach
	if b.OnDisk() && !r.freed {
		r.w.free(1)
	} else {
		r.freed = true
	}
	r.mu.Unlock()
	r.w.cfg.Logger.Warn("a run has broken a limit",
		"run", r.name, "limit", b.Resource, "allowed", b.Limit, "used", b.Used)
	if r.group != nil {
		r.group.kill()
	}
	go end(b)
}

// Check measures once more what the run has taken, after its end or when the box
// finds the disk full. It returns the limit that the run has exceeded; nil if none.
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
	if b := r.w.cfg.Limits.check(u); b != nil {
		return b
	}
	if d, err := unixfile.Room(r.w.cfg.Work); err == nil && r.w.nearlyFull(d) {
		return r.filledDisk(d, u)
	}
	return nil
}

// checkWait limits the duration of the walk in Check.
const checkWait = 5 * time.Second

// Close ends the remaining processes of the run and stops watching it.
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

// Freed notes that the run has no files on the disk any more.
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

// Settle waits until no run that was ended for its use of the disk has files on it,
// and tells whether there was such a run.
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

// wait waits until there is a run to follow, or until ctx ends.
func (w *Watch) wait(ctx context.Context) {
	w.mu.Lock()
	added := w.added
	w.mu.Unlock()
	if len(w.followed()) > 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-added:
	}
}

// followed lists the runs that have processes and have exceeded no limit.
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
