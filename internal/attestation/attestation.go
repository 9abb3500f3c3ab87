// Package attestation makes, signs and verifies statements about what a merge came of. A
// statement is an in-toto Statement v1 (in-toto attestation framework, spec/v1/statement.md) in a
// DSSE envelope (secure-systems-lab/dsse, protocol.md and envelope.md), signed with Ed25519. What
// it needs to be verified is the envelope and the public key, no server.
//
//   - attestation.go: the envelope
//   - merge.go: what is said about a merge
package attestation

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/event/hashchain"
)

// The types by which others know what an envelope holds.
const (
	PayloadType   = "application/vnd.in-toto+json"
	StatementType = "https://in-toto.io/Statement/v1"
	// PredicateType is described in docs/provenance.md. Another version has another name.
	PredicateType = "urn:yardmaster:merge:v1"
)

// MaxSize is the most bytes of an envelope that is read.
const MaxSize = 1 << 20

// Envelope is a payload with its signatures.
type Envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     string      `json:"payload"` // base64
	Signatures  []Signature `json:"signatures"`
}

// Signature is one signature of an envelope.
type Signature struct {
	KeyID string `json:"keyid"` // a hint, which nothing vouches for
	Sig   string `json:"sig"`   // base64
}

// pae is the pre-authentication encoding of DSSE: what a signature covers.
func pae(payloadType string, payload []byte) []byte {
	var b bytes.Buffer
	b.WriteString("DSSEv1 " + strconv.Itoa(len(payloadType)) + " " + payloadType + " " + strconv.Itoa(len(payload)) + " ")
	b.Write(payload)
	return b.Bytes()
}

// Sign makes the envelope of a statement: one line of JSON, without a line break.
func Sign(key ed25519.PrivateKey, s Statement) ([]byte, error) { return SignAny(key, s) }

// SignAny is Sign for a statement about something else than a merge.
func SignAny(key ed25519.PrivateKey, statement any) ([]byte, error) {
	payload, err := json.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("encode the statement: %w", err)
	}
	return json.Marshal(Envelope{
		PayloadType: PayloadType, Payload: base64.StdEncoding.EncodeToString(payload),
		Signatures: []Signature{{
			KeyID: KeyID(key.Public().(ed25519.PublicKey)),
			Sig:   base64.StdEncoding.EncodeToString(ed25519.Sign(key, pae(PayloadType, payload))),
		}},
	})
}

// PublicKey is the public half of a key, as people note it down: 43 characters of base64url.
func PublicKey(key ed25519.PrivateKey) string { return hashchain.PublicKey(key) }

// ParseKey reads what PublicKey writes.
func ParseKey(text string) (ed25519.PublicKey, error) { return hashchain.ParsePublicKey(text) }

// KeyID names a public key: the first 8 hex digits of its SHA-256.
func KeyID(key ed25519.PublicKey) string { return hashchain.KeyID(key) }

// Errors of Verify.
var (
	ErrForm = errors.New("this is no signed statement about a merge")
	ErrKey  = errors.New("no signature is by one of the keys: the statement was changed, or signed by somebody else")
)

// Verify returns the statement of an envelope, if one of the keys has signed it. It fails with
// ErrForm or ErrKey otherwise. Nothing of an envelope is to be believed before.
func Verify(envelope []byte, keys ...ed25519.PublicKey) (s Statement, err error) {
	payload, err := VerifyAny(envelope, keys...)
	if err != nil {
		return s, err
	}
	return s, read(payload, &s)
}

// VerifyAny is Verify for a statement about anything: it returns what was signed.
func VerifyAny(envelope []byte, keys ...ed25519.PublicKey) (payload []byte, err error) {
	payload, signatures, err := open(envelope)
	if err != nil {
		return nil, err
	}
	signed := pae(PayloadType, payload)
	for _, sig := range signatures {
		for _, key := range keys {
			if ed25519.Verify(key, signed, sig) {
				return payload, nil
			}
		}
	}
	return nil, ErrKey
}

// open takes an envelope apart, which may be anybody's.
func open(envelope []byte) (payload []byte, signatures [][]byte, err error) {
	if len(envelope) > MaxSize {
		return nil, nil, fmt.Errorf("%w: it is larger than 1 MiB", ErrForm)
	}
	var e Envelope
	if err := json.Unmarshal(envelope, &e); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if e.PayloadType != PayloadType {
		return nil, nil, fmt.Errorf("%w: its payload is %.80q", ErrForm, e.PayloadType)
	}
	if payload, err = base64.StdEncoding.Strict().DecodeString(e.Payload); err != nil {
		return nil, nil, fmt.Errorf("%w: its payload is not base64", ErrForm)
	}
	for _, s := range e.Signatures {
		sig, err := base64.StdEncoding.Strict().DecodeString(s.Sig)
		if err != nil || len(sig) != ed25519.SignatureSize {
			return nil, nil, fmt.Errorf("%w: a signature is not base64 of 64 bytes", ErrForm)
		}
		signatures = append(signatures, sig)
	}
	return payload, signatures, nil
}

// read decodes a statement that was verified.
func read(payload []byte, s *Statement) error {
	if err := json.Unmarshal(payload, s); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	switch {
	case s.Type != StatementType:
		return fmt.Errorf("%w: it is a %.80q", ErrForm, s.Type)
	case s.PredicateType != PredicateType:
		return fmt.Errorf("%w: it says %.80q", ErrForm, s.PredicateType)
	case len(s.Subject) == 0 || s.Subject[0].Digest["gitCommit"] == "":
		return fmt.Errorf("%w: it is about no commit", ErrForm)
	}
	return nil
}
