package account

import (
	"context"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/closure"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

const (
	group = "Account and platform operator"
	setup = "First boot"
)

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      "account.me",
			Method:  "GET",
			Path:    "/v1/me",
			Group:   group,
			Rule:    policy.Require(policy.ReadAccount).OrAnyCredential(),
			Summary: "Who is calling: scopes, user, memberships, active account",
			Doc: "Every credential may ask. For a machine token user is null, memberships are empty and approved is null; a " +
				"person on the waitlist has approved false and the scope read:account alone.",
		}, s.me),
		op.New(op.Row{
			ID:     "account.active_account_switch",
			Method: "POST",
			Path:   "/v1/me/active-account",
			Group:  group,
			Rule:   policy.Require(policy.ReadAccount).OfSession(),
			Refuses: []op.Refusal{
				{Status: 403, Slug: "session-required"},
				{Status: 403, Slug: "not-a-member"},
				{Status: 403, Slug: "sso-session"},
			},
			Summary: "Point the signed-in session at another account of the user",
			Doc: "Later requests of the same session act in that account. Refused to tokens, which stay in their account, " +
				"to people who do not belong to it, and to sessions that an account's own identity provider vouched for.",
		}, s.switchAccount),
		op.New(op.Row{
			ID:      "account.accept_tos",
			Method:  "POST",
			Path:    "/v1/me/accept-tos",
			Group:   group,
			Rule:    policy.Require(policy.ReadAccount).OfUser(),
			Summary: "Record the signed-in user's consent to the terms of service",
			Doc:     "Notes the present version of the terms and the time. Accepting again notes the time anew.",
		}, s.acceptTOS),
		op.New(op.Row{
			ID: "account.zone_get", Method: "GET", Path: "/v1/account/zone", Group: group,
			Rule:    policy.Require(policy.ReadAccount),
			Summary: "The account's time zone",
			Doc:     "Digests are made at 08:00 there, and schedules that name no zone of their own are in it.",
		}, s.zoneGet),
		op.New(op.Row{
			ID: "account.zone_set", Method: "PUT", Path: "/v1/account/zone", Group: group,
			Rule:    policy.Require(policy.WriteAccount),
			Summary: "Set the account's time zone",
			Doc:     "The next digest is made at 08:00 of the new zone, and begins where the last one ended. Schedules keep their zones.",
		}, s.zoneSet),
		op.New(op.Row{
			ID:      "setup.form",
			Method:  "GET",
			Path:    "/setup/{token}",
			Group:   setup,
			Rule:    policy.Public(),
			Summary: "The form that makes the first user and account",
			Doc:     "Good until the first user is made; the server prints the address when it starts.",
		}, s.setupForm),
		op.New(op.Row{
			ID:         "setup.run",
			Method:     "POST",
			Path:       "/setup/{token}",
			Group:      setup,
			Rule:       policy.Public(),
			Status:     201,
			Form:       true,
			PerAddress: 30,
			Again:      typed,
			Summary:    "Make the first user and account, once",
			Doc:        "The first user runs the platform and owns the first account. Wherever there is a user already, the answer is 404.",
		}, s.setup),
	}
}

func (s *Service) me(ctx context.Context, _ op.None) (Identity, error) {
	a := policy.From(ctx)
	out := Identity{
		Scopes: a.Scopes.Names(), Memberships: []Membership{},
		TOS:        Terms{Version: TermsVersion},
		Credential: CredentialInfo{Kind: a.Credential, ID: a.CredentialID},
	}
	if !a.ExpiresAt.IsZero() {
		out.Credential.ExpiresISO = &a.ExpiresAt
	}
	err := s.DB.Read(ctx, func(tx *db.Tx) error {
		acct, err := people.AccountByID(tx, a.AccountID)
		if err != nil {
			return err
		}
		out.Account = Account{ID: acct.ID, Login: acct.Login, Kind: acct.Kind, Role: a.Role, Tier: acct.Tier}
		if out.Account.Deletion, err = closure.Of(tx, a.AccountID); err != nil || a.UserID == "" {
			return err
		}
		u, err := people.ReadUser(tx, a.UserID)
		if err != nil {
			return err
		}
		approved := u.ApprovedAt != nil
		user := UserOf(u)
		out.User, out.Approved = &user, &approved
		if u.TOSVersion == TermsVersion {
			out.TOS.Accepted, out.TOS.AcceptedAt = true, u.TOSAcceptedAt
		}
		out.Memberships, err = memberships(tx, a.UserID)
		return err
	})
	return out, err
}

func (s *Service) acceptTOS(ctx context.Context, _ op.None) (Terms, error) {
	var out Terms
	err := s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		user := policy.From(ctx).UserID
		if err := people.AcceptTerms(tx, user, TermsVersion); err != nil {
			return err
		}
		out = Terms{Version: TermsVersion, Accepted: true, AcceptedAt: &tx.Now}
		return acceptedTermsEvent.Record(tx, event.Subject{ID: user}, acceptedTermsData{Version: TermsVersion})
	})
	return out, err
}

type switchIn struct {
	Account string `json:"account" minLength:"1" maxLength:"100" example:"acme" doc:"id or login of the account"`
}

func (s *Service) switchAccount(ctx context.Context, in switchIn) (out Account, err error) {
	a := policy.From(ctx)
	if a.Bound {
		return out, fault.New(fault.Forbidden, "sso-session", "This session was opened by the account's identity provider, and "+
			"is good there only.")
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		to, ok, err := people.MemberAccount(tx, a.UserID, in.Account)
		if err != nil {
			return err
		}
		if !ok {
			return fault.New(fault.Forbidden, "not-a-member", "This user belongs to no such account.")
		}
		acct, err := people.AccountByID(tx, to)
		if err != nil {
			return err
		}
		role, _, err := people.Role(tx, to, a.UserID)
		if err != nil {
			return err
		}
		out = Account{ID: acct.ID, Login: acct.Login, Kind: acct.Kind, Role: role, Tier: acct.Tier}
		if err := s.Sessions.Repoint(tx, a.UserID, a.CredentialID, to); err != nil {
			return err
		}
		return switchedEvent.Record(tx, event.Subject{ID: a.UserID, Account: to}, switchedData{From: a.AccountID})
	})
	return out, err
}

type setupIn struct {
	Token    string `json:"token" doc:"the last segment of the address that the server printed"`
	Accept   string `header:"Accept"`
	Login    string `json:"login" maxLength:"39" doc:"login of the first user"`
	Name     string `json:"name,omitempty" maxLength:"100" doc:"their name; left out: the login"`
	Email    string `json:"email" maxLength:"254" format:"email" doc:"their address"`
	Password string `json:"password" minLength:"10" maxLength:"200" doc:"at least 10 characters"`
	Account  string `json:"account" doc:"login of the first account, the owner of its repositories" maxLength:"39"`
}

// SetupResult is the answer of setup.run: the first user and account.
type SetupResult struct {
	User    User    `json:"user"`
	Account Account `json:"account"`
}

// checkSetup returns nil if first boot is open to the token. It returns the same
// fault.NotFound for a wrong token as for first boot that is over.
func (s *Service) checkSetup(tx *db.Tx, token string) error {
	done, err := people.HasUsers(tx)
	if err != nil {
		return err
	}
	if done || s.SetupToken == "" || !seal.Equal(token, s.SetupToken) {
		return fault.New(fault.NotFound, "", "There is no such setup address. The server prints one when it starts, until it was used.")
	}
	return nil
}

// setup makes the first user and account. It answers JSON, or pages to a browser.
func (s *Service) setup(ctx context.Context, in setupIn) (op.Reply, error) {
	out, cookie, err := s.firstBoot(ctx, in)
	if !op.PrefersPage(in.Accept) {
		return op.Reply{Header: map[string]string{"Set-Cookie": cookie}, Body: out}, err
	}
	if err != nil {
		return failed(ctx, err, setupForm{Token: in.Token, Login: in.Login, Email: in.Email, Account: in.Account})
	}
	// The page is the first one of the session that it begins.
	ctx = policy.With(ctx, policy.Actor{Credential: policy.Session, UserID: out.User.ID, AccountID: out.Account.ID})
	reply, err := render(ctx, 201, donePage, struct {
		SetupResult
		Base string
	}{out, op.RequestOf(ctx).BaseURL})
	reply.Cookies = []string{cookie}
	return reply, err
}

// firstBoot makes the first user and account, and signs the user in. cookie is the
// Set-Cookie value.
func (s *Service) firstBoot(ctx context.Context, in setupIn) (out SetupResult, cookie string, err error) {
	if err := s.DB.Read(ctx, func(tx *db.Tx) error { return s.checkSetup(tx, in.Token) }); err != nil {
		return out, "", err
	}
	if err := CheckLogin("login", in.Login); err != nil {
		return out, "", err
	}
	if err := CheckLogin("account", in.Account); err != nil {
		return out, "", err
	}
	if in.Name == "" {
		in.Name = in.Login
	}
	hash := seal.Password(in.Password)
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		if err := s.checkSetup(tx, in.Token); err != nil {
			return err
		}
		u := people.User{ID: id.New(), Login: in.Login, Name: in.Name, Email: strings.ToLower(in.Email), PlatformAdmin: true}
		acct := Account{ID: id.New(), Login: in.Account, Kind: people.KindOrganization, Role: policy.Owner, Tier: people.TierSelfHosted}
		if err := people.Found(tx, u, hash, acct.ID, acct.Login, s.Seats); err != nil {
			return err
		}
		var err error
		if cookie, err = s.Sessions.Open(tx, u.ID, acct.ID, op.RequestOf(ctx).Secure); err != nil {
			return err
		}
		out = SetupResult{UserOf(u), acct}
		return createdEvent.Record(tx, event.Subject{ID: acct.ID, Account: acct.ID}, createdData{Login: acct.Login, Owner: u.Login})
	})
	return out, cookie, err
}

type setupFormIn struct {
	Token  string `json:"token" doc:"the last segment of the address that the server printed"`
	Accept string `header:"Accept"`
}

func (s *Service) setupForm(ctx context.Context, in setupFormIn) (op.Reply, error) {
	err := s.DB.Read(ctx, func(tx *db.Tx) error { return s.checkSetup(tx, in.Token) })
	if err != nil && op.PrefersPage(in.Accept) {
		return failed(ctx, err, setupForm{})
	}
	if err != nil {
		return op.Reply{}, err
	}
	return render(ctx, 200, setupPage, setupForm{Token: in.Token})
}
