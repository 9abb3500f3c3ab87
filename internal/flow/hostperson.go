package flow

import (
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/hosttoken"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/policy"
)

// HostPersons tells which user somebody at a code host is.
type HostPersons struct {
	// Issuers are the issuers of identities that people sign in with, by host.
	Issuers map[string]string
}

// User finds a member of tx.Account by what the host says of somebody: by the token that
// the member has there, else by how they sign in. userID is "" if it is nobody known. sure
// is false if only a login tells, which may have another owner by now.
func (p HostPersons) User(tx *db.Tx, host string, who codehost.User) (userID string, sure bool, err error) {
	if who.Bot || who.Own {
		return "", false, nil
	}
	if userID, sure, err = hosttoken.UserAt(tx, host, who.ID, who.Login); err != nil || userID != "" && sure {
		return userID, sure, err
	}
	issuer := p.Issuers[host]
	if issuer == "" || who.ID == "" {
		return userID, false, nil
	}
	signed, err := signin.UserOf(tx, issuer, who.ID)
	if err != nil || signed == "" {
		return userID, false, err
	}
	if member, err := people.IsMember(tx, signed); err != nil || !member {
		return userID, false, err
	}
	return signed, true, nil
}

// barredHere tells whether a member of tx.Account may not decide about pull requests.
func barredHere(tx *db.Tx, userID string) (bool, error) {
	role, ok, err := people.Role(tx, tx.Account, userID)
	if err != nil || !ok {
		return false, err
	}
	_, approved, err := people.Standing(tx, userID)
	return !approved || !role.Ceiling().Has(policy.Scopes(policy.WritePRs)), err
}
