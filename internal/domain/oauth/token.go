package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/fault"
	"yardmaster/internal/lazy"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

type tokenIn struct {
	GrantType   string `json:"grant_type,omitempty" doc:"must be authorization_code"`
	Code        string `json:"code,omitempty" doc:"the code that the browser brought back"`
	ClientID    string `json:"client_id,omitempty" doc:"what service.oauth_register answered"`
	RedirectURI string `json:"redirect_uri,omitempty" doc:"the one that the code was asked for with"`
	Verifier    string `json:"code_verifier,omitempty" doc:"of PKCE: what the challenge was made of"`
	Resource    string `json:"resource,omitempty" doc:"what the token is for: the address of the MCP endpoint, or left out"`
}

var verifierForm = lazy.New(`^[A-Za-z0-9._~-]{43,128}$`)

// exchange gives a token for a code, once. A code that comes again has leaked: the
// token it gave is revoked. It returns the faults of RFC 6749, section 5.2.
func (s *Service) exchange(ctx context.Context, in tokenIn) (Grant, error) {
	if in.GrantType != grantCode {
		return Grant{}, refuse("unsupported_grant_type", "grant_type must be authorization_code.")
	}
	// The client is checked before the code, because some libraries try first without
	// a client_id and then again with it.
	if _, ok := s.client(in.ClientID); !ok {
		return Grant{}, refuse("invalid_client", "client_id is not one of this server. It belongs in the form; there is no client secret.")
	}
	if !verifierForm.MatchString(in.Verifier) {
		return Grant{}, refuse("invalid_request", "code_verifier must be 43 to 128 unreserved characters.")
	}
	if err := checkResource(op.RequestOf(ctx).BaseURL, in.Resource); err != nil {
		return Grant{}, err
	}
	hash := seal.Hash(in.Code)
	var c codeRow
	var known bool
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		c, known, err = codeByHash.Maybe(tx, hash)
		return err
	})
	if err != nil {
		return Grant{}, err
	}
	if !known {
		return Grant{}, badCode()
	}
	var out Grant
	var refused error
	err = s.DB.Write(actingFor(ctx, c.AccountID, c.UserID, c.Vouched), func(tx *db.Tx) error {
		var ok bool
		out, refused = Grant{}, badCode()
		c, ok, err := codeByHash.ForUpdate().Maybe(tx, hash)
		switch {
		case err != nil || !ok:
			return err
		case c.TokenID != nil:
			return s.Tokens.Revoke(tx, *c.TokenID)
		case !c.matches(in) || !tx.Now.Before(c.ExpiresAt):
			return nil
		}
		m, member, err := s.mint(tx, c.UserID, c.Name, c.Scopes.V)
		if err != nil || !member {
			return err
		}
		out, refused = granted(m), nil
		_, err = spendCode.Exec(tx, tx.Account, hash, m.ID)
		return err
	})
	if err == nil {
		err = refused
	}
	return out, err
}

// badCode returns the same fault for a code that is unknown, used, expired, of
// another client or for another address, or whose verifier is wrong.
func badCode() *fault.Error {
	return refuse("invalid_grant", "The code is not good for this client, redirect_uri and code_verifier, or not any more.")
}

func (c codeRow) matches(in tokenIn) bool {
	sum := sha256.Sum256([]byte(in.Verifier))
	return seal.Equal(c.Challenge, base64.RawURLEncoding.EncodeToString(sum[:])) &&
		seal.Equal(c.Client, clientKey(in.ClientID)) &&
		(in.RedirectURI == "" || in.RedirectURI == c.Redirect)
}

// actingFor returns a context whose actor is the user who allowed the token, in a session that an
// identity provider of the account had vouched for or not.
func actingFor(ctx context.Context, accountID, userID string, vouched bool) context.Context {
	a := policy.Actor{Credential: policy.Session, UserID: userID, AccountID: accountID, Bound: vouched, RequestID: op.RequestOf(ctx).ID}
	return policy.With(db.WithAccount(ctx, accountID), a)
}

// mint mints the token that a user has allowed in tx.Account. member is false, and there is no
// token, if they do not belong there any more.
func (s *Service) mint(tx *db.Tx, userID, name string, scopes []string) (out token.MintedToken, member bool, err error) {
	if _, member, err = people.Role(tx, tx.Account, userID); err != nil || !member {
		return out, member, err
	}
	set, _ := policy.ParseScopes(scopes)
	expires := tx.Now.Add(tokenLife).Truncate(time.Millisecond)
	out, err = token.Mint(tx, policy.PAT, userID, &name, set, &expires)
	return out, true, err
}

// RightsChanged takes back what a user has allowed programs in accounts to which they do not belong
// any more, as far as no program has fetched it. It is a subscriber of event.RightsChanged.
func RightsChanged(tx *db.Tx, userID string) error {
	rows, err := unfetched.All(tx, userID)
	if err != nil {
		return err
	}
	accounts := make([]string, len(rows))
	for i, r := range rows {
		accounts[i] = r.AccountID
	}
	return people.Leave(tx, userID, accounts, func(i int) error {
		_, err1 := dropCode.Exec(tx, tx.Account, rows[i].Hash)
		_, err2 := denyDevice.Exec(tx, tx.Account, rows[i].Hash)
		return errors.Join(err1, err2)
	})
}
