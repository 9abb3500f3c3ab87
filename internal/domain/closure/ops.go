package closure

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID: "account.deletion_ask", Method: "PUT", Path: "/v1/account/deletion", Group: "Account and platform operator",
			Rule: policy.Require(policy.WriteAccount).OfSession(),
			Refuses: []op.Refusal{
				{Status: 403, Slug: "session-required"}, {Status: 403, Slug: "owner-required"}, {Status: 403, Slug: "reauth-required"},
				{Status: 409, Slug: "account-needed"},
			},
			Summary: "Have the account deleted, after a time in which any owner can take it back",
			Doc: "For an owner, in a session that signed in within the last hour. All owners and admins are told; account.me " +
				"tells it as account.deletion. A second call changes nothing.",
		}, s.ask),
		op.New(op.Row{
			ID: "account.deletion_take_back", Method: "DELETE", Path: "/v1/account/deletion", Group: "Account and platform operator",
			Rule: policy.Require(policy.WriteAccount).OfSession(),
			Refuses: []op.Refusal{
				{Status: 403, Slug: "session-required"}, {Status: 403, Slug: "owner-required"}, {Status: 404, Slug: "not-found"},
				{Status: 409, Slug: "deletion-begun"},
			},
			Summary: "Take back that the account is deleted",
			Doc:     "For any owner of the account, until the deletion begins.",
		}, s.takeBack),
	}
}

// owner returns a fault unless the caller is an owner of the account.
func owner(a policy.Actor) error {
	if a.Role != policy.Owner {
		return fault.New(fault.Forbidden, "owner-required", "Only an owner can have the account deleted, or take that back.")
	}
	return nil
}

type askIn struct {
	Login string `json:"login" minLength:"1" maxLength:"39" example:"acme" doc:"login of the account, as proof that this one is meant"`
}

func (s *Service) ask(ctx context.Context, in askIn) (out Deletion, err error) {
	a := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := owner(a); err != nil {
			return err
		}
		if err := a.Present(tx.Now); err != nil {
			return err
		}
		login, err := people.AccountLogin(tx, tx.Account)
		if err != nil {
			return err
		}
		if in.Login != login {
			return fault.Field("login", "must be the login of the account that is to be deleted")
		}
		if why, err := s.Departures.May(tx, tx.Account); err != nil || why != "" {
			if err == nil {
				err = fault.Reason("account-needed", why)
			}
			return err
		}
		r := row{AccountID: tx.Account, AskedBy: a.UserID, AskedAt: tx.Now, EndsAt: tx.Now.Add(s.Wait)}
		n, err := insert.Exec(tx, r)
		if err != nil {
			return err
		}
		if n == 0 {
			d, err := Of(tx, tx.Account)
			if err == nil {
				out = *d
			}
			return err
		}
		out = *r.wire()
		s.queue.Add(tx, r.AccountID, due.Entry{At: r.EndsAt})
		return AskedEvent.Record(tx, event.Subject{ID: tx.Account}, askedData{EndsAt: r.EndsAt})
	})
	return out, err
}

// TakenBackAnswer is the answer of account.deletion_take_back.
type TakenBackAnswer struct {
	_    struct{} `doc:"What account.deletion_take_back did." schema:"AccountDeletionTakenBack"`
	Kind string   `json:"kind" enum:"taken_back" doc:"taken_back: the account stays"`
}

func (s *Service) takeBack(ctx context.Context, _ op.None) (out TakenBackAnswer, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if err := owner(policy.From(ctx)); err != nil {
			return err
		}
		taken, err := s.end(tx)
		if err != nil {
			return err
		}
		out.Kind = "taken_back"
		if !taken {
			d, err := Of(tx, tx.Account)
			if err == nil && d == nil {
				err = fault.Missing("deletion")
			}
			if err == nil {
				err = fault.Reason("deletion-begun", "The account is being deleted already: this cannot be taken back.")
			}
			return err
		}
		return nil
	})
	return out, err
}

// end takes back the deletion of tx.Account. It answers false if there is none, or it has begun.
func (s *Service) end(tx *db.Tx) (bool, error) {
	n, err := takeBack.Exec(tx, tx.Account)
	if err != nil || n == 0 {
		return false, err
	}
	s.queue.Drop(tx, tx.Account)
	return true, TakenBack.Record(tx, event.Subject{ID: tx.Account}, event.None{})
}

// RightsChanged takes back the deletions that a user has asked for and could not ask for any more, as
// long as they have not begun. It is a subscriber of event.RightsChanged.
func (s *Service) RightsChanged(tx *db.Tx, userID string) error {
	accounts, err := askedByUser.All(tx, userID)
	if err != nil {
		return err
	}
	owns := func(_ int, now policy.Role) bool { return now == policy.Owner }
	return people.Ends(tx, userID, accounts, owns, func(int) error {
		_, err := s.end(tx)
		return err
	})
}
