package grant

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

func (s *Service) provisionOp() op.Op {
	return op.New(op.Row{
		ID:      "grant.provision",
		Method:  "POST",
		Path:    "/v1/admin/provision",
		Group:   group,
		Rule:    policy.Require(policy.AdminGrants),
		Summary: "Bring a person in: invited if new, let through the gate, given free AI developers; again repeats nothing",
		Doc: "An address that nobody has signed in with gets a platform invitation, unless one waits, and the AI developers " +
			"come with its acceptance. A known person is let through the gate and given a grant, unless they have one. Each " +
			"field says whether this very call did it.",
	}, s.provision)
}

type provisionIn struct {
	Email         string `json:"email" maxLength:"254" format:"email" doc:"address of the person"`
	AIDevs        *int64 `json:"ai_devs" minimum:"1" maximum:"1000" doc:"left out: 1"`
	ExpiresInDays *int   `json:"expires_in_days" minimum:"1" maximum:"3650" doc:"left out: until the grant is revoked"`
	Reason        string `json:"reason" minLength:"1" maxLength:"500" example:"Early tester" doc:"why; kept with the grant"`
}

// Provision tells which effects this call of grant.provision had.
type Provision struct {
	_            struct{}          `doc:"What grant.provision did, and what was there before." schema:"Provision"`
	Email        string            `json:"email" format:"email" doc:"address of the person, in lower case"`
	UserID       *string           `json:"user_id" format:"uuid" doc:"null: nobody has signed in with the address yet"`
	Invited      bool              `json:"invited" doc:"this call mailed an invitation"`
	InvitationID *string           `json:"invitation_id" example:"null" doc:"the invitation that waits, and with whose acceptance the AI developers come; null: the person is known"`
	Approved     bool              `json:"approved" doc:"this call let the person through the gate, and told them by mail"`
	Granted      bool              `json:"granted" doc:"this call gave the AI developers"`
	Grant        *EntitlementGrant `json:"grant" doc:"the active grant, of this call or an earlier one"`
}

func (s *Service) provision(ctx context.Context, in provisionIn) (out Provision, err error) {
	if strings.TrimSpace(in.Reason) == "" {
		return out, fault.Field("reason", "must say why")
	}
	gift := Gift{AIDevs: 1, Reason: in.Reason, IssuedBy: policy.From(ctx).Label()}
	if in.AIDevs != nil {
		gift.AIDevs = *in.AIDevs
	}
	if in.ExpiresInDays != nil {
		gift.Days = *in.ExpiresInDays
	}
	email := strings.ToLower(in.Email)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out = Provision{Email: email}
		user, known, err := people.LockByEmail(tx, email)
		if err != nil {
			return err
		}
		var account, object string
		if known {
			object, out.UserID = user, &user
			account, err = s.equip(tx, &out, gift)
		} else {
			object, out.Invited, err = s.Invitations.Invite(tx, email, gift)
			out.InvitationID = &object
		}
		if err != nil || !out.Invited && !out.Approved && !out.Granted {
			return err
		}
		return provisionedEvent.Operated(tx, event.Subject{ID: object, Account: account},
			provisionedData{UserID: out.UserID, Invited: out.Invited, Approved: out.Approved, Granted: out.Granted, AIDevs: gift.AIDevs},
			map[string]any{"reason": in.Reason, "email": email})
	})
	return out, err
}

// equip lets a user through the gate and gives them the gift unless they have an
// active grant. An open invitation to their address then brings no grant along. It
// returns the account in which the grant counts, if there is one.
func (s *Service) equip(tx *db.Tx, out *Provision, gift Gift) (account string, err error) {
	if out.Approved, err = s.Gate.LetIn(tx, *out.UserID); err != nil {
		return "", err
	}
	g, given, err := s.ledger.give(tx, *out.UserID, gift)
	if err != nil {
		return "", err
	}
	out.Granted, out.Grant = given, &g
	if err := Equipped.Send(tx, out.Email); err != nil {
		return "", err
	}
	return Home(tx, *out.UserID)
}
