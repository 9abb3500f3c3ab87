package ci

import "yardmaster/internal/api/op"

// Ops are none: checks are followed as a list of events, and shown with their
// pull requests.
func (s *Service) Ops() []op.Op { return nil }
