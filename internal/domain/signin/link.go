package signin

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/seal"
	"yardmaster/internal/web"
)

// linkLife is how long an address that signs in is good for.
const linkLife = time.Hour

// Link returns the path of an address that signs a user in to an account, once and
// within an hour, and leads to an address of this server. No capability gives one: it
// is for a program that made the user itself, and prints it to its own terminal.
func (s *Service) Link(ctx context.Context, userID, accountID, returnTo string) (path string, err error) {
	token := id.Secret(id.SignIn)
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := purgeLinks.Exec(tx, tx.Micros()); err != nil {
			return err
		}
		_, err := insertLink.Exec(tx, insertLinkArgs{
			Hash: seal.Hash(token), UserID: userID, AccountID: accountID, ReturnTo: Local(returnTo),
			ExpiresAt: db.Micros(tx.Now.Add(linkLife)),
		})
		return err
	})
	return "/auth/link/" + token, err
}

type linkIn struct {
	Token string `json:"token" maxLength:"200" doc:"the last segment of the address"`
}

// byLink opens a session for who has an address that Link made.
func (s *Service) byLink(ctx context.Context, in linkIn) (op.Reply, error) {
	var cookie, to string
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		l, ok, err := takeLink.Maybe(tx, seal.Hash(in.Token), tx.Micros())
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.Gone, "", "This address has been used, or is too old. Sign in in another way.")
		}
		if cookie, err = s.Open(tx, l.UserID, l.AccountID, op.RequestOf(ctx).Secure); err != nil {
			return err
		}
		to = l.ReturnTo
		return recordSignIn(tx, l.UserID, l.AccountID, "link", false)
	})
	if err != nil {
		return op.Reply{}, err
	}
	return web.GoTo(Local(to), cookie), nil
}
