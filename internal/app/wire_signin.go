package app

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/domain/sso"
	"yardmaster/internal/idp"
)

// wireSignIn makes the ways in. Invitations come later than sign-in, so they are
// looked up when they are needed.
func (a *App) wireSignIn(invites func() *invitation.Service) *signin.Service {
	return &signin.Service{
		DB: a.db, Clock: time.Now, Ring: a.ring, Mail: a.mail, Mailed: a.cfg.SMTPURL != "", Waitlist: a.cfg.Waitlist == "on", Seats: a.cfg.Seats,
		Invited: invitation.Invited,
		Redeem: func(tx *db.Tx, token, userID string) (string, error) {
			out, err := invites().Redeem(tx, token, userID)
			if err != nil || out.Account == nil {
				return "", err
			}
			return out.Account.ID, nil
		},
		SSO: sso.Any, GitHub: a.cfg.GitHubID != "",
	}
}

// wireSSO connects sign-in to those who know people elsewhere.
func (a *App) wireSSO(in *signin.Service) *sso.Service {
	return &sso.Service{
		DB: a.db, Ring: a.ring, SignIn: in, BaseURL: a.URL, Providers: idp.New(time.Now, a.cfg.Reachable),
		GitHub: idp.GitHub{URL: a.cfg.GitHubURL, ClientID: a.cfg.GitHubID, ClientSecret: a.cfg.GitHubSecret},
	}
}
