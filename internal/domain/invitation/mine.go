package invitation

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

// MyInvitation is an invitation as the person sees it whom it names by login.
type MyInvitation struct {
	_         struct{}    `doc:"An invitation that names the caller." schema:"MyInvitation"`
	ID        string      `json:"id" example:"inv_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the invitation"`
	Account   string      `json:"account" example:"acme" doc:"login of the account"`
	Role      policy.Role `json:"role" example:"member" doc:"the role that it gives"`
	CreatedAt time.Time   `json:"created_at" doc:"when it was sent"`
	ExpiresAt time.Time   `json:"expires_at" doc:"until when it can be accepted"`
}

// Joining is the answer of invitation.joining_set.
type Joining struct {
	_      struct{} `doc:"Whether accounts may make the caller a member without asking." schema:"Joining"`
	AtOnce bool     `json:"at_once" doc:"true: who names the caller's login makes them a member at once"`
}

// Mine is the answer of invitation.mine.
type Mine struct {
	_          struct{}       `doc:"What the caller may accept, and whether they are asked at all." schema:"Mine"`
	Data       []MyInvitation `json:"data" doc:"open invitations that name the caller by login, newest first"`
	NextCursor *string        `json:"next_cursor" doc:"send it back as cursor for the page after this one; null: nothing follows"`
	AtOnce     bool           `json:"at_once" doc:"true: who names the caller's login makes them a member at once"`
}

// personal returns the capabilities that a person has about invitations to them.
func (s *Service) personal() []op.Op {
	own := policy.Require(policy.ReadAccount).OfSession()
	refuses := []op.Refusal{{Status: 403, Slug: "session-required"}, {Status: 403, Slug: "sso-session"}}
	return []op.Op{
		op.New(op.Row{
			ID:      "invitation.mine",
			Method:  "GET",
			Path:    "/v1/me/invitations",
			Group:   group,
			Rule:    policy.Require(policy.ReadAccount).OfUser(),
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The open invitations that name the caller by login",
			Doc: "Those to an address are not among them: their links are in the mails. at_once tells whether accounts may " +
				"make the caller a member without asking.",
		}, s.mine),
		op.New(op.Row{
			ID:      "invitation.accept_mine",
			Method:  "POST",
			Path:    "/v1/me/invitations/{invitationId}/accept",
			Group:   group,
			Rule:    own,
			Refuses: append([]op.Refusal{{Status: 404, Slug: "not-found"}}, refuses...),
			Summary: "Accept an invitation that names the signed-in person by login",
			Doc: "For the person who is signed in, in a browser. What holds no more grants nothing and says why, as in " +
				"invitation.accept. An invitation of somebody else is 404.",
		}, s.acceptMine),
		op.New(op.Row{
			ID:      "invitation.joining_set",
			Method:  "PUT",
			Path:    "/v1/me/joining",
			Group:   group,
			Rule:    own,
			Refuses: refuses,
			Summary: "Allow accounts to make the signed-in person a member without asking, or no longer",
			Doc: "Unless it is allowed, whoever names a login in member.invite sends an invitation, and is not told whether " +
				"anybody has the login.",
		}, s.joiningSet),
	}
}

type mineIn struct{ op.PageIn }

func (s *Service) mine(ctx context.Context, in mineIn) (Mine, error) {
	out := Mine{Data: []MyInvitation{}}
	a := policy.From(ctx)
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if out.AtOnce, err = people.AddedAtOnce(tx, a.UserID); err != nil || a.Bound {
			return err // what an account's own provider vouches for is shown that account alone
		}
		rows, err := openOf.All(tx, a.UserID, tx.Micros())
		if err != nil {
			return err
		}
		all := make([]MyInvitation, len(rows))
		for i, r := range rows {
			login, err := people.AccountLogin(tx, *r.AccountID)
			if err != nil {
				return err
			}
			all[i] = MyInvitation{ID: r.ID, Account: login, Role: *r.Role, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt}
		}
		page := op.Cut(in.PageIn, all, func(m MyInvitation) []string { return op.NewestKey(m.CreatedAt, m.ID) })
		out.Data, out.NextCursor = page.Data, page.NextCursor
		return nil
	})
	return out, err
}

// unbound refuses a session that an account's own provider vouched for: its word is good
// in that account alone.
func unbound(a policy.Actor) error {
	if !a.Bound {
		return nil
	}
	return fault.New(fault.Forbidden, "sso-session", "This session was vouched for by an account's own provider. Sign in otherwise.")
}

func (s *Service) acceptMine(ctx context.Context, in idIn) (out Acceptance, err error) {
	a := policy.From(ctx)
	if err := unbound(a); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		// The user is locked before the invitation, as in Redeem.
		if _, err := people.Lock(tx, a.UserID); err != nil {
			return err
		}
		r, ok, err := byIDOf.Maybe(tx, in.InvitationID, a.UserID)
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("invitation")
		}
		out, err = s.redeem(tx, r, a.UserID, r.spent(tx))
		return err
	})
	return out, err
}

type joiningIn struct {
	AtOnce bool `json:"at_once" required:"true" doc:"true: who names the caller's login makes them a member at once"`
}

func (s *Service) joiningSet(ctx context.Context, in joiningIn) (out Joining, err error) {
	a := policy.From(ctx)
	if err := unbound(a); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out = Joining{AtOnce: in.AtOnce}
		if changed, err := people.SetAddedAtOnce(tx, a.UserID, in.AtOnce); err != nil || !changed {
			return err
		}
		return joiningEvent.Record(tx, event.Subject{ID: a.UserID}, joiningData(in))
	})
	return out, err
}
