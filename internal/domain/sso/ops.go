package sso

import (
	"context"
	"net/url"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

const (
	group = "Organisation members, invitations, SSO"
	login = "Sign-in"
)

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	browser := func(id, path, summary string) op.Row {
		return op.Row{
			ID:         id,
			Method:     "GET",
			Path:       path,
			Group:      login,
			Rule:       policy.Public(),
			NoStore:    true,
			PerAddress: 60,
			Status:     303,
			Also:       []int{200},
			Summary:    summary,
		}
	}
	start := browser("auth.oidc_start", "/auth/oidc/{org}/start", "Send the browser to an organisation's identity provider")
	back := browser("auth.oidc_callback", oidcBack, "Where the provider sends the browser back to")
	back.Lenient = true
	githubReturn := browser("auth.github_callback", githubBack, "Where GitHub sends the browser back to")
	githubReturn.Lenient = true
	return []op.Op{
		op.New(op.Row{
			ID:      "org_sso.get",
			Method:  "GET",
			Path:    "/v1/org-sso",
			Group:   group,
			Rule:    policy.Require(policy.ReadAccount),
			Summary: "The account's identity provider, if it has one of its own",
			Doc:     "The client's secret is never shown. configuration is null when the account has no provider of its own.",
		}, s.get),
		op.New(op.Row{
			ID:      "org_sso.set",
			Method:  "PUT",
			Path:    "/v1/org-sso",
			Group:   group,
			Rule:    policy.Require(policy.WriteAccount),
			NoXML:   samlRefused,
			Refuses: []op.Refusal{{Status: 503, Slug: "provider-unreachable"}},
			Summary: "Let the account's people sign in at its own OpenID Connect provider; SAML is refused",
			Doc: "The provider is asked for its metadata first: one that cannot be reached is refused. People whose address " +
				"is of one of the domains, vouched for by the provider, sign in there and become members. A new issuer ends the " +
				"sessions that the old one vouched for. SAML is refused.",
		}, s.set),
		op.New(op.Row{
			ID:      "org_sso.delete",
			Method:  "DELETE",
			Path:    "/v1/org-sso",
			Group:   group,
			Rule:    policy.Require(policy.WriteAccount),
			Summary: "Fall back to the platform's sign-in; sessions that the provider vouched for end",
			Doc:     "Deleting what is not there answers deleted false.",
		}, s.delete),

		op.New(browser("auth.oidc", "/auth/oidc", "The organisation that was typed in on the sign-in page"), s.choose),
		op.New(start, s.start),
		op.New(back, s.callback),
		op.New(browser("auth.github_start", "/auth/github/start", "Send the browser to GitHub"), s.startGitHub),
		op.New(githubReturn, s.callbackGitHub),
	}
}

func (s *Service) get(ctx context.Context, _ op.None) (out OrgSSO, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		out, err = s.show(tx)
		return err
	})
	return out, err
}

func (s *Service) show(tx *db.Tx) (out OrgSSO, err error) {
	name, err := people.AccountLogin(tx, tx.Account)
	if err != nil {
		return out, err
	}
	out = OrgSSO{RedirectURI: s.BaseURL + oidcBack, StartURL: s.BaseURL + "/auth/oidc/" + name + "/start"}
	r, ok, err := byAccount.Maybe(tx, tx.Account)
	if ok {
		out.Configuration = r.wire()
	}
	return out, err
}

// samlRefused is what is said of SAML, as a member of the body or as the body.
const samlRefused = "must be oidc; SAML is not supported"

type setIn struct {
	Protocol string   `json:"protocol,omitempty" maxLength:"20" doc:"oidc, which is the default; there is no saml"`
	Issuer   string   `json:"issuer" minLength:"1" maxLength:"500" format:"uri" example:"https://login.example.com" doc:"address of the provider, as it writes it"`
	ClientID string   `json:"client_id" minLength:"1" maxLength:"500" example:"yardmaster" doc:"what the provider calls this server"`
	Secret   string   `json:"client_secret,omitempty" maxLength:"2000" example:"example-secret" doc:"may be left out where issuer and client_id stay as they are"`
	Domains  []string `json:"domains" maxItems:"50" example:"[\"example.com\"]" doc:"of the addresses that the provider may vouch for"`
	Role     Role     `json:"role,omitempty" doc:"of people who are new here; default member"`
}

func (s *Service) set(ctx context.Context, in setIn) (out OrgSSO, err error) {
	if in.Protocol != "" && in.Protocol != "oidc" {
		return out, fault.Field("protocol", samlRefused)
	}
	if err := s.Providers.Fits(in.Issuer); err != nil {
		return out, err
	}
	list, err := domains(in.Domains)
	if err != nil {
		return out, err
	}
	role := policy.Member
	if in.Role != "" {
		role = policy.Role(in.Role)
	}
	if u, err := url.Parse(in.Issuer); err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return out, fault.Field("issuer", "must be an https address without query and fragment")
	}
	if err := s.Providers.Discover(ctx, in.Issuer); err != nil {
		return out, err
	}
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		before, existed, err := byAccount.Maybe(tx, tx.Account)
		if err != nil {
			return err
		}
		same := existed && before.Issuer == in.Issuer && before.ClientID == in.ClientID
		sealed := before.Sealed
		switch {
		case in.Secret != "":
			sealed = s.Ring.Seal(purpose(tx.Account), []byte(in.Secret))
		case !same:
			return fault.Field("client_secret", "is required where issuer or client_id are new")
		}
		if _, err := set.Exec(tx, setArgs{
			AccountID: tx.Account, Issuer: in.Issuer, ClientID: in.ClientID, Sealed: sealed,
			Domains: db.JSON[[]string]{V: list}, Role: string(role), CreatedAt: tx.Micros(),
		}); err != nil {
			return err
		}
		if existed && before.Issuer != in.Issuer {
			if err := s.SignIn.EndVouched(tx); err != nil {
				return err
			}
		}
		if out, err = s.show(tx); err != nil {
			return err
		}
		return setEvent.Record(tx, event.Subject{ID: tx.Account},
			setData{Issuer: in.Issuer, ClientID: in.ClientID, Domains: list, Role: Role(role), SecretChanged: in.Secret != ""})
	})
	return out, err
}

func (s *Service) delete(ctx context.Context, _ op.None) (out SSODeleted, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		n, err := remove.Exec(tx, tx.Account)
		if out.Deleted = n > 0; err != nil || !out.Deleted {
			return err
		}
		if err := s.SignIn.EndVouched(tx); err != nil {
			return err
		}
		return deletedEvent.Record(tx, event.Subject{ID: tx.Account}, event.None{})
	})
	return out, err
}
