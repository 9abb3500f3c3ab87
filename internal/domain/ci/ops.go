package ci

import "yardmaster/internal/api/op"

// Ops lists no capability: clients follow checks as a topic of events, and see them
// with their pull requests.
func (s *Service) Ops() []op.Op { return nil }
