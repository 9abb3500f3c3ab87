// Package token is the roster of personal access tokens: long random secrets
// of which only a hash is kept. A token acts in one account for life, with the
// scopes it was minted with, never more than its minter could hold.
package token

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// Token is a row of the roster; it never holds the plaintext.
type Token struct {
	ID         string     `json:"id"`
	Name       *string    `json:"name"`
	Prefix     string     `json:"prefix" doc:"the token's first characters, to tell it by"`
	Scopes     []string   `json:"scopes"`
	ExpiresISO *time.Time `json:"expires_iso" doc:"null: permanent"`
	Revoked    bool       `json:"revoked"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
}

// MintedToken is the answer of token.mint, the only place the plaintext is
// ever shown.
type MintedToken struct {
	ID         string     `json:"id"`
	Name       *string    `json:"name"`
	Prefix     string     `json:"prefix"`
	Scopes     []string   `json:"scopes"`
	ExpiresISO *time.Time `json:"expires_iso"`
	Token      string     `json:"token" doc:"the plaintext, shown once"`
}

// TokenRoster is the answer of token.list.
type TokenRoster struct {
	Data           []Token  `json:"data"`
	NextCursor     *string  `json:"next_cursor"`
	MintableScopes []string `json:"mintable_scopes" doc:"what this caller may put on a new token; empty: neither mint nor revoke"`
}

// Service mints and revokes tokens.
type Service struct {
	DB *db.DB
	// Dropped tells every cache of credentials that a token is gone.
	Dropped func(hash string)
}

// mintable is what the actor may put on a token it mints itself: its own
// scopes without the operator's, and nothing at all without write:account.
func mintable(a policy.Actor) policy.Set {
	if !a.Scopes.Has(policy.Scopes(policy.WriteAccount)) {
		return 0
	}
	return a.Scopes &^ policy.OperatorOnly
}
