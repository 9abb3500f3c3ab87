package run

import "sync"

// waiting holds the claims of boxes that wait for a task.
type waiting struct {
	mu     sync.Mutex
	claims map[string]map[chan struct{}]bool // by box id
}

// claimsWaiting is how many claims of one box may wait. A box has one; claims
// that it has given up may still be here. Each reads the queue whenever that
// changes.
const claimsWaiting = 4

// add notes a claim of a box, and dismisses the box's others when there are
// many. dismissed is closed when the box no longer waits for the answer. The
// caller calls done when the claim is answered.
func (w *waiting) add(boxID string) (dismissed <-chan struct{}, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.claims == nil {
		w.claims = map[string]map[chan struct{}]bool{}
	}
	if len(w.claims[boxID]) >= claimsWaiting {
		w.dismiss(boxID)
	}
	if w.claims[boxID] == nil {
		w.claims[boxID] = map[chan struct{}]bool{}
	}
	c := make(chan struct{})
	w.claims[boxID][c] = true
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.claims[boxID], c); len(w.claims[boxID]) == 0 {
			delete(w.claims, boxID)
		}
	}
}

// Dismiss ends the claims of a box that wait on this node: the box has
// connected anew, or stops. A run that one of them got now would be lost.
func (s *Service) Dismiss(boxID string) {
	s.waiting.mu.Lock()
	defer s.waiting.mu.Unlock()
	s.waiting.dismiss(boxID)
}

// dismiss ends the claims of a box. The caller holds mu.
func (w *waiting) dismiss(boxID string) {
	for c := range w.claims[boxID] {
		close(c)
	}
	delete(w.claims, boxID)
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
