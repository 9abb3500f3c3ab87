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
	"yardmaster/internal/box/prepared"
	"yardmaster/internal/box/scrub"
	"yardmaster/internal/box/spool"
	"yardmaster/internal/box/worktree"
	"yardmaster/internal/id"
	"yardmaster/internal/protocol"
)

// attempt is one attempt that this box holds: a folder on disk, a spool and a
// lease, and an agent while the attempt runs.
//
//	<dir>/start.json   the order of the control plane
//	<dir>/halt.json    the command to halt, if one came
//	<dir>/spool        the events of the attempt
//	<work>/task        the checkout
//	<work>/home        the agent's home
//
// The two folders are often one: see setup.
type attempt struct {
	start protocol.Start
	token string // for the model proxy and the broker; valid nowhere else
	dir   string
	root  string // the work folder that contains it; it differs from setup.work if an earlier process began the attempt elsewhere
	work  string
	log   *slog.Logger
	spool *spool.Spool
	lease *lease

	secrets *scrub.Scrubber // never spooled
	vault   *secrets        // nil until fetchSecrets has fetched them

	asked     chan struct{}   // closed when the agent is asked to end
	announced chan struct{}   // closed when that is recorded, or is not to be
	killed    context.Context // done when the agent has to end at once
	kill      context.CancelFunc
	fenced    chan struct{} // closed when the attempt does not belong to this box any more
	ended     chan struct{} // closed when its last event is spooled
	saved     chan struct{} // closed when its last event is committed

	messages chan driver.Message
	declared outbox
	slot     bool // the attempt takes a slot; guarded by box.mu

	workspace   *workspace      // nil until there is a checkout
	environment *prepared.Entry // nil if nothing was made ready

	mu      sync.Mutex
	ending  *ending
	dropped bool // a command said to drop the work
	limited *limits.Run
	broken  *limits.Breach // the limit for which the attempt was ended
}

// messagesWaiting limits the messages that wait for one agent.
const messagesWaiting = 64

// ending is the reason why an attempt ends before its agent is done. If there are
// several, the most severe applies.
type ending struct {
	severity severity
	state    string // of run.finished
	kind     string // failure kind
	detail   string
}

type severity int

// The pressures say what becomes of the agent and of its work, the mildest first.
const (
	graceful  severity = iota // the turn is cancelled, the work is pushed to the branch
	leaseLost                 // the agent is killed; the work is pushed to a ref of its own
	haltNow                   // the agent is killed; the work is dropped
	fenced                    // the agent is killed; the events are dropped, the work is pushed to a ref of its own
)

func newAttempt(parent context.Context, on *setup, start protocol.Start, log *slog.Logger) *attempt {
	a := &attempt{
		start: start, token: id.Random(), secrets: scrub.New(),
		dir: attemptDir(on.data, start.Run, start.Attempt), root: on.work, work: attemptDir(on.work, start.Run, start.Attempt),
		log:       log.With("run", start.Run, "attempt", start.Attempt),
		asked:     make(chan struct{}),
		announced: make(chan struct{}),
		fenced:    make(chan struct{}), ended: make(chan struct{}), saved: make(chan struct{}),
		messages: make(chan driver.Message, messagesWaiting),
	}
	a.secrets.Add(a.token, start.ModelToken, start.GitToken)
	a.killed, a.kill = context.WithCancel(parent)
	return a
}

func attemptDir(dataDir, run string, attempt int) string {
	return filepath.Join(dataDir, "runs", folderName(run, attempt))
}

// folderName names an attempt's folders and its control group.
func folderName(run string, attempt int) string { return run + "." + strconv.Itoa(attempt) }

func (a *attempt) key() runKey { return runKey{a.start.Run, a.start.Attempt} }

func (a *attempt) startPath() string { return filepath.Join(a.dir, "start.json") }
func (a *attempt) haltPath() string  { return filepath.Join(a.dir, "halt.json") }
func (a *attempt) taskPath() string  { return filepath.Join(a.work, "task") }
func (a *attempt) homePath() string  { return filepath.Join(a.work, "home") }
func (a *attempt) ref() protocol.RunRef {
	return protocol.RunRef{Run: a.start.Run, Attempt: a.start.Attempt, Seq: a.spool.Last()}
}

// persist writes the order to disk before the box acts on it.
func (a *attempt) persist() error {
	// The agent of a root box is another user, who passes through these folders.
	// Their contents are for this user alone.
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

// removeFolders deletes everything that the attempt has on disk.
func (a *attempt) removeFolders() error {
	return errors.Join(worktree.RemoveTree(a.work), worktree.RemoveTree(a.dir))
}

// openSpool opens the attempt's spool, which scrubs the attempt's secrets from all
// events.
func (a *attempt) openSpool() (err error) {
	a.spool, err = spool.Open(filepath.Join(a.dir, "spool"), spool.Options{
		Logger:   a.log,
		Scrubber: a.secrets,
		OnFull:   a.spoolFull,
	})
	return err
}

// end asks the attempt to end. It may be called at any time and more than once.
func (a *attempt) end(e ending) {
	a.mu.Lock()
	first := a.ending == nil
	raised := first || e.severity > a.ending.severity
	if raised {
		a.ending = &e
	}
	a.dropped = a.dropped || e.severity == haltNow
	a.mu.Unlock()
	if !raised {
		return
	}
	a.log.Info("run is ending", "state", e.state, "kind", e.kind, "detail", e.detail)
	if first {
		close(a.asked)
	}
	if e.severity == fenced {
		close(a.fenced)
	}
	if e.severity > graceful {
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

// endingNow returns the ending that was asked for, nil if there is none.
func (a *attempt) endingNow() *ending {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ending
}

// worthSaving tells whether the work is worth saving once the attempt does not belong to
// this box any more.
func (a *attempt) worthSaving() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.dropped && a.start.Branch != ""
}

func (a *attempt) fence(detail string) {
	a.end(ending{severity: fenced, state: protocol.Lost, detail: detail})
}

// applyGrant applies the control plane's answer to a request that was sent at the
// given time.
func (a *attempt) applyGrant(sent time.Time, r protocol.Renewal) {
	if a.noteStored(r.CommittedSeq) {
		return
	}
	if !r.OK {
		a.fence("the control plane has given the attempt up")
		return
	}
	a.lease.extend(sent, time.Duration(r.LeaseMS)*time.Millisecond)
}

// noteStored notes that the control plane has stored the events up to seq, and tells
// whether these are all events of the attempt.
func (a *attempt) noteStored(seq int64) (all bool) {
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

// event spools a state event. The spool reports a failure itself.
func (a *attempt) event(kind string, data any) {
	if err := a.spool.Append(kind, data); err != nil && !errors.Is(err, spool.ErrEnded) {
		a.log.Error("event not spooled", "kind", kind, "error", err)
	}
}

// say queues a message for the agent, which takes it when its turn is over.
func (a *attempt) say(m driver.Message) error {
	select {
	case a.messages <- m:
		return nil
	default:
		return fmt.Errorf("run %s has %d messages waiting", a.start.Run, len(a.messages))
	}
}
