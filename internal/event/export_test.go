package event

// Topics returns how many topics a hub keeps.
func Topics(h *Hub) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting) + len(h.older)
}
