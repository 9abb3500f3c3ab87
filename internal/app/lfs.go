package app

import (
	"cmp"
	"context"

	"yardmaster/internal/codehost"
	"yardmaster/internal/fault"
)

// objectDoor lets requests for objects of Git LFS in. It is lfs.Door.
type objectDoor struct{ a *App }

// Authorize decides about a token as for git itself.
func (d objectDoor) Authorize(ctx context.Context, user, password string, r codehost.Repo) (codehost.Access, error) {
	return d.a.gitAccess(ctx, user, password, r)
}

// Signed makes room for a transfer, whose address is its credential, in the part of an account. An
// address that was given to a run ends with it.
func (d objectDoor) Signed(ctx context.Context, account, by string) error {
	if by != "" {
		if ok, err := d.a.parts.run.Transfers(ctx, by); err != nil || !ok {
			return cmp.Or(err, error(fault.New(fault.Forbidden, "", "The run that this address was given to is over.")))
		}
	}
	return d.a.transfer(ctx, account)
}
