package invitation

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

const group = "Organisation members, invitations, SSO"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{ID: "invitation.accept", Method: "POST", Path: "/v1/invitations/accept", Group: group, Rule: policy.Require(policy.ReadAccount).OfUser(),
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary: "Redeem an invitation for the signed-in user"}, s.accept),
	}
}

type acceptIn struct {
	Token string `json:"token" minLength:"1" maxLength:"200" doc:"the last segment of the invitation's link"`
}

func (s *Service) accept(ctx context.Context, in acceptIn) (out Acceptance, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		r, ok, err := byHash.Maybe(tx, seal.Hash(in.Token))
		if err != nil {
			return err
		}
		if !ok {
			return fault.Missing("invitation")
		}
		out = Acceptance{InvitationID: r.ID, Kind: r.Kind}
		user := policy.From(ctx).UserID
		who, err := person.One(tx, user)
		if err != nil {
			return err
		}
		if why := r.refusal(tx, who.Email); why != "" {
			out.Reason = &why
			return nil
		}
		if err := s.grant(tx, r, user, &out); err != nil || !out.Granted {
			return err
		}
		if _, err := accept.Exec(tx, r.ID, tx.Micros(), user); err != nil {
			return err
		}
		change := event.Change{Kind: "invitation.accepted", Object: r.ID, Data: map[string]any{"kind": r.Kind, "user_id": user, "role": r.Role}}
		if r.AccountID != nil {
			change.Account = *r.AccountID
		}
		return event.Record(tx, change)
	})
	return out, err
}

// refusal says why an invitation grants the owner of an address nothing, or "".
func (r row) refusal(tx *db.Tx, email string) string {
	switch status := r.status(tx.Now); {
	case Address(email) != r.Email:
		return "other_address"
	case status == Accepted:
		return "already_accepted"
	case status != Pending:
		return status
	}
	return ""
}

// grant does what the invitation is for, unless it was done before.
func (s *Service) grant(tx *db.Tx, r row, user string, out *Acceptance) (err error) {
	already := "already_approved"
	if r.Kind == Platform {
		out.Granted, err = s.Approve(tx, user)
	} else {
		already = "already_member"
		out.Granted, err = Join(tx, *r.AccountID, user, *r.Role)
	}
	switch {
	case err != nil:
		return err
	case !out.Granted:
		out.Reason = &already
	case r.Kind == OrgMember:
		login, err := tenant.One(tx, *r.AccountID)
		out.Account = &JoinedTenant{*r.AccountID, login, *r.Role}
		return err
	}
	return nil
}
