package access

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

const group = "Access requests and user approval"

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.AdminReadUsers), policy.Require(policy.AdminUsers)
	return []op.Op{
		op.New(op.Row{
			ID:     "access_request.create",
			Method: "POST",
			Path:   "/v1/access-requests",
			Group:  group,
			Rule:   policy.Public(),
			Status: 201,
			Also:   []int{200},
			Holder: &op.Holder{
				Scheme: "service",
				Doc:    "The secret that the form for applicants shares with the server (the setting `service-token`).",
				Admit:  s.admit,
			},
			Summary: "Apply for access; a form does it for people, with the bearer it shares with the server",
			Doc: "The bearer is the secret that the form shares with the server, no token of a person. An address applies " +
				"once: applying again answers the application that is there, with 200.",
		}, s.create),
		op.New(op.Row{
			ID:     "access_request.list",
			Method: "GET",
			Path:   "/v1/admin/access-requests",
			Group:  group,
			Rule:   read,
			Paging: &op.Paging{
				Default: 25,
				Max:     100,
				Q:       true,
				Filters: map[string][]string{"status": {Pending, Invited, Declined, "all"}},
			},
			Summary: "Applications, newest first, the pending ones unless a filter says otherwise; q " +
				"searches address, name and organisation",
			Doc: "The look is written to the platform's audit log.",
		}, s.list),
		op.New(op.Row{
			ID:      "access_request.get",
			Method:  "GET",
			Path:    "/v1/admin/access-requests/{id}",
			Group:   group,
			Rule:    read,
			Summary: "One application; the look is noted",
			Doc:     "With what was decided, and when.",
		}, s.get),
		op.New(op.Row{
			ID:      "access_request.invite",
			Method:  "POST",
			Path:    "/v1/admin/access-requests/{id}/invite",
			Group:   group,
			Rule:    policy.Require(policy.AdminGrants, policy.AdminUsers),
			NoStore: true,
			Refuses: []op.Refusal{{Status: 409, Slug: "already_decided"}},
			Summary: "Invite an applicant, let them through the gate and book free AI developers; the link is mailed, and shown once",
			Doc: "Mints or re-arms the platform invitation of the address and mails it. A person who has signed in before " +
				"is let through the gate and given the AI developers at once; for others both come with the acceptance. An " +
				"application that was decided is refused, with the decision.",
		}, s.invite),
		op.New(op.Row{
			ID:      "access_request.decline",
			Method:  "POST",
			Path:    "/v1/admin/access-requests/{id}/decline",
			Group:   group,
			Rule:    write,
			Refuses: []op.Refusal{{Status: 409, Slug: "already_decided"}},
			Summary: "Decline an application; the applicant is told nothing",
			Doc:     "The reason stands in the audit log alone. An application that was decided is refused, with the decision.",
		}, s.decline),
		op.New(op.Row{
			ID:      "user.approve_by_id",
			Method:  "POST",
			Path:    "/v1/admin/users/{userId}/approve",
			Group:   group,
			Rule:    write,
			Summary: "Let a user through the gate of the closed beta, and tell them",
			Doc: "Their sessions and tokens hold their full scopes from the next request on. One who was let through before " +
				"answers already_approved, and is told nothing.",
		}, s.approve),
		op.New(op.Row{
			ID:      "user.suspend_by_id",
			Method:  "POST",
			Path:    "/v1/admin/users/{userId}/suspend",
			Group:   group,
			Rule:    write,
			Refuses: []op.Refusal{{Status: 409, Slug: "last_platform_admin"}, {Status: 409, Slug: "suspends_self"}},
			Summary: "Send a user back to the waitlist; what they hold is worth read:account from then on",
			Doc: "One who is on the waitlist answers already_waitlisted. The last operator of the server is refused: nobody " +
				"could let them in again.",
		}, s.suspend),
	}
}

type createIn struct {
	Email string `json:"email" maxLength:"254" format:"email" doc:"address of the applicant"`
	Name  string `json:"name,omitempty" maxLength:"100" example:"Ada Lovelace" doc:"name of the applicant"`
	Org   string `json:"org,omitempty" maxLength:"100" example:"Acme" doc:"where they work"`
}

// admit checks that a request comes from the form for applicants, which holds the
// shared secret. Otherwise it returns fault.Unauthenticated.
func (s *Service) admit(ctx context.Context, authorization string) (context.Context, error) {
	scheme, bearer, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || s.Bearer == "" || !seal.Equal(strings.TrimSpace(bearer), s.Bearer) {
		return ctx, policy.Unauthenticated()
	}
	return ctx, nil
}

func (s *Service) create(ctx context.Context, in createIn) (out Applied, err error) {
	in.Email = strings.ToLower(in.Email)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := apply.Exec(tx, applyArgs{
			ID: id.New(), Email: in.Email, Name: in.Name, Org: in.Org, CreatedAt: tx.Micros(),
		})
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
		if err := s.Mail.Post(tx, mail.Page{
			Lead: "We have your request and will write to you once it is your turn.", Notes: []string{"If you did not ask for access, do nothing."},
		}.Message(r.Email, "Your request for access to Yardmaster")); err != nil {
			return err
		}
		return createdEvent.Record(tx, event.Subject{ID: r.ID}, event.None{})
	})
	return out, err
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (op.Page[Request], error) {
	var rows []row
	err := event.ReadRecorded(ctx, s.DB, event.OperatorRead{Capability: "access_request.list"}, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	if err != nil {
		return op.Page[Request]{}, err
	}
	return op.ShowPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) }, row.wire), nil
}

type idIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the application"`
}

func (s *Service) get(ctx context.Context, in idIn) (out Request, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		out = r.wire()
		l := event.OperatorRead{Capability: "access_request.get"}
		if l.User, _, err = people.LockByEmail(tx, r.Email); err != nil {
			return err
		}
		return event.RecordRead(tx, l)
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
	ID            string `json:"id" format:"uuid" doc:"id of the application"`
	AIDevs        *int   `json:"ai_devs" minimum:"0" maximum:"100" doc:"free AI developers; left out: 1"`
	ExpiresInDays *int   `json:"expires_in_days" minimum:"1" maximum:"365" doc:"how long they are free; left out: 30"`
}

func (s *Service) invite(ctx context.Context, in inviteIn) (out InvitedApplicant, err error) {
	bundle := invitation.Bundle{
		AIDevs:        starterDevs,
		ExpiresInDays: starterDays,
		Reason:        "invited off the waitlist",
		IssuedBy:      policy.From(ctx).Label(),
	}
	if in.AIDevs != nil {
		bundle.AIDevs = *in.AIDevs
	}
	if in.ExpiresInDays != nil {
		bundle.ExpiresInDays = *in.ExpiresInDays
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := decide(tx, invited, in.ID)
		if err != nil {
			return err
		}
		out = InvitedApplicant{Request: r.wire(), AIDevs: bundle.AIDevs, ExpiresInDays: bundle.ExpiresInDays}
		user, known, err := people.LockByEmail(tx, r.Email)
		if err != nil {
			return err
		}
		later, account := bundle, ""
		if known {
			out.UserID = &user
			if account, err = people.OldestOwned(tx, user); err != nil {
				return err
			}
			if out.Approved, err = s.Invites.Approve(tx, user); err != nil {
				return err
			}
			if bundle.AIDevs > 0 {
				if _, err := s.Invites.Give(tx, user, bundle); err != nil {
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
		return invitedEvent.Operated(tx, event.Subject{ID: r.ID, Account: account},
			invitedData{InvitationID: sent.Invitation.ID, UserID: out.UserID, Approved: out.Approved, AIDevs: out.AIDevs},
			map[string]any{"email": r.Email})
	})
	return out, err
}

// decide executes invited or decline for a pending application and returns the row. It
// returns fault.NotFound if there is no such application, and the fault
// already_decided if it is not pending.
func decide(tx *db.Tx, decision db.Stmt, request string) (row, error) {
	n, err := decision.Exec(tx, request, tx.Micros(), policy.From(tx.Context()).Label())
	if err != nil {
		return row{}, err
	}
	r, err := find(tx, request)
	if err == nil && n == 0 {
		err = fault.Reason("already_decided", "The application is "+r.status()+" already.").With("decision", r.status())
	}
	return r, err
}

type declineIn struct {
	ID     string `json:"id" format:"uuid" doc:"id of the application"`
	Reason string `json:"reason,omitempty" maxLength:"500" example:"Not a fit for the closed beta." doc:"kept on the audit row only"`
}

func (s *Service) decline(ctx context.Context, in declineIn) (out Request, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := decide(tx, decline, in.ID)
		if err != nil {
			return err
		}
		out = r.wire()
		return declinedEvent.Operated(tx, event.Subject{ID: r.ID}, event.None{}, map[string]any{"reason": in.Reason, "email": r.Email})
	})
	return out, err
}

type userIn struct {
	UserID string `json:"userId" format:"uuid" doc:"id of the user"`
}

func (s *Service) approve(ctx context.Context, in userIn) (out UserDecision, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		switch fresh, err := s.LetIn(tx, in.UserID); {
		case err != nil:
			return err
		case !fresh:
			out = UserDecision{UserID: in.UserID, Kind: "already_approved", Approved: true}
			return nil
		}
		out = UserDecision{UserID: in.UserID, Kind: "approved", Approved: true}
		return decidedAbout(tx, in.UserID, approvedEvent)
	})
	return out, err
}

// LetIn lets a user through the gate and mails them. fresh is false if they had been
// let through before; then it mails nothing. It returns fault.NotFound if there is no
// such user.
func (s *Service) LetIn(tx *db.Tx, userID string) (fresh bool, err error) {
	fresh, err = people.Approve(tx, userID)
	if err != nil {
		return false, err
	}
	u, ok, err := people.UserByID(tx, userID)
	switch {
	case err != nil:
		return false, err
	case !ok:
		return false, fault.Missing("user")
	case !fresh:
		return false, nil
	}
	if err := event.RightsChanged.Send(tx, userID); err != nil {
		return false, err
	}
	return true, s.Mail.Post(tx, mail.Page{
		Lead: "You have access to Yardmaster now.", Links: []mail.Link{{Label: "Go on", URL: s.BaseURL}},
	}.Message(u.Email, "You have access to Yardmaster"))
}

// decidedAbout records an operator's decision about a user, in the account that the
// user has owned longest, if there is one.
func decidedAbout(tx *db.Tx, userID string, kind event.Kind[event.None]) error {
	account, err := people.OldestOwned(tx, userID)
	if err != nil {
		return err
	}
	return kind.Operated(tx, event.Subject{ID: userID, Account: account}, event.None{}, nil)
}

func (s *Service) suspend(ctx context.Context, in userIn) (out UserDecision, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		admins, err := people.LockOperators(tx)
		if err != nil {
			return err
		}
		if len(admins) == 1 && admins[0] == in.UserID {
			return fault.Reason("last_platform_admin", "This is the only operator of the server who "+
				"can act: nobody could let them in again.")
		}
		if in.UserID == policy.From(ctx).UserID {
			return fault.Reason("suspends_self", "You would shut yourself out, with this token. Another operator of the server "+
				"can suspend you.")
		}
		suspended, err := people.Suspend(tx, in.UserID)
		if err != nil {
			return err
		}
		ok, err := people.HasUser(tx, in.UserID)
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.Missing("user")
		case !suspended:
			out = UserDecision{UserID: in.UserID, Kind: "already_waitlisted", Approved: false}
			return nil
		}
		out = UserDecision{UserID: in.UserID, Kind: "suspended", Approved: false}
		if err := event.RightsChanged.Send(tx, in.UserID); err != nil {
			return err
		}
		return decidedAbout(tx, in.UserID, suspendedEvent)
	})
	return out, err
}
