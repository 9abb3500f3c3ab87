package invitation

import (
	"context"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

const group = "Organisation members, invitations, SSO"

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	accepted := op.Refusal{Status: 409, Slug: "already_accepted"}
	return append(s.personal(), []op.Op{
		op.New(op.Row{
			ID:      "invitation.accept",
			Method:  "POST",
			Path:    "/v1/invitations/accept",
			Group:   group,
			Rule:    policy.Require(policy.ReadAccount).OfUser(),
			Form:    true,
			Refuses: []op.Refusal{{Status: 404, Slug: "not-found"}, {Status: 403, Slug: "sso-session"}},
			Summary: "Redeem an invitation for the signed-in user",
			Doc: "Grants what the invitation is for if it names the caller, or the caller's address, and still holds. Otherwise it " +
				"grants nothing and says why: granted false is no error. A token that does not exist is 404.",
		}, s.accept),
		op.New(op.Row{
			ID:      "invitation.page",
			Method:  "GET",
			Path:    "/invite/{token}",
			Group:   group,
			Rule:    policy.Public(),
			NoStore: true,
			Summary: "What an invitation's link opens: whom it is for, and the button that accepts it",
			Doc:     "Tells a person who is not signed in where to go first. Opening it accepts nothing.",
		}, s.page),
		op.New(op.Row{
			ID:         "invitation.confirm",
			Method:     "POST",
			Path:       "/invite/{token}",
			Group:      group,
			Rule:       policy.Public(),
			Form:       true,
			NoStore:    true,
			PerAddress: 30,
			Also:       []int{303},
			Refuses:    []op.Refusal{{Status: 404, Slug: "not-found"}},
			Summary:    "The button of that page: accept as who is signed in",
			Doc:        "Accepts for whoever is signed in, and leads on; what it grants is as in invitation.accept.",
		}, s.confirm),
		op.New(op.Row{
			ID:     "invitation.list",
			Method: "GET",
			Path:   "/v1/admin/invitations",
			Group:  group,
			Rule:   policy.Require(policy.AdminReadUsers),
			Paging: &op.Paging{
				Default: 25,
				Max:     100,
				Q:       true,
				Filters: map[string][]string{"status": {Pending, Accepted, Revoked, Expired, "all"}},
			},
			Summary: "The platform's invitations, newest first; q searches the address",
			Doc:     "Without a filter those of every status are listed. The look is written to the platform's audit log.",
		}, s.list),
		op.New(op.Row{
			ID:      "invitation.revoke",
			Method:  "POST",
			Path:    "/v1/admin/invitations/{invitationId}/revoke",
			Group:   group,
			Rule:    policy.Require(policy.AdminUsers),
			Refuses: []op.Refusal{accepted},
			Summary: "Withdraw a platform invitation; again is no error",
			Doc:     "The link stops working. One that was accepted is refused; revoking again answers revoked false.",
		}, s.revoke),
		op.New(op.Row{
			ID:      "invitation.resend",
			Method:  "POST",
			Path:    "/v1/admin/invitations/{invitationId}/resend",
			Group:   group,
			Rule:    policy.Require(policy.AdminUsers),
			NoStore: true,
			Refuses: []op.Refusal{accepted, {Status: 409, Slug: "invitation_revoked"}},
			Summary: "Mail a platform invitation again with a new link, shown once; the old one dies",
			Doc:     "Starts its 14 days anew. One that was accepted or revoked is refused.",
		}, s.resend),
	}...)
}

type acceptIn struct {
	Token string `json:"token" minLength:"1" maxLength:"200" example:"dev_inv_example" doc:"the last segment of the invitation's link"`
}

func (s *Service) accept(ctx context.Context, in acceptIn) (out Acceptance, err error) {
	if err := unbound(policy.From(ctx)); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out, err = s.Redeem(tx, in.Token, policy.From(ctx).UserID)
		return err
	})
	return out, err
}

// Redeem accepts an invitation for a user, or returns in Reason why it gives nothing.
// It returns fault.NotFound if there is no such token.
func (s *Service) Redeem(tx *db.Tx, token, user string) (out Acceptance, err error) {
	// The user is locked before the invitation, as everywhere, so that no two
	// transactions block each other.
	email, err := people.Lock(tx, user)
	if err != nil {
		return out, err
	}
	r, ok, err := byHash.Maybe(tx, seal.Hash(token))
	if err != nil {
		return out, err
	}
	if !ok {
		return out, fault.Missing("invitation")
	}
	return s.redeem(tx, r, user, r.refusal(tx, user, email))
}

// redeem grants a user what an invitation gives, unless there is a reason against it.
func (s *Service) redeem(tx *db.Tx, r row, user, why string) (out Acceptance, err error) {
	out = Acceptance{InvitationID: r.ID, Kind: r.Kind}
	if why != "" {
		out.Reason = &why
		return out, nil
	}
	if err := s.grant(tx, r, user, &out); err != nil || !out.Granted {
		return out, err
	}
	if _, err := accept.Exec(tx, r.ID, tx.Micros(), user); err != nil {
		return out, err
	}
	about := event.Subject{ID: r.ID}
	if r.AccountID != nil {
		about.Account = *r.AccountID
	}
	return out, acceptedEvent.Record(tx, about, acceptedData{Kind: r.Kind, UserID: user, Role: r.Role})
}

// refusal returns the reason why an invitation gives nothing to a user with an
// address, or "".
func (r row) refusal(tx *db.Tx, user, email string) string {
	if !r.isFor(user, email) {
		return "other_address"
	}
	return r.spent(tx)
}

// isFor tells whether an invitation is for a user, or for the user's address.
func (r row) isFor(user, email string) bool {
	if r.Login != "" {
		return r.UserID != nil && *r.UserID == user
	}
	return Address(email) == r.Email
}

// spent returns the reason why an invitation gives nothing to anybody any more, or "".
func (r row) spent(tx *db.Tx) string {
	switch status := r.status(tx.Now); status {
	case Pending:
		return ""
	case Accepted:
		return "already_accepted"
	default:
		return status
	}
}

// grant gives the user the place in the account or the access to the platform, unless
// they have it already.
func (s *Service) grant(tx *db.Tx, r row, user string, out *Acceptance) (err error) {
	already := "already_approved"
	if r.Kind == Platform {
		out.Granted, err = s.Approve(tx, user)
		if b := r.Bundle.V; err == nil && b.AIDevs > 0 {
			var given bool
			given, err = s.Give(tx, user, b)
			out.Granted = out.Granted || given
		}
	} else {
		already = "already_member"
		out.Granted, err = s.Join(tx, *r.AccountID, user, *r.Role)
	}
	switch {
	case err != nil:
		return err
	case !out.Granted:
		out.Reason = &already
	case r.Kind == OrgMember:
		login, err := people.AccountLogin(tx, *r.AccountID)
		out.Account = &JoinedTenant{ID: *r.AccountID, Login: login, Role: *r.Role}
		return err
	}
	return nil
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Invitation], error) {
	var out op.Page[Invitation]
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "invitation.list"}, func(tx *db.Tx) error {
		rows, err := list(tx, in.PageIn)
		if err != nil {
			return err
		}
		out = op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) },
			func(r row) Invitation { return r.wire(tx.Now) })
		return nil
	})
	return out, err
}

type idIn struct {
	InvitationID string `json:"invitationId" example:"inv_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the invitation, inv_…"`
}

func (s *Service) revoke(ctx context.Context, in idIn) (out InvitationRevoked, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if out, err = Withdraw(tx, "", in.InvitationID); err != nil || !out.Revoked {
			return err
		}
		r, err := find(tx, "", in.InvitationID)
		if err != nil {
			return err
		}
		if err := Withdrawn.Send(tx, r.Email); err != nil {
			return err
		}
		return RevokedEvent.Operated(tx, event.Subject{ID: out.ID}, event.None{}, map[string]any{"email": r.Email})
	})
	return out, err
}

func (s *Service) resend(ctx context.Context, in idIn) (out SentInvitation, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, "", in.InvitationID)
		if err != nil {
			return err
		}
		switch r.status(tx.Now) {
		case Accepted:
			return fault.Reason("already_accepted", "The invitation was accepted.")
		case Revoked:
			return fault.Reason("invitation_revoked", "The invitation was withdrawn. Invite the address anew.")
		}
		secret := id.Secret(id.Invite)
		if r, err = rearm.One(tx, r.ID, seal.Hash(secret), tx.Now.Add(platformLife)); err != nil {
			return err
		}
		if out, err = s.mailed(tx, r, r.Email, secret, "Yardmaster", ""); err != nil {
			return err
		}
		return resentEvent.Operated(tx, event.Subject{ID: r.ID}, event.None{}, map[string]any{"email": r.Email})
	})
	return out, err
}
