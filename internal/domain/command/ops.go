package command

import "yardmaster/internal/api/op"

// Ops lists the capabilities of this package: none.
func (*Service) Ops() []op.Op { return nil }
