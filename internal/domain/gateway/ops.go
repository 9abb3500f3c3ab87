package gateway

import "yardmaster/internal/api/op"

// Ops is empty: agents call the HTTP gateway, which is no capability.
func (s *Service) Ops() []op.Op { return nil }
