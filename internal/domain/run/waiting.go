package run

import "sync"

// waiting are the claims of boxes that no task has come for yet.
type waiting struct {
	mu sync.Mutex
	of map[string]map[chan struct{}]bool // by box id
}

// add notes a claim; the channel is closed when nobody waits for its answer.
func (w *waiting) add(boxID string) (dismissed <-chan struct{}, done func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]map[chan struct{}]bool{}
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
	for c := range s.waiting.of[boxID] {
		close(c)
	}
	delete(s.waiting.of, boxID)
}

func isDone(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
