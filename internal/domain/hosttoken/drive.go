package hosttoken

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// Drive answers how git of an access reaches a repository: as its person, if the person
// has bound the repository, and by git otherwise. A binding that does not work is a
// fault.Forbidden that says why; git is not used in its place.
func (s *Service) Drive(ctx context.Context, git codehost.GitAccess, r codehost.Repo, a codehost.Access) (codehost.GitAccess, error) {
	if git == nil || a.Person == "" || a.Account == "" {
		return git, nil
	}
	var t row
	var b binding
	bound := false
	err := s.DB.Read(db.WithAccount(ctx, a.Account), func(tx *db.Tx) error {
		bound = false
		there, ok, err := s.Repos.At(tx, r)
		if err != nil || !ok || there.Account != a.Account {
			return err
		}
		if b, ok, err = boundTo.Maybe(tx, tx.Account, a.Person, there.ID); err != nil || !ok {
			return err
		}
		// A call that was under way while its person left may have stored a row since.
		if member, err := people.IsMember(tx, a.Person); err != nil || !member {
			return err
		}
		bound = true
		if t, ok, err = byUser.Maybe(tx, tx.Account, a.Person); err == nil && (!ok || t.Host != r.Host) {
			err = refusal("Its owner has no token there any more.")
		}
		if err != nil {
			return err
		}
		if state, why := b.why(t, tx.Now); state == StateExpired || t.RefusedAt != nil {
			return refusal(why)
		}
		return nil
	})
	if err != nil || !bound {
		return git, err
	}
	host := s.Hosts.People(r.Host)
	if host == nil {
		return nil, refusal("The server is not connected to the code host now.")
	}
	token, err := s.Ring.Unseal(purpose(t.ID), t.Sealed)
	if err != nil {
		return nil, fmt.Errorf("open the token of user %s: %w", a.Person, err)
	}
	return &driven{s: s, host: host, token: string(token), row: t, binding: b}, nil
}

// refusal is what git is answered where a binding does not work.
func refusal(why string) error {
	return fault.New(fault.Forbidden, "binding-refused",
		"This repository is bound to the token of the person for whom the work is done. "+why)
}

// driven is the git of a repository with the token of a person. It implements
// codehost.GitAccess and codehost.Refuser.
type driven struct {
	s       *Service
	host    codehost.People
	token   string
	row     row
	binding binding
}

// Upstream implements codehost.GitAccess.
func (d *driven) Upstream(ctx context.Context, r codehost.Repo, _ bool) (*url.URL, string, time.Time, error) {
	at, authorization, err := d.host.UpstreamAs(ctx, r, d.token)
	var until time.Time
	if d.row.ExpiresAt != nil {
		until = *d.row.ExpiresAt
	}
	return at, authorization, until, err
}

// Renew implements codehost.GitAccess. A token of a person is not renewed.
func (*driven) Renew(codehost.Repo) {}

// Refused implements codehost.Refuser: it notes the refusal, which the list of bindings
// then shows.
func (d *driven) Refused(ctx context.Context, _ codehost.Repo, ofToken bool) error {
	b, t := d.binding, d.row
	err := d.s.DB.Write(db.WithAccount(context.WithoutCancel(ctx), t.AccountID), func(tx *db.Tx) error {
		b, t = d.binding, d.row
		var n int64
		var err error
		if ofToken {
			t.RefusedAt = &tx.Now
			n, err = tokenRefused.Exec(tx, tx.Account, t.ID, tx.Now)
		} else {
			b.RefusedAt = &tx.Now
			n, err = repoRefused.Exec(tx, repoRefusedArgs{
				AccountID: tx.Account, UserID: b.UserID, RepoID: b.RepoID, TokenID: t.ID, Now: tx.Now,
			})
		}
		if err != nil || n == 0 {
			return err
		}
		data := refusedData{Host: t.Host, Token: ofToken}
		return RefusedEvent.Record(tx, event.Subject{ID: b.UserID, RepoID: b.RepoID}, data)
	})
	if err != nil {
		d.s.Logger.ErrorContext(ctx, "note that a code host refuses the token of a person", slog.String("user", b.UserID),
			slog.Any("error", err))
	}
	_, why := b.why(t, time.Time{})
	return refusal(why)
}
