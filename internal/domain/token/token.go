// Package token keeps the personal access tokens: long random secrets of which only a
// hash is stored. A token acts in one account for its whole life, with the scopes
// that it was minted with, which never exceed those of its minter.
package token

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
)

// Token is a token without its plaintext.
type Token struct {
	_          struct{}   `doc:"A personal access token, without its plaintext."`
	ID         string     `json:"id" format:"uuid" doc:"id of the token"`
	Name       *string    `json:"name" example:"nightly" doc:"name to tell it by; null: none"`
	Prefix     string     `json:"prefix" example:"dev_pat_3kTz" doc:"the token's first characters, to tell it by"`
	Scopes     []string   `json:"scopes" example:"[\"read:tasks\",\"write:tasks\"]" doc:"what it may do"`
	ExpiresISO *time.Time `json:"expires_iso" example:"null" doc:"null: permanent"`
	Revoked    bool       `json:"revoked" example:"false" doc:"whether it was revoked"`
	CreatedAt  time.Time  `json:"created_at" doc:"when it was minted"`
	LastUsedAt *time.Time `json:"last_used_at" example:"null" doc:"when it was last used, to within a few minutes; null: never"`
	Advice     *string    `json:"advice" example:"null" doc:"what its owner should do about it; null: nothing"`
}

// MintedToken is the answer of token.mint, the only place that shows the plaintext.
type MintedToken struct {
	_          struct{}   `doc:"A new token. This is the only time that its plaintext is shown." schema:"MintedToken"`
	ID         string     `json:"id" format:"uuid" doc:"id of the token"`
	Name       *string    `json:"name" example:"nightly" doc:"name to tell it by; null: none"`
	Prefix     string     `json:"prefix" example:"dev_pat_3kTz" doc:"its first characters, which lists show"`
	Scopes     []string   `json:"scopes" example:"[\"read:tasks\",\"write:tasks\"]" doc:"what it may do"`
	ExpiresISO *time.Time `json:"expires_iso" example:"null" doc:"when it ends; null: never"`
	Token      string     `json:"token" example:"dev_pat_…" doc:"the plaintext, shown once"`
}

// Roster is the answer of token.list.
type Roster struct {
	_              struct{} `doc:"A page of the account's tokens."`
	Data           []Token  `json:"data" doc:"the tokens, newest first"`
	NextCursor     *string  `json:"next_cursor" example:"null" doc:"send it back as cursor for the page after this one; null: nothing follows"`
	MintableScopes []string `json:"mintable_scopes" example:"[\"read:tasks\",\"write:tasks\"]" doc:"what this caller may put on a new token; empty: neither mint nor revoke"`
}

// Needs are the dependencies of Service.
type Needs struct{ DB *db.DB }

// Service mints and revokes tokens.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Lifetimes of tokens with scopes over the platform: the longest, and the one of a token
// that is minted without a body.
const (
	day          = 24 * time.Hour
	platformLife = 90 * day
	bodylessLife = 30 * day
)

// lasting is the advice about a token from before such tokens had to end within platformLife.
const lasting = "It may look at all accounts of the server, for longer than 90 days or for ever. Revoke it, and mint one without " +
	"the scopes admin:read:… or with a nearer end."

// mintable returns the scopes that an actor may put on a new token: the actor's own
// without those of operators, and none at all without write:account.
func mintable(a policy.Actor) policy.Set {
	if !a.Scopes.Has(policy.Scopes(policy.WriteAccount)) {
		return 0
	}
	return a.Scopes &^ policy.OperatorOnly
}
