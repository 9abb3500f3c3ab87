package run

import "sync"

// waiting are the claims of boxes that no task has come for yet.
type waiting struct {
	mu sync.Mutex
	of map[string]map[chan struct{}]bool // by box id
}

// claimsWaiting is how many claims of one box may wait. A box has one; some that
// it has given up may still be here. Each looks at the queue whenever that changes.
const claimsWaiting = 4

// add notes a claim, and dismisses those before it when there are many; the channel is closed when nobody waits for its answer.
func (w *waiting) add(boxID string) (dismissed <-chan struct{}, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]map[chan struct{}]bool{}
	}
	if len(w.of[boxID]) >= claimsWaiting {
		w.dismiss(boxID)
	}
	if w.of[boxID] == nil {
		w.of[boxID] = map[chan struct{}]bool{}
	}
	c := make(chan struct{})
	w.of[boxID][c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.of[boxID], c); len(w.of[boxID]) == 0 {
			delete(w.of, boxID)
		}
	}
}

// Dismiss ends the claims of a box that wait here: it has connected anew, or is
// going. A task that came now would be given to nobody.
func (s *Service) Dismiss(boxID string) {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	s.waiting.dismiss(boxID)
}

// dismiss ends the claims of a box. The caller holds mu.
func (w *waiting) dismiss(boxID string) {
	for c := range w.of[boxID] {
		close(c)
	}
	delete(w.of, boxID)
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
