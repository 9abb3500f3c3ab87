package signin

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
	"yardmaster/internal/web"
)

// linkLife is how long an address that signs in is good for.
const linkLife = time.Hour

// Link returns the path of a page whose button signs a user in to an account, once and
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
	Token  string `json:"token" maxLength:"200" doc:"the last segment of the address"`
	Accept string `header:"Accept"`
}

var errLinkGone = fault.New(fault.Gone, "", "This address has been used, or is too old: it is good once, for an hour.")

// showLink shows the button of an address that Link made. It changes nothing: programs
// open addresses, too. Who is signed in as that user already needs no button.
func (s *Service) showLink(ctx context.Context, in linkIn) (op.Reply, error) {
	var l linkRow
	var who person
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		var ok bool
		if l, ok, err = findLink.Maybe(tx, seal.Hash(in.Token), tx.Micros()); err != nil {
			return err
		}
		if !ok {
			return errLinkGone
		}
		who.Login, who.Account, _, err = people.Names(tx, l.UserID, l.AccountID)
		return err
	})
	if err != nil {
		return linkFailed(ctx, in, err)
	}
	if a := policy.From(ctx); a.Credential == policy.Session && a.UserID == l.UserID {
		return web.GoTo(Local(l.ReturnTo)), nil
	}
	return render(ctx, 200, linkPage, struct {
		person
		Token string
	}{who, in.Token})
}

// byLink opens a session for who has an address that Link made, and uses the address up.
func (s *Service) byLink(ctx context.Context, in linkIn) (op.Reply, error) {
	var cookie, to string
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		l, ok, err := takeLink.Maybe(tx, seal.Hash(in.Token), tx.Micros())
		if err != nil {
			return err
		}
		if !ok {
			return errLinkGone
		}
		if cookie, err = s.Open(tx, l.UserID, l.AccountID, op.RequestOf(ctx).Secure); err != nil {
			return err
		}
		to = l.ReturnTo
		return recordSignIn(tx, l.UserID, l.AccountID, "link", false)
	})
	if err != nil {
		return linkFailed(ctx, in, err)
	}
	return web.GoTo(Local(to), cookie), nil
}

// linkFailed tells a person of an address that is good no more, and where to sign in.
func linkFailed(ctx context.Context, in linkIn, err error) (op.Reply, error) {
	if fault.IsKind(err, fault.Gone) && op.PrefersPage(in.Accept) {
		return render(ctx, fault.Gone.Status(), usedPage, nil)
	}
	return op.Reply{}, err
}
