package builtin

import (
	"context"

	"yardmaster/internal/codehost"
)

// Can implements codehost.Forge. It is always false: the host keeps only repositories.
func (h *Host) Can(codehost.Capability) bool { return false }

// Issues implements codehost.Forge. It always fails with codehost.ErrCannot.
func (h *Host) Issues(context.Context, codehost.Repo) ([]codehost.Issue, error) {
	return nil, codehost.ErrCannot
}
