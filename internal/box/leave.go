package box

import (
	"time"
)

// Waits after Timing.Leave when a box is stopped.
const (
	goodbyeWait = 5 * time.Second  // for the control plane to receive the goodbye
	endWait     = 10 * time.Second // for all goroutines of the box to end
)

// leave gives all work back, waits until the control plane has acknowledged it, and
// says goodbye. withdraw ends the claiming and returns when no claim can bring a
// run any more.
func (b *box) leave(withdraw func()) {
	began := time.Now()
	leave, cancel := b.cfg.clock.WithTimeout(b.life, b.cfg.Timing.Leave)
	defer cancel()
	b.mu.Lock()
	b.leaving = true
	b.mu.Unlock()
	withdraw()
	now, most := b.unreturned(), b.cfg.Timing.Leave+goodbyeWait+endWait
	b.log.Info("box is stopping and gives its runs back", "runs", now.saving+now.handing, "at_most", most, "until", began.Add(most))
	b.giveBack(graceful, "the box is stopping")
	nudge(b.beat)
	defer b.sayGoodbye()
	for said := (unreturned{}); ; {
		now := b.unreturned()
		if now.saving+now.handing == 0 {
			return
		}
		if now != said {
			b.log.Info("box waits for its runs", "to_save", now.saving, "to_hand_in", now.handing, "connected", !now.cutOff)
			said = now
		}
		select {
		case <-leave.Done():
			if b.life.Err() == nil {
				b.log.Warn("runs left for the next start", "runs", now.saving+now.handing)
			}
			return
		case <-b.freed:
		case <-time.After(b.cfg.Timing.Retry):
		}
	}
}

// unreturned counts the runs that the control plane has not got back yet.
type unreturned struct {
	saving  int  // their agent is ending, or their work is being saved
	handing int  // only their events are still to be sent
	cutOff  bool // there is no connection to send them
}

func (b *box) unreturned() (u unreturned) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u.cutOff = b.cutOff
	for _, a := range b.runs {
		if isDone(a.ended) {
			u.handing++
		} else {
			u.saving++
		}
	}
	return u
}

func (b *box) isLeaving() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leaving
}

// awaitTasks returns when all goroutines of the box have ended, or at late.
func (b *box) awaitTasks(late <-chan time.Time) {
	ended := make(chan struct{})
	go func() { b.tasks.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-late:
		b.log.Warn("box does not wait for all that it does to end: the next start takes it up")
	}
}
