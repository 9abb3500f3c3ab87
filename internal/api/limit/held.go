package limit

import "sync"

// Quota is the most of what one bucket may hold at once.
type Quota struct {
	Bucket
	Most int
}

// Held counts what is held at once, such as open streams. The zero value holds nothing. Safe
// for concurrent use.
type Held struct {
	mu     sync.Mutex
	counts map[Bucket]int
}

// Take takes one place of each bucket, or none if one of them is full: then full is the
// first such quota. The caller gives the places back with leave, once.
func (h *Held) Take(all ...Quota) (leave func(), full *Quota) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range all {
		if h.counts[all[i].Bucket] >= all[i].Most {
			return nil, &all[i]
		}
	}
	if h.counts == nil {
		h.counts = map[Bucket]int{}
	}
	for _, s := range all {
		h.counts[s.Bucket]++
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, s := range all {
			if h.counts[s.Bucket]--; h.counts[s.Bucket] == 0 {
				delete(h.counts, s.Bucket)
			}
		}
	}, nil
}
