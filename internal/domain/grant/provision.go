package grant

import (
	"context"
	"strings"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/op"
	"yardmaster/internal/policy"
)

func (s *Service) provisionOp() op.Op {
	return op.New(op.Row{ID: "grant.provision", Method: "POST", Path: "/v1/admin/provision", Group: group, Rule: policy.Require(policy.AdminGrants),
		Summary: "Bring a person in: invited if new, let through the gate, given free AI developers; again repeats nothing"}, s.provision)
}

type provisionIn struct {
	Email         string `json:"email" maxLength:"254" pattern:"^[^@\\s]+@[^@\\s]+$"`
	AIDevs        *int64 `json:"ai_devs" minimum:"1" maximum:"1000" doc:"left out: 1"`
	ExpiresInDays *int   `json:"expires_in_days" minimum:"1" maximum:"3650" doc:"left out: until the grant is revoked"`
	Reason        string `json:"reason" minLength:"1" maxLength:"500"`
}

// Provision tells which effects a call of grant.provision caused itself.
type Provision struct {
	Email        string            `json:"email"`
	UserID       *string           `json:"user_id" doc:"null: nobody has signed in with the address yet"`
	Invited      bool              `json:"invited" doc:"this call mailed an invitation"`
	InvitationID *string           `json:"invitation_id" doc:"the one that waits; the AI developers come with its acceptance"`
	Approved     bool              `json:"approved" doc:"this call let the person through the gate"`
	Granted      bool              `json:"granted" doc:"this call gave the AI developers"`
	Grant        *EntitlementGrant `json:"grant" doc:"the active grant, of this call or an earlier one"`
}

func (s *Service) provision(ctx context.Context, in provisionIn) (out Provision, err error) {
	if strings.TrimSpace(in.Reason) == "" {
		return out, fault.Field("reason", "must say why")
	}
	devs := int64(1)
	if in.AIDevs != nil {
		devs = *in.AIDevs
	}
	email := strings.ToLower(in.Email)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		out = Provision{Email: email}
		user, known, err := userByEmail.Maybe(tx, email)
		if err != nil {
			return err
		}
		if known {
			out.UserID = &user
			err = s.equip(tx, &out, EntitlementGrant{AIDevs: devs, Reason: in.Reason, ExpiresAt: until(tx.Now, in.ExpiresInDays)})
		} else {
			err = s.bringIn(tx, &out, int(devs), in.ExpiresInDays)
		}
		if err != nil || !out.Invited && !out.Approved && !out.Granted {
			return err
		}
		return event.Record(tx, event.Change{Kind: "grant.provisioned", Object: email, Data: map[string]any{"user_id": out.UserID,
			"invited": out.Invited, "approved": out.Approved, "granted": out.Granted, "ai_devs": devs, "reason": in.Reason}})
	})
	return out, err
}

// equip lets a person through the gate and gives what they do not have.
func (s *Service) equip(tx *db.Tx, out *Provision, g EntitlementGrant) (err error) {
	if out.Approved, err = s.Approve(tx, *out.UserID); err != nil {
		return err
	}
	held, err := live.All(tx, tx.Micros(), *out.UserID)
	if err != nil {
		return err
	}
	if len(held) == 0 {
		out.Granted = true
		if g, err = Book(tx, Subject{UserID: *out.UserID}, g); err != nil {
			return err
		}
		held = []EntitlementGrant{g}
	}
	out.Grant = &held[0]
	return nil
}

// bringIn invites an address that nobody has signed in with, unless an
// invitation waits for it.
func (s *Service) bringIn(tx *db.Tx, out *Provision, devs int, days *int) error {
	invitation, waits, err := waiting.Maybe(tx, out.Email, tx.Micros())
	if err != nil {
		return err
	}
	if !waits {
		life := 0
		if days != nil {
			life = *days
		}
		if invitation, err = s.Invite(tx, out.Email, devs, life); err != nil {
			return err
		}
		out.Invited = true
	}
	out.InvitationID = &invitation
	return nil
}
