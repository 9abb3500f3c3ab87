package box

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"yardmaster/internal/box/driver"
	"yardmaster/internal/box/limits"
	"yardmaster/internal/box/scrub"
	"yardmaster/internal/box/spool"
	"yardmaster/internal/box/worktree"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// attempt is one attempt that this box holds: a folder on disk, a spool, a
// lease, and while it runs an agent.
//
//	<dir>/start.json   what the control plane said to do
//	<dir>/halt.json    that it said to stop, and how
//	<dir>/spool        its events
//	<work>/task        the checkout
//	<work>/home        the agent's home
//
// The two folders are often one: see setup.
type attempt struct {
	start protocol.Start
	token string // for the model proxy; worth nothing anywhere else
	dir   string
	root  string // the work folder that it is in: another one, if an earlier process began it there
	work  string
	log   *slog.Logger
	spool *spool.Spool
	lease *lease

	secrets *scrub.Scrubber // never spooled
	vault   *secrets        // nil until they are had

	asked  chan struct{}   // closed when the agent is to come to an end
	killed context.Context // done when it is to end at once
	kill   context.CancelFunc
	fenced chan struct{} // closed when the attempt is no longer this box's
	ended  chan struct{} // closed when its last event is spooled
	saved  chan struct{} // closed when its last event is committed

	messages chan driver.Message
	declared outbox
	slot     bool // it takes one; guarded by box.mu

	workspace *workspace // nil until there is a checkout

	mu      sync.Mutex
	ending  *ending
	dropped bool // somebody said that the work is not wanted
	limited *limits.Run
	broken  *limits.Breach // the limit that it was ended for
}

// messagesWaiting is how many messages one run may have waiting.
const messagesWaiting = 64

// ending is why an attempt ends before its agent is done. Of several, the most
// pressing holds.
type ending struct {
	press  pressure
	state  string // of run.finished
	kind   string // failure kind
	detail string
}

type pressure int

// What becomes of the agent and of its work, from the mildest on.
const (
	graceful  pressure = iota // the turn is cancelled, the work is pushed to the branch
	leaseLost                 // killed; the work is pushed where nobody else pushes
	haltNow                   // killed; the work is dropped
	fenced                    // killed; the events are dropped, the work is pushed where nobody else pushes
)

func newAttempt(parent context.Context, on *setup, start protocol.Start, log *slog.Logger) *attempt {
	a := &attempt{
		start: start, token: id.Random(), secrets: scrub.New(),
		dir: attemptDir(on.data, start.Run, start.Attempt), root: on.work, work: attemptDir(on.work, start.Run, start.Attempt),
		log:    log.With("run", start.Run, "attempt", start.Attempt),
		asked:  make(chan struct{}),
		fenced: make(chan struct{}), ended: make(chan struct{}), saved: make(chan struct{}),
		messages: make(chan driver.Message, messagesWaiting),
	}
	a.secrets.Add(a.token, start.ModelToken, start.GitToken)
	a.killed, a.kill = context.WithCancel(parent)
	return a
}

func attemptDir(dataDir, run string, attempt int) string {
	return filepath.Join(dataDir, "runs", folderName(run, attempt))
}

// folderName is what an attempt is called on the disk and among control groups.
func folderName(run string, attempt int) string { return run + "." + strconv.Itoa(attempt) }

func (a *attempt) key() runKey { return runKey{a.start.Run, a.start.Attempt} }

func (a *attempt) startPath() string { return filepath.Join(a.dir, "start.json") }
func (a *attempt) haltPath() string  { return filepath.Join(a.dir, "halt.json") }
func (a *attempt) taskPath() string  { return filepath.Join(a.work, "task") }
func (a *attempt) homePath() string  { return filepath.Join(a.work, "home") }
func (a *attempt) ref() protocol.RunRef {
	return protocol.RunRef{Run: a.start.Run, Attempt: a.start.Attempt, Seq: a.spool.Last()}
}

// persist writes down what is to be done, before anything is done.
func (a *attempt) persist() error {
	// Folders are passed through by the agent of a root box, who is another
	// user; what is in them is for this one alone.
	for _, dir := range []string{a.dir, a.work} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return fmt.Errorf("keep the run: %w", err)
		}
	}
	if err := errors.Join(writeJSON(a.startPath(), a.start), syncDir(filepath.Dir(a.dir))); err != nil {
		return fmt.Errorf("keep the run: %w", err)
	}
	return nil
}

// removeFolders deletes all that is on disk of the attempt.
func (a *attempt) removeFolders() error {
	return errors.Join(worktree.RemoveTree(a.work), worktree.RemoveTree(a.dir))
}

// openSpool opens the attempt's spool, from which its secrets are scrubbed.
func (a *attempt) openSpool() (err error) {
	a.spool, err = spool.Open(filepath.Join(a.dir, "spool"), spool.Options{
		Logger:   a.log,
		Scrubber: a.secrets,
		OnFull:   a.full,
	})
	return err
}

// end asks for an end. It may be called at any time and more than once.
func (a *attempt) end(e ending) {
	a.mu.Lock()
	first := a.ending == nil
	raised := first || e.press > a.ending.press
	if raised {
		a.ending = &e
	}
	a.dropped = a.dropped || e.press == haltNow
	a.mu.Unlock()
	if !raised {
		return
	}
	a.log.Info("run is ending", "state", e.state, "kind", e.kind, "detail", e.detail)
	if first {
		close(a.asked)
	}
	if e.press == fenced {
		close(a.fenced)
	}
	if e.press > graceful {
		a.kill()
	}
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// endingNow is the ending that was asked for, nil if none was.
func (a *attempt) endingNow() *ending {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending
}

// wanted tells whether the work is worth saving when the attempt is not this
// box's any more.
func (a *attempt) wanted() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.dropped && a.start.Branch != ""
}

func (a *attempt) fence(detail string) {
	a.end(ending{press: fenced, state: protocol.Lost, detail: detail})
}

// granted takes the control plane's answer to a request that was sent at the
// given time.
func (a *attempt) granted(sent time.Time, r protocol.Renewal) {
	if a.stored(r.CommittedSeq) {
		return
	}
	if !r.OK {
		a.fence("the control plane has given the attempt up")
		return
	}
	a.lease.extend(sent, time.Duration(r.LeaseMS)*time.Millisecond)
}

// stored notes that the control plane has the events up to seq for good, and
// tells whether that is all there will be.
func (a *attempt) stored(seq int64) (all bool) {
	if err := a.spool.Trim(seq); err != nil {
		a.log.Warn("spool not trimmed", "error", err)
	}
	if seq < a.spool.Last() || !a.spool.Ended() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !isDone(a.saved) {
		close(a.saved)
	}
	return true
}

// event spools a state event. A failure is the spool's to report.
func (a *attempt) event(kind string, data any) {
	if err := a.spool.Append(kind, data); err != nil && !errors.Is(err, spool.ErrEnded) {
		a.log.Error("event not spooled", "kind", kind, "error", err)
	}
}

// say leaves a message for the agent, which takes it when its turn is over.
func (a *attempt) say(m driver.Message) error {
	select {
	case a.messages <- m:
		return nil
	default:
		return fmt.Errorf("run %s has %d messages waiting", a.start.Run, len(a.messages))
	}
}
