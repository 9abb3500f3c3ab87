package app

import (
	"context"
	"errors"

	"yardmaster/internal/codehost"
)

// objectDoor lets requests for objects of Git LFS in. It is lfs.Door.
type objectDoor struct{ a *App }

// Authorize decides about a token as for git itself.
func (d objectDoor) Authorize(ctx context.Context, user, password string, r codehost.Repo) (codehost.Access, error) {
	return d.a.gitAccess(ctx, user, password, r)
}

// Create makes a repository as its first push would.
func (d objectDoor) Create(ctx context.Context, r codehost.Repo) error {
	err := d.a.parts.repo.Create(ctx, r)
	if err == nil {
		err = d.a.host.Create(ctx, r, codehost.CreateOptions{Private: true})
	}
	if errors.Is(err, codehost.ErrExists) {
		return nil
	}
	return err
}

// Signed makes room for a transfer, whose address is its credential, in the part of an account.
func (d objectDoor) Signed(ctx context.Context, account string) error {
	return d.a.transfer(ctx, account)
}
