package builtin

import (
	"context"

	"yardmaster/internal/codehost"
)

// Can implements codehost.Forge. The host keeps repositories and nothing else.
func (h *Host) Can(codehost.Capability) bool { return false }

// Issues implements codehost.Forge. It always fails with codehost.ErrCannot.
func (h *Host) Issues(context.Context, codehost.Repo) ([]codehost.Issue, error) {
	return nil, codehost.ErrCannot
}
