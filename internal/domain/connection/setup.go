package connection

import (
	"context"
	"encoding/json"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// setupFor is the life of a set-up that was begun. The host keeps its code for an hour
// (Registering a GitHub App from a manifest).
const setupFor = time.Hour

var errSetup = fault.New(fault.Invalid, "setup-unknown",
	"This set-up is not known: it was begun by somebody else, more than an hour ago, or is over. Begin again at /gh/setup.")

// form is a set-up that was begun, for the page that leads to the host.
type form struct {
	Name, Action, Manifest string
}

// begin begins the set-up of a host by the actor of ctx, for the actor's account.
func (s *Service) begin(ctx context.Context, address, organisation string, sw Switches) (f form, err error) {
	if f.Name, err = s.Maker.Name(address); err != nil {
		return f, err
	}
	if err := s.Maker.Judge(ctx, address); err != nil {
		return f, err
	}
	state := id.Opaque()
	if f.Action, f.Manifest, err = s.Maker.Form(address, organisation, state, sw); err != nil {
		return f, err
	}
	switches, err := json.Marshal(sw)
	if err != nil {
		return f, err
	}
	return f, s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := forget.Exec(tx, tx.Now); err != nil {
			return err
		}
		_, err := begin.Exec(tx, beginArgs{
			Hash: seal.Hash(state), Name: f.Name, Address: address, AccountID: tx.Account, UserID: policy.From(ctx).UserID,
			Switches: string(switches), ExpiresAt: tx.Now.Add(setupFor),
		})
		return err
	})
}

// complete ends a set-up: it exchanges the code of the host for the App, and stores the
// App. The set-up must be that of the actor of ctx; it is used up, since the code is
// good once. complete answers the page on which the App is installed.
func (s *Service) complete(ctx context.Context, code, state string) (install string, err error) {
	var b setupRow
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		var ok bool
		var err error
		if b, ok, err = use.Maybe(tx, seal.Hash(state)); err != nil {
			return err
		}
		if !ok || b.UserID != policy.From(ctx).UserID || !tx.Now.Before(b.ExpiresAt) {
			return errSetup
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	a, err := s.Maker.Convert(ctx, b.Address, code)
	if err != nil {
		return "", fault.New(fault.Unavailable, "setup-refused",
			"The code host did not hand out the App. Begin again at /gh/setup, and remove an App that was made there.").Because(err)
	}
	var sw Switches
	if err := json.Unmarshal([]byte(b.Switches), &sw); err != nil {
		return "", err
	}
	err = s.DB.Write(db.WithAccount(ctx, b.AccountID), func(tx *db.Tx) error {
		return s.Add(tx, b.Name, b.Address, b.AccountID, a, sw)
	})
	return s.Maker.InstallAddress(b.Address, a), err
}
