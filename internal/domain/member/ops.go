package member

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
)

const group = "Organisation members, invitations, SSO"

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	read, write := policy.Require(policy.ReadAccount), policy.Require(policy.WriteMembers)
	owner, last := op.Refusal{Status: 403, Slug: "owner-required"}, op.Refusal{Status: 409, Slug: "last_owner"}
	return []op.Op{
		op.New(op.Row{
			ID:      "member.list",
			Method:  "GET",
			Path:    "/v1/org/members",
			Group:   group,
			Rule:    read,
			Paging:  &op.Paging{Full: true},
			Summary: "The account's members and their roles",
			Doc:     "The whole roster, never paged.",
		}, s.list),
		op.New(op.Row{
			ID:      "member.invite",
			Method:  "POST",
			Path:    "/v1/org/members",
			Group:   group,
			Rule:    write,
			Status:  201,
			NoStore: true,
			Refuses: []op.Refusal{
				owner,
				{Status: 409, Slug: "already_member"},
				{Status: 429, Slug: "rate-limited"},
			},
			Summary: "Invite a registered user by login, who is told by mail, or an e-mail address with a one-time link, " +
				"shown once and mailed",
			Doc: "Send login or email. A user who allows it (invitation.joining_set) becomes a member at once. Any other login " +
				"gets an invitation for 7 days, at a limited pace; its user sees it at invitation.mine and in a mail, and accepts. " +
				"The answer does not tell whether anybody has the login. An address gets an invitation for 7 days, and whoever " +
				"signs in with that address and accepts becomes a member. Refused for somebody who is a member, and, for the role " +
				"owner, to all but owners.",
		}, s.invite),
		op.New(op.Row{
			ID:      "member.set_role",
			Method:  "PATCH",
			Path:    "/v1/org/members/{userId}",
			Group:   group,
			Rule:    write,
			Refuses: []op.Refusal{owner, last},
			Summary: "Change a member's role",
			Doc:     "Holds from the member's next request on. Only owners make or change owners, and the last one stays.",
		}, s.setRole),
		op.New(op.Row{
			ID:      "member.remove",
			Method:  "DELETE",
			Path:    "/v1/org/members/{userId}",
			Group:   group,
			Rule:    write,
			Refuses: []op.Refusal{owner, last},
			Summary: "Remove a member; their tokens of this account stop",
			Doc: "Their sessions and tokens of this account stop at once; what they filed stays. Only owners remove owners, " +
				"and the last one stays.",
		}, s.remove),
		op.New(op.Row{
			ID:     "member.leave",
			Method: "POST",
			Path:   "/v1/me/leave",
			Group:  group,
			Rule:   policy.Require(policy.ReadAccount).OfSession(),
			Refuses: []op.Refusal{
				{Status: 403, Slug: "session-required"},
				{Status: 403, Slug: "not-a-member"},
				{Status: 403, Slug: "sso-session"},
				last,
				{Status: 409, Slug: "last_account"},
			},
			Summary: "Leave an account; the signed-in user's tokens of it stop",
			Doc: "For the person who is signed in, in a browser. The last owner cannot leave, nor " +
				"can anybody leave their only account.",
		}, s.leave),
		op.New(op.Row{
			ID:      "member.list_invitations",
			Method:  "GET",
			Path:    "/v1/org/members/invitations",
			Group:   group,
			Rule:    read,
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The invitations to this account in every status, newest first",
			Doc:     "Without their links, which are shown once.",
		}, s.listInvitations),
		op.New(op.Row{
			ID:      "member.revoke_invitation",
			Method:  "DELETE",
			Path:    "/v1/org/members/invitations/{invitationId}",
			Group:   group,
			Rule:    write,
			Refuses: []op.Refusal{{Status: 409, Slug: "already_accepted"}},
			Summary: "Withdraw an invitation to this account; again is no error",
			Doc:     "The link stops working. One that was accepted is refused: remove the member instead.",
		}, s.revokeInvitation),
	}
}

func (s *Service) list(ctx context.Context, _ op.None) (op.Page[OrgMember], error) {
	var rows []OrgMember
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		members, err := people.Roster(tx, tx.Account)
		for _, m := range members {
			rows = append(rows, wire(m))
		}
		return err
	})
	return op.Whole(rows), err
}

type inviteIn struct {
	Login string      `json:"login,omitempty" maxLength:"39" pattern:"^[A-Za-z0-9-]+$" says:"must be a login: letters, digits and hyphens" example:"ada" doc:"login of a registered user; this or email"`
	Email string      `json:"email,omitempty" maxLength:"254" format:"email" doc:"address of anybody, who is sent a link; this or login"`
	Role  policy.Role `json:"role,omitempty" doc:"what they may do; member unless given"`
}

func (s *Service) invite(ctx context.Context, in inviteIn) (out Invited, err error) {
	if (in.Login == "") == (in.Email == "") {
		return out, fault.Field("", "send either login or email")
	}
	if in.Role == "" {
		in.Role = policy.Member
	}
	if err := mayGive(policy.From(ctx), in.Role); err != nil {
		return out, err
	}
	if in.Login != "" {
		// The limit bounds the mails that a person gets, and the rows of logins that
		// nobody has.
		if after, ok := s.Tries.Take(policy.From(ctx).AccountID); !ok {
			return out, fault.New(fault.RateLimited, "", "This account has invited people by login too often within a minute.").After(after)
		}
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if in.Login != "" {
			out, err = s.byLogin(tx, strings.ToLower(in.Login), in.Role)
		} else {
			out, err = s.mail(tx, in.Email, in.Role)
		}
		return err
	})
	return out, err
}

func alreadyMember() error {
	return fault.Reason("already_member", "They are a member already; change their role instead.")
}

// byLogin invites whoever has a login, or makes them a member if they allow that. What
// it answers and stores is the same whether or not anybody has the login.
func (s *Service) byLogin(tx *db.Tx, login string, role policy.Role) (out Invited, err error) {
	user, _, err := people.UserByLogin(tx, login)
	if err != nil {
		return out, err
	}
	if _, member, err := people.Role(tx, tx.Account, user.ID); err != nil {
		return out, err
	} else if member {
		return out, alreadyMember()
	}
	if atOnce, err := people.AddedAtOnce(tx, user.ID); err != nil {
		return out, err
	} else if atOnce {
		return s.add(tx, user, role)
	}
	out, err = s.send(tx, invitation.Offer{Login: login, UserID: user.ID, Email: user.Email}, role)
	out.Link = nil // it went to the person alone
	return out, err
}

func (s *Service) add(tx *db.Tx, user people.User, role policy.Role) (out Invited, err error) {
	if ok, err := s.Invites.Join(tx, tx.Account, user.ID, role); err != nil {
		return out, err
	} else if !ok {
		return out, alreadyMember()
	}
	m, _, err := find(tx, tx.Account, user.ID)
	if err != nil {
		return out, err
	}
	if err := s.mailAdded(tx, user.Email, role); err != nil {
		return out, err
	}
	return Invited{Kind: "added", Member: &m}, addedEvent.Record(tx, event.Subject{ID: user.ID}, roleData{Role: role})
}

// mailAdded mails a person that they were added to the account without having been asked.
func (s *Service) mailAdded(tx *db.Tx, email string, role policy.Role) error {
	account, caller, err := names(tx, policy.From(tx.Context()).UserID)
	if err != nil {
		return err
	}
	by := cmp.Or(caller, "Somebody")
	return s.Mail.Post(tx, mail.Page{
		Lead:  by + " has added you to the account " + account + ".",
		Links: []mail.Link{{Label: "Open Yardmaster", URL: s.BaseURL}},
		Notes: []string{
			fmt.Sprintf("You are a %s there. Its members can see your name and login.", role),
			fmt.Sprintf("If you do not want that, leave: sign in and send POST /v1/me/leave with {\"account\": %q}.", account)},
	}.Message(email, "You were added to "+account))
}

func (s *Service) mail(tx *db.Tx, email string, role policy.Role) (out Invited, err error) {
	if ok, err := people.HasMemberMailed(tx, tx.Account, invitation.Address(email)); err != nil {
		return out, err
	} else if ok {
		return out, alreadyMember()
	}
	return s.send(tx, invitation.Offer{Email: email}, role)
}

// send sends an invitation to tx.Account.
func (s *Service) send(tx *db.Tx, offer invitation.Offer, role policy.Role) (out Invited, err error) {
	offer.Kind, offer.AccountID, offer.Role = invitation.OrgMember, tx.Account, role
	if offer.Account, offer.Inviter, err = names(tx, policy.From(tx.Context()).UserID); err != nil {
		return out, err
	}
	offer.Inviter = cmp.Or(offer.Inviter, offer.Account)
	sent, err := s.Invites.Send(tx, offer)
	if err != nil {
		return out, err
	}
	data := invitedData{Login: offer.Login, Role: role}
	if sent.Invitation.Email != nil {
		data.Email = *sent.Invitation.Email
	}
	return Invited{Kind: "invited", Invitation: &sent.Invitation, Link: &sent.Link},
		invitedEvent.Record(tx, event.Subject{ID: sent.Invitation.ID}, data)
}

type setRoleIn struct {
	UserID string      `json:"userId" format:"uuid" doc:"id of the member"`
	Role   policy.Role `json:"role" doc:"what they may do from now on"`
}

// member returns the member whom a write concerns, and whether they are the only
// owner. It locks the owners until the transaction ends. It returns fault.NotFound if
// there is no such member, and the fault owner-required if the caller may not change
// a member with that role.
func member(tx *db.Tx, userID string) (m OrgMember, last bool, err error) {
	all, err := people.LockOwners(tx, tx.Account)
	if err != nil {
		return m, false, err
	}
	m, ok, err := find(tx, tx.Account, userID)
	if err != nil {
		return m, false, err
	}
	if !ok {
		return m, false, fault.Missing("member")
	}
	return m, m.Role == policy.Owner && len(all) < 2, mayGive(policy.From(tx.Context()), m.Role)
}

func (s *Service) setRole(ctx context.Context, in setRoleIn) (m OrgMember, err error) {
	err = s.DB.Write(op.Answers(ctx, &m), func(tx *db.Tx) error {
		var last bool
		if m, last, err = member(tx, in.UserID); err != nil {
			return err
		}
		if err := mayGive(policy.From(ctx), in.Role); err != nil {
			return err
		}
		before := m.Role
		if before == in.Role {
			return nil
		}
		if last {
			return lastOwner()
		}
		if err := people.SetRole(tx, tx.Account, m.UserID, in.Role); err != nil {
			return err
		}
		if err := s.Invites.SendOwnersChanged(tx, tx.Account, m.UserID, before, in.Role); err != nil {
			return err
		}
		m.Role = in.Role
		if err := event.RightsChanged.Send(tx, m.UserID); err != nil {
			return err
		}
		return RoleChangedEvent.Record(tx, event.Subject{ID: m.UserID}, RoleChanged{PreviousRole: before, Role: m.Role})
	})
	return m, err
}

type memberIn struct {
	UserID string `json:"userId" format:"uuid" doc:"id of the member"`
}

func (s *Service) remove(ctx context.Context, in memberIn) (out Removed, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		m, last, err := member(tx, in.UserID)
		if err != nil {
			return err
		}
		if last {
			return lastOwner()
		}
		if err := s.drop(tx, m); err != nil {
			return err
		}
		if err := event.RightsChanged.Send(tx, m.UserID); err != nil {
			return err
		}
		out = Removed{UserID: m.UserID, Removed: true}
		return removedEvent.Record(tx, event.Subject{ID: m.UserID}, roleData{Role: m.Role})
	})
	return out, err
}

type leaveIn struct {
	Account string `json:"account" minLength:"1" maxLength:"100" example:"acme" doc:"id or login of the account"`
}

// leave removes the signed-in person from an account. People who were added without
// having been asked leave with it.
func (s *Service) leave(ctx context.Context, in leaveIn) (out Left, err error) {
	a := policy.From(ctx)
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		account, ok, err := people.MemberAccount(tx, a.UserID, in.Account)
		if err != nil {
			return err
		}
		if !ok || a.Bound && account != a.AccountID {
			return fault.New(fault.Forbidden, "not-a-member", "This user belongs to no such account.")
		}
		tx.Account = account
		all, err := people.LockOwners(tx, account)
		if err != nil {
			return err
		}
		m, ok, err := find(tx, account, a.UserID)
		switch {
		case err != nil:
			return err
		case !ok:
			return fault.New(fault.Forbidden, "not-a-member", "This user belongs to no such account.")
		case a.Bound && m.Role == policy.Owner: // who may set the provider makes no owner leave
			return fault.New(fault.Forbidden, "sso-session", "This session was vouched for by the account's own provider, which "+
				"makes no owner leave. Sign in otherwise.")
		case m.Role == policy.Owner && len(all) < 2:
			return lastOwner()
		}
		if ok, err := people.BelongsElsewhere(tx, a.UserID, account); err != nil {
			return err
		} else if !ok {
			return fault.Reason("last_account", "This is the only account that you belong to: without it you could not sign in.")
		}
		if err := s.drop(tx, m); err != nil {
			return err
		}
		if err := event.RightsChanged.Send(tx, m.UserID); err != nil {
			return err
		}
		out = Left{AccountID: account, Left: true}
		return leftEvent.Record(tx, event.Subject{ID: m.UserID, Account: account}, roleData{Role: m.Role})
	})
	return out, err
}

type listInvitationsIn struct{ op.PageIn }

func (s *Service) listInvitations(ctx context.Context, in listInvitationsIn) (op.Page[invitation.Invitation], error) {
	var rows []invitation.Invitation
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = invitation.Of(tx, in.PageIn)
		return err
	})
	if err != nil {
		return op.Page[invitation.Invitation]{}, err
	}
	return op.NewPage(in.PageIn, rows, func(i invitation.Invitation) []string { return op.TimeKey(i.CreatedAt, i.ID) }), nil
}

type invitationIn struct {
	InvitationID string `json:"invitationId" example:"inv_0199d3a4-5b6c-7d8e-9f01-23456789abcd" doc:"id of the invitation, inv_…"`
}

func (s *Service) revokeInvitation(ctx context.Context, in invitationIn) (out invitation.InvitationRevoked, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if out, err = invitation.Withdraw(tx, tx.Account, in.InvitationID); err != nil || !out.Revoked {
			return err
		}
		return invitation.RevokedEvent.Record(tx, event.Subject{ID: out.ID}, event.None{})
	})
	return out, err
}
