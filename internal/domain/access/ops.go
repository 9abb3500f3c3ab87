package access

import (
	"context"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

const group = "Access requests and user approval"

// Ops are the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.AdminReadUsers), policy.Require(policy.AdminUsers)
	return []op.Op{
		op.New(op.Row{ID: "access_request.create", Method: "POST", Path: "/v1/access-requests", Group: group, Rule: policy.Public(), Status: 201, Also: []int{200},
			Refuses: []op.Refusal{{Status: 401, Slug: "unauthenticated"}},
			Summary: "Apply for access; a form does it for people, with the bearer it shares with the server"}, s.create),
		op.New(op.Row{ID: "access_request.list", Method: "GET", Path: "/v1/admin/access-requests", Group: group, Rule: read,
			Paging:  &op.Paging{Default: 25, Max: 100, Q: true, Filters: map[string][]string{"status": {Pending, Invited, Declined, "all"}}},
			Summary: "Applications, newest first, the pending ones unless a filter says otherwise; q searches address, name and organisation"}, s.list),
		op.New(op.Row{ID: "access_request.get", Method: "GET", Path: "/v1/admin/access-requests/{id}", Group: group, Rule: read,
			Summary: "One application"}, s.get),
		op.New(op.Row{ID: "access_request.invite", Method: "POST", Path: "/v1/admin/access-requests/{id}/invite", Group: group, Rule: policy.Require(policy.AdminGrants, policy.AdminUsers), NoStore: true,
			Refuses: []op.Refusal{{Status: 409, Slug: "already_decided"}},
			Summary: "Invite an applicant, let them through the gate and book free AI developers; the link is mailed, and shown once"}, s.invite),
		op.New(op.Row{ID: "access_request.decline", Method: "POST", Path: "/v1/admin/access-requests/{id}/decline", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 409, Slug: "already_decided"}},
			Summary: "Decline an application; the applicant is told nothing"}, s.decline),
		op.New(op.Row{ID: "user.approve_by_id", Method: "POST", Path: "/v1/admin/users/{userId}/approve", Group: group, Rule: write,
			Summary: "Let a user through the gate of the closed beta, and tell them"}, s.approve),
		op.New(op.Row{ID: "user.suspend_by_id", Method: "POST", Path: "/v1/admin/users/{userId}/suspend", Group: group, Rule: write,
			Refuses: []op.Refusal{{Status: 409, Slug: "last_platform_admin"}},
			Summary: "Send a user back to the waitlist; what they hold is worth read:account from then on"}, s.suspend),
	}
}

type createIn struct {
	Authorization string `json:",omitempty" header:"Authorization" doc:"Bearer and the secret shared with the form"`
	Email         string `json:"email" maxLength:"254" pattern:"^[^@\\s<>]+@[^@\\s<>]+$"`
	Name          string `json:"name,omitempty" maxLength:"100"`
	Org           string `json:"org,omitempty" maxLength:"100"`
}

func (s *Service) create(ctx context.Context, in createIn) (out Applied, err error) {
	bearer, ok := strings.CutPrefix(in.Authorization, "Bearer ")
	if !ok || s.Bearer == "" || !seal.Equal(bearer, s.Bearer) {
		return out, policy.Unauthenticated()
	}
	in.Email = strings.ToLower(in.Email)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := apply.Exec(tx, id.New(), in.Email, in.Name, in.Org, tx.Micros())
		if err != nil {
			return err
		}
		r, err := byEmail.One(tx, in.Email)
		if err != nil {
			return err
		}
		out = Applied{ID: r.ID, Status: r.status(), fresh: n > 0}
		if !out.fresh {
			return nil
		}
		if err := s.Mail.Post(tx, mail.Message{To: r.Email, Subject: "Your request for access to Yardmaster",
			Text: "We have your request and will write to you once it is your turn.\n\nIf you did not ask for access, do nothing.\n"}); err != nil {
			return err
		}
		return event.Record(tx, event.Change{Kind: "access_request.created", Object: r.ID})
	})
	return out, err
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[AccessRequest], error) {
	var rows []row
	err := event.Looking(ctx, s.DB, event.Look{Capability: "access_request.list"}, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	if err != nil {
		return op.Page[AccessRequest]{}, err
	}
	p := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
	out := op.Page[AccessRequest]{Data: make([]AccessRequest, len(p.Data)), NextCursor: p.NextCursor}
	for i, r := range p.Data {
		out.Data[i] = r.wire()
	}
	return out, nil
}

type idIn struct {
	ID string `json:"id"`
}

func (s *Service) get(ctx context.Context, in idIn) (out AccessRequest, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		out = r.wire()
		return err
	})
	return out, err
}

func find(tx *db.Tx, request string) (row, error) {
	r, ok, err := byID.Maybe(tx, request)
	if err == nil && !ok {
		err = fault.Missing("access request")
	}
	return r, err
}

type inviteIn struct {
	ID            string `json:"id"`
	AIDevs        *int   `json:"ai_devs" minimum:"0" maximum:"100" doc:"free AI developers; left out: 1"`
	ExpiresInDays *int   `json:"expires_in_days" minimum:"1" maximum:"365" doc:"how long they are free; left out: 30"`
}

func (s *Service) invite(ctx context.Context, in inviteIn) (out InvitedApplicant, err error) {
	bundle := invitation.Bundle{AIDevs: starterDevs, ExpiresInDays: starterDays}
	if in.AIDevs != nil {
		bundle.AIDevs = *in.AIDevs
	}
	if in.ExpiresInDays != nil {
		bundle.ExpiresInDays = *in.ExpiresInDays
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := invited.Exec(tx, in.ID, tx.Micros(), policy.From(ctx).Label())
		if err != nil {
			return err
		}
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return decided(r)
		}
		out = InvitedApplicant{Request: r.wire(), AIDevs: bundle.AIDevs, ExpiresInDays: bundle.ExpiresInDays}
		user, known, err := applicant.Maybe(tx, r.Email)
		if err != nil {
			return err
		}
		later := bundle
		if known {
			out.UserID = &user
			if out.Approved, err = s.Invites.Approve(tx, user); err != nil {
				return err
			}
			if bundle.AIDevs > 0 {
				if err := s.Invites.Give(tx, user, bundle); err != nil {
					return err
				}
			}
			out.Granted, later = true, invitation.Bundle{}
		}
		sent, err := s.Invites.Send(tx, invitation.Offer{Kind: invitation.Platform, Email: r.Email, Bundle: later, Inviter: "Yardmaster"})
		if err != nil {
			return err
		}
		out.Invitation, out.Link = sent.Invitation, sent.Link
		return event.Record(tx, event.Change{Kind: "access_request.invited", Object: r.ID, Data: map[string]any{
			"invitation_id": sent.Invitation.ID, "user_id": user, "approved": out.Approved, "ai_devs": out.AIDevs,
		}})
	})
	return out, err
}

func decided(r row) error {
	return fault.Reason("already_decided", "The application is "+r.status()+" already.").With("decision", r.status())
}

type declineIn struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"kept on the audit row only"`
}

func (s *Service) decline(ctx context.Context, in declineIn) (out AccessRequest, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := decline.Exec(tx, in.ID, tx.Micros(), policy.From(ctx).Label())
		if err != nil {
			return err
		}
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return decided(r)
		}
		out = r.wire()
		return event.Record(tx, event.Change{Kind: "access_request.declined", Object: r.ID, Data: map[string]string{"reason": in.Reason}})
	})
	return out, err
}

type userIn struct {
	UserID string `json:"userId"`
}

func (s *Service) approve(ctx context.Context, in userIn) (out UserDecision, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := approve.Exec(tx, in.UserID, tx.Micros())
		if err != nil {
			return err
		}
		u, ok, err := userByID.Maybe(tx, in.UserID)
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.Missing("user")
		case n == 0:
			out = UserDecision{in.UserID, "already_approved", true}
			return nil
		}
		out = UserDecision{in.UserID, "approved", true}
		tx.AfterCommit(func() { s.Forget(in.UserID) })
		if err := s.Mail.Post(tx, mail.Message{To: u.Email, Subject: "You have access to Yardmaster", Text: "You are in. Go on at\n\n" + s.BaseURL() + "\n"}); err != nil {
			return err
		}
		return event.Record(tx, event.Change{Kind: "user.approved", Object: in.UserID})
	})
	return out, err
}

func (s *Service) suspend(ctx context.Context, in userIn) (out UserDecision, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		admins, err := operators.All(tx)
		if err != nil {
			return err
		}
		if len(admins) == 1 && admins[0] == in.UserID {
			return fault.Reason("last_platform_admin", "This is the only operator of the server who can act: nobody could let them in again.")
		}
		n, err := suspend.Exec(tx, in.UserID)
		if err != nil {
			return err
		}
		_, ok, err := userByID.Maybe(tx, in.UserID)
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.Missing("user")
		case n == 0:
			out = UserDecision{in.UserID, "already_waitlisted", false}
			return nil
		}
		out = UserDecision{in.UserID, "suspended", false}
		tx.AfterCommit(func() { s.Forget(in.UserID) })
		return event.Record(tx, event.Change{Kind: "user.suspended", Object: in.UserID})
	})
	return out, err
}
