package oauth

import (
	"context"
	"net/url"
	"strings"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

// Decisions about a command line.
const (
	pending  = "pending"
	approved = "approved"
	denied   = "denied"
)

type deviceIn struct {
	Name  string `json:"client_name,omitempty" doc:"shown to the person who approves; one that reads like this server's own name is refused"`
	Scope string `json:"scope,omitempty" doc:"left out: all that the approver may give but rights over the whole server"`
}

// DeviceAuthorization is the answer of auth.device: the codes that a command line
// shows and polls with (RFC 8628).
type DeviceAuthorization struct {
	DeviceCode string `json:"device_code"`
	UserCode   string `json:"user_code"`
	URI        string `json:"verification_uri"`
	Complete   string `json:"verification_uri_complete"`
	ExpiresIn  int    `json:"expires_in" doc:"seconds"`
	Interval   int    `json:"interval" doc:"seconds between polls"`
}

func (s *Service) device(ctx context.Context, in deviceIn) (DeviceAuthorization, error) {
	name := strings.TrimSpace(in.Name)
	if !presentable(name) {
		return DeviceAuthorization{}, refuse("invalid_request", "client_name must be at most 100 printable characters.")
	}
	if imitatesUs(name) {
		return DeviceAuthorization{}, refuse("invalid_request", "client_name reads like the name of this server.")
	}
	if name == "" {
		name = "A command line without a name"
	}
	asked, unknown := policy.ParseScopes(strings.Fields(in.Scope))
	if len(unknown) > 0 {
		return DeviceAuthorization{}, refuse("invalid_scope", "A scope that is asked for does not exist.")
	}
	uri := op.RequestOf(ctx).BaseURL + devicePath
	out := DeviceAuthorization{
		DeviceCode: id.Opaque(),
		UserCode:   id.Typed(),
		URI:        uri,
		ExpiresIn:  int(deviceLife.Seconds()),
		Interval:   int(pollEvery.Seconds()),
	}
	out.Complete = uri + "?user_code=" + out.UserCode
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		// Rows with a token are kept for its life after their codes expire, so that a code
		// that comes again still ends its token. Anybody can make the others.
		if _, err := purgeDevices.Exec(tx, db.Micros(tx.Now.Add(-tokenLife)), db.Micros(tx.Now.Add(-deviceLife))); err != nil {
			return err
		}
		_, err := insertDevice.Exec(tx, insertDeviceArgs{
			Hash: seal.Hash(out.DeviceCode), UserCode: out.UserCode, Name: name,
			Asked: db.JSON[[]string]{V: asked.Names()}, ExpiresAt: db.Micros(tx.Now.Add(deviceLife)),
		})
		return err
	})
	return out, err
}

type pollIn struct {
	DeviceCode string `json:"device_code,omitempty" doc:"what auth.device answered"`
}

// poll returns the token of a waiting command line once a person has approved. Before
// that it returns authorization_pending or slow_down; it returns access_denied,
// expired_token or invalid_grant if there will be no token.
func (s *Service) poll(ctx context.Context, in pollIn) (Grant, error) {
	hash := seal.Hash(in.DeviceCode)
	var d deviceRow
	var known bool
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		d, known, err = deviceByHash.Maybe(tx, hash)
		return err
	})
	if err != nil {
		return Grant{}, err
	}
	if !known {
		return Grant{}, refuse("invalid_grant", "There is no such device_code.")
	}
	if d.AccountID != nil && d.UserID != nil {
		ctx = actingFor(ctx, *d.AccountID, *d.UserID, d.Vouched)
	}
	var out Grant
	var refused error
	err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		out, refused = Grant{}, nil
		if d, err = deviceByHash.ForUpdate().One(tx, hash); err != nil {
			return err
		}
		switch {
		case d.TokenID != nil:
			refused = refuse("invalid_grant", "The device_code was used before. The token it gave has been revoked.")
			return s.Tokens.Revoke(tx, *d.TokenID)
		case !tx.Now.Before(d.ExpiresAt):
			refused = refuse("expired_token", "Nobody approved in time. Start again.")
			return nil
		case d.Decision == denied:
			refused = refuse("access_denied", "The user said no.")
			return nil
		case d.Decision == pending || d.Scopes == nil || tx.Account == "":
			refused = refuse("authorization_pending", "Nobody has decided yet.")
			// Half the interval is enough, because the network may bring two polls
			// closer together than they were sent.
			if d.PolledAt != nil && tx.Now.Sub(*d.PolledAt) < pollEvery/2 {
				refused = refuse("slow_down", "Wait as many seconds as interval says between polls, and five more from now on.")
			}
			_, err := pollDevice.Exec(tx, hash, tx.Micros())
			return err
		}
		m, member, err := s.mint(tx, *d.UserID, d.Name, d.Scopes.V)
		if !member {
			refused = refuse("access_denied", "The user does not belong to the account any more.")
		}
		if err != nil || !member {
			return err
		}
		out = granted(m)
		_, err = spendDevice.Exec(tx, tx.Account, hash, m.ID)
		return err
	})
	if err == nil {
		err = refused
	}
	return out, err
}

type devicePageIn struct {
	UserCode string `json:"user_code,omitempty" doc:"the code that the command line shows"`
}

// showDevice asks the signed-in person for the code, and then for the decision.
func (s *Service) showDevice(ctx context.Context, in devicePageIn) (op.Reply, error) {
	a := policy.From(ctx)
	if !signedIn(a) {
		back := devicePath
		if in.UserCode != "" {
			back += "?" + url.Values{"user_code": {in.UserCode}}.Encode()
		}
		return toSignIn(back), nil
	}
	if in.UserCode == "" {
		return render(ctx, 200, enterPage, "", "")
	}
	var d deviceRow
	var known bool
	var names namesRow
	var sealed string
	var refused error
	var scopes policy.Set
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if d, known, err = deviceByCode.Maybe(tx, normalizeCode(in.UserCode)); err != nil {
			return err
		}
		if known = known && d.Decision == pending && tx.Now.Before(d.ExpiresAt); !known {
			return nil
		}
		if scopes, refused = s.narrow(strings.Join(d.Asked.V, " "), a); refused != nil {
			return nil
		}
		if names, err = namesOf(tx, a.AccountID, a.UserID); err != nil {
			return err
		}
		sealed, err = s.issue(sealDevice, ticket{
			ID:      d.Hash,
			Session: a.CredentialID,
			User:    a.UserID,
			Account: a.AccountID,
			Active:  a.AccountID,
			Expires: d.ExpiresAt,
			Scopes:  scopes,
			Name:    d.Name,
		})
		return err
	})
	switch {
	case err != nil:
		return op.Reply{}, err
	case !known:
		return render(ctx, 404, enterPage, "Nothing waits with this code. Codes are good for ten minutes.", "")
	case refused != nil:
		return render(ctx, 403, enterPage, fault.From(refused).Detail, "")
	}
	return render(ctx, 200, devicePage, consent{
		Action:  devicePath,
		Name:    d.Name,
		Code:    d.UserCode,
		User:    names.Login,
		Account: names.Account,
		Scopes:  inWords(scopes),
		Ticket:  sealed,
		Days:    int(tokenLife.Hours() / 24),
	}, "")
}

// normalizeCode returns a user code in its stored form, however a person has typed
// it.
func normalizeCode(code string) string {
	code = strings.ToUpper(strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return -1
		}
		return r
	}, code))
	if len(code) == 8 {
		code = code[:4] + "-" + code[4:]
	}
	return code
}

// decideDevice carries out the person's decision about a command line.
func (s *Service) decideDevice(ctx context.Context, in decisionIn) (op.Reply, error) {
	a := policy.From(ctx)
	allowed, err := in.allowed()
	if err == nil {
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			t, err := s.open(tx, sealDevice, in.Ticket, a)
			if err != nil {
				return err
			}
			decision := denied
			if allowed {
				decision = approved
			}
			n, err := decideDevice.Exec(tx, decideDeviceArgs{
				Hash: t.ID, Decision: decision, AccountID: tx.Account, UserID: t.User,
				Scopes: db.JSON[[]string]{V: t.Scopes.Names()}, Vouched: a.Bound, ExpiresAt: tx.Micros(),
			})
			if err != nil {
				return err
			}
			if n == 0 {
				return badTicket("This command line was decided on before, or has given up waiting.")
			}
			return decidedEvents[decision].Record(tx, event.Subject{ID: t.ID[:16]}, deviceData{Name: t.Name, Scopes: t.Scopes.Names()})
		})
	}
	switch {
	case err != nil:
		return op.Reply{}, err
	case !allowed:
		return render(ctx, 200, saidPage, said{"Cancelled", "The command line gets nothing. You may close this window."}, "")
	}
	return render(ctx, 200, saidPage, said{"Signed in", "The command line goes on by itself. You may close this window."}, "")
}
