package app

import (
	"context"

	"yardmaster/internal/codehost"
)

// objectDoor lets requests for objects of Git LFS in. It is lfs.Door.
type objectDoor struct{ a *App }

// Authorize decides about a token as for git itself.
func (d objectDoor) Authorize(ctx context.Context, user, password string, r codehost.Repo) (codehost.Access, error) {
	return d.a.gitAccess(ctx, user, password, r)
}

// Signed makes room for a transfer, whose address is its credential, in the part of an account.
func (d objectDoor) Signed(ctx context.Context, account string) error {
	return d.a.transfer(ctx, account)
}
