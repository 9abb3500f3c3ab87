package token

import (
	"context"
	"strconv"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/seal"
)

const group = "API tokens"

// Ops returns the capabilities of this package.
func (s *Service) Ops() []op.Op {
	return []op.Op{
		op.New(op.Row{
			ID:      "token.mint",
			Method:  "POST",
			Path:    "/v1/tokens",
			Group:   group,
			Rule:    policy.Require(policy.WriteAccount),
			Status:  201,
			NoStore: true,
			Summary: "Mint a personal access token; its plaintext is shown once",
			Doc: "The token acts for whoever mints it, in this account alone, with the scopes asked for, none of which may " +
				"go beyond mintable_scopes. Without scopes it has those of the minter's role. Scopes over the whole platform " +
				"(admin:read:…) have to be named, and expires_in_days of at most 90 with them. Without any body it has all of " +
				"mintable_scopes, and ends after 30 days, or with the token that mints it, if that holds scopes over the platform. Only its hash is kept: the " +
				"plaintext cannot be shown again.",
		}, s.mint),
		op.New(op.Row{
			ID:      "token.list",
			Method:  "GET",
			Path:    "/v1/tokens",
			Group:   group,
			Rule:    policy.Require(policy.ReadAccount),
			Paging:  &op.Paging{Default: 25, Max: 100},
			Summary: "The account's tokens, masked, revoked ones included, newest first",
			Doc:     "mintable_scopes is what this caller could put on a new token. Operator tokens are listed to their operator alone.",
		}, s.list),
		op.New(op.Row{
			ID:      "token.rename",
			Method:  "PATCH",
			Path:    "/v1/tokens/{id}",
			Group:   group,
			Rule:    policy.Require(policy.WriteAccount),
			Summary: "Change a token's name",
			Doc:     "The name is for people; two tokens may have the same.",
		}, s.rename),
		op.New(op.Row{
			ID:      "token.revoke",
			Method:  "DELETE",
			Path:    "/v1/tokens/{id}",
			Group:   group,
			Rule:    policy.Require(policy.WriteAccount),
			Summary: "Revoke a token; again is no error",
			Doc:     "Stops at the next request. The row stays on the list, revoked. An operator token is its operator's alone to revoke.",
		}, s.revoke),
		op.New(op.Row{
			ID:      "operator_token.issue",
			Method:  "POST",
			Path:    "/v1/admin/operator-tokens",
			Group:   group,
			Rule:    policy.Require(policy.AdminReadPlat),
			Status:  201,
			NoStore: true,
			Refuses: []op.Refusal{{Status: 403, Slug: "reauth-required"}},
			Summary: "Issue an operator token for an hour, to a session that is freshly signed in; its plaintext is shown once",
			Doc: "For the one class of scopes that no other token may hold. It needs a platform admin in a browser who " +
				"signed in within the last hour; otherwise the answer is 403 reauth-required, and signing in again at " +
				"/auth/reauth helps. The token lives 60 minutes.",
		}, s.issue),
	}
}

type mintIn struct {
	op.Bodied
	Scopes        []string `json:"scopes,omitempty" maxItems:"64" example:"[\"read:tasks\",\"write:tasks\"]" doc:"what it may do: a subset of mintable_scopes; left out: those of the role"`
	Name          *string  `json:"name" maxLength:"100" example:"nightly" doc:"name to tell it by; null or left out: none"`
	ExpiresInDays *int     `json:"expires_in_days" minimum:"1" maximum:"365" example:"90" doc:"after how many days it ends, with scopes over the platform at most 90; left out: never"`
}

func (s *Service) mint(ctx context.Context, in mintIn) (MintedToken, error) {
	a := policy.From(ctx)
	ceiling := mintable(a)
	want := ceiling &^ policy.PlatformRead
	if in.NoBody {
		want = ceiling
		if days := int(bodylessLife / day); want&policy.PlatformRead != 0 {
			in.ExpiresInDays = &days
		}
	}
	if in.Scopes != nil {
		var unknown []string
		if want, unknown = policy.ParseScopes(in.Scopes); len(unknown) > 0 {
			return MintedToken{}, fault.Field("scopes", "has no scope named "+strconv.Quote(unknown[0]))
		}
		if over := want &^ ceiling; over != 0 {
			return MintedToken{}, fault.Field("scopes", "goes beyond what this credential may mint: "+over.Names()[0])
		}
	}
	if want == 0 {
		return MintedToken{}, fault.Field("scopes", "must name at least one scope")
	}
	var out MintedToken
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		var expires *time.Time
		if in.ExpiresInDays != nil {
			t := tx.Now.Add(time.Duration(*in.ExpiresInDays) * day)
			expires = &t
		}
		if a.Credential == policy.PAT && want&policy.PlatformRead != 0 && !a.ExpiresAt.IsZero() && expires != nil &&
			expires.After(a.ExpiresAt) {
			if !in.NoBody {
				return fault.Field("expires_in_days", "must not go beyond the end of the token that mints it, with scopes over the platform")
			}
			expires = &a.ExpiresAt
		}
		var err error
		out, err = Mint(tx, policy.PAT, a.UserID, in.Name, want, expires)
		return err
	})
	return out, err
}

// Mint makes a token in tx.Account and records the event. An operator token is
// recorded on the platform's record, because it has no rights in the account. A token
// with scopes over the platform needs an end within platformLife; Mint returns a
// fault.Invalid about expires_in_days otherwise. What a caller mints that an identity
// provider of the account has vouched for is no more than that caller (policy.Actor.Bound).
func Mint(tx *db.Tx, kind policy.Credential, userID string, name *string, scopes policy.Set, expires *time.Time) (MintedToken, error) {
	if kind == policy.PAT && scopes&policy.PlatformRead != 0 && (expires == nil || expires.Sub(tx.Now) > platformLife) {
		return MintedToken{}, fault.Field("expires_in_days", "must be at most 90 with scopes over the whole platform: "+
			(scopes & policy.PlatformRead).Names()[0])
	}
	plain := id.Secret(id.PAT)
	out := MintedToken{ID: id.New(), Name: name, Prefix: plain[:len(id.PAT)+4], Scopes: scopes.Names(), ExpiresISO: expires, Token: plain}
	var user *string
	if userID != "" {
		user = &userID
	}
	if _, err := insert.Exec(tx, insertArgs{
		ID: out.ID, AccountID: tx.Account, UserID: user, Kind: string(kind), Name: name, Prefix: out.Prefix,
		Hash: seal.Hash(plain), Scopes: db.JSON[[]string]{V: out.Scopes}, ExpiresAt: expires, Vouched: policy.From(tx.Context()).Bound,
		CreatedAt: tx.Micros(),
	}); err != nil {
		return MintedToken{}, err
	}
	about, data := event.Subject{ID: out.ID}, mintedData{Scopes: out.Scopes, Kind: kind}
	if kind == policy.Operator {
		return out, mintedEvent.Operated(tx, about, data, nil)
	}
	if err := Minted.Send(tx, userID); err != nil {
		return MintedToken{}, err
	}
	return out, mintedEvent.Record(tx, about, data)
}

type listIn struct{ op.PageIn }

func (s *Service) list(ctx context.Context, in listIn) (Roster, error) {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = list(tx, in.PageIn)
		return err
	})
	if err != nil {
		return Roster{}, err
	}
	p := op.NewPage(in.PageIn, rows, func(r row) []string { return op.TimeKey(r.CreatedAt, r.ID) })
	out := Roster{Data: make([]Token, 0, len(p.Data)), NextCursor: p.NextCursor, MintableScopes: mintable(policy.From(ctx)).Names()}
	for _, r := range p.Data {
		out.Data = append(out.Data, r.token())
	}
	return out, nil
}

type renameIn struct {
	ID   string  `json:"id" format:"uuid" doc:"id of the token"`
	Name *string `json:"name" required:"true" maxLength:"100" doc:"null clears it"`
}

func (s *Service) rename(ctx context.Context, in renameIn) (out Token, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := find(tx, in.ID)
		if err != nil {
			return err
		}
		if _, err := rename.Exec(tx, tx.Account, in.ID, in.Name); err != nil {
			return err
		}
		r.Name = in.Name
		out = r.token()
		return r.record(tx, renamedEvent)
	})
	return out, err
}

type revokeIn struct {
	ID string `json:"id" format:"uuid" doc:"id of the token"`
}

func (s *Service) revoke(ctx context.Context, in revokeIn) (out Token, err error) {
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.end(tx, in.ID)
		out = r.token()
		return err
	})
	return out, err
}

// Revoke revokes a token of tx.Account and records the event. Revoking it again is no
// error. It returns fault.NotFound if there is no such token.
func (s *Service) Revoke(tx *db.Tx, id string) error {
	_, err := s.end(tx, id)
	return err
}

// find finds a token of tx.Account that the caller may see. It returns fault.NotFound if
// there is none.
func find(tx *db.Tx, id string) (row, error) {
	r, ok, err := byID.Maybe(tx, tx.Account, id, policy.From(tx.Context()).UserID)
	if err == nil && !ok {
		err = fault.Missing("token")
	}
	return r, err
}

func (s *Service) end(tx *db.Tx, id string) (row, error) {
	r, err := find(tx, id)
	if err != nil {
		return row{}, err
	}
	n, err := revoke.Exec(tx, tx.Account, id, tx.Micros())
	if err != nil {
		return row{}, err
	}
	if n > 0 {
		r.RevokedAt = &tx.Now
	}
	if err := event.CredentialDropped.Send(tx, r.Hash); err != nil {
		return row{}, err
	}
	if n == 0 {
		return r, nil // revoked before
	}
	return r, r.record(tx, revokedEvent)
}

// record records what happened to a token: of an operator's, on the platform's record.
func (r row) record(tx *db.Tx, kind event.Kind[event.None]) error {
	if r.Kind == policy.Operator {
		return kind.Operated(tx, event.Subject{ID: r.ID}, event.None{}, nil)
	}
	return kind.Record(tx, event.Subject{ID: r.ID}, event.None{})
}
