package departure

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/attestation"
	"yardmaster/internal/seal"
)

// PredicateType is described in docs/departure.md. Another version has another name.
const PredicateType = "urn:yardmaster:account-deletion:v1"

// purpose is that of the keys that sign proofs.
const purpose = "account-deletion"

// Signer is the platform's key of proofs.
func Signer(ring *seal.Keyring) ed25519.PrivateKey { return ring.Signers(purpose)[0] }

// Stays are rows that are left, and why.
type Stays struct {
	Rows int64  `json:"rows"`
	Why  string `json:"why"`
}

// Deletion is what was removed of an account, and what was not.
type Deletion struct {
	AccountID    string           `json:"account_id"`
	Login        string           `json:"login"`
	Program      string           `json:"program"`
	By           string           `json:"by"`             // owner or operator
	Archive      string           `json:"archive_sha256"` // empty: an owner had it deleted without one
	ArchiveMade  time.Time        `json:"archive_made_at"`
	Record       Record           `json:"record"`  // where its audit chain ended
	Removed      map[string]int64 `json:"removed"` // rows by table
	Stays        map[string]Stays `json:"stays"`   // rows by table
	People       int64            `json:"people"`  // who belonged to it alone, and went with it
	PeopleStay   int64            `json:"people_stay"`
	Repositories []Repository     `json:"repositories"`
	Objects      []Object         `json:"objects"`
	Mirrors      []Mirror         `json:"mirrors"` // copies of repositories at code hosts that were looked for
	Mails        int64            `json:"mails"`   // mails that were files, and were found
	RowsGoneAt   time.Time        `json:"rows_gone_at"`
	FilesGoneAt  time.Time        `json:"files_gone_at"`
}

// Mirror is a server's copy of a repository at a code host.
type Mirror struct {
	Host   string `json:"host"`
	Number string `json:"number"`          // of the repository, at its host
	Stays  bool   `json:"stays,omitempty"` // it is another account's repository, too
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Deletion  `json:"predicate"`
}

// Sign makes the proof of a deletion: an in-toto statement in a DSSE envelope, a line of JSON. Its
// subject has the sum of the archive, or without one the hash at which the record ended.
func Sign(key ed25519.PrivateKey, d Deletion) ([]byte, error) {
	digest := d.Archive
	if digest == "" {
		digest = d.Record.Hash
	}
	return attestation.SignAny(key, statement{
		Type: attestation.StatementType, PredicateType: PredicateType, Predicate: d,
		Subject: []subject{{Name: "account:" + d.AccountID, Digest: map[string]string{"sha256": digest}}},
	})
}

// Verify returns what a proof says, if one of the keys has signed it.
func Verify(envelope []byte, keys ...ed25519.PublicKey) (Deletion, error) {
	payload, err := attestation.VerifyAny(envelope, keys...)
	if err != nil {
		return Deletion{}, proofError(err)
	}
	var s statement
	if err := json.Unmarshal(payload, &s); err != nil {
		return Deletion{}, fmt.Errorf("this is no proof that an account was deleted: %w", err)
	}
	if s.Type != attestation.StatementType || s.PredicateType != PredicateType {
		return Deletion{}, fmt.Errorf("this is no proof that an account was deleted: it says %.80q", s.PredicateType)
	}
	return s.Predicate, nil
}

func proofError(err error) error {
	if errors.Is(err, attestation.ErrForm) {
		return errors.New("this is no proof that an account was deleted")
	}
	return err
}
