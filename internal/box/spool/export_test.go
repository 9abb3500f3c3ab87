package spool

// Durable is the number of the newest event that a reader may have seen.
func (s *Spool) Durable() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.durable
}

// Abandon lets go of the files as the death of the process does.
func (s *Spool) Abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.text.clean.Reset()
	s.text.scrub = nil
	_ = s.closeFiles()
}
