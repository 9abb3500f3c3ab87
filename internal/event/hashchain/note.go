package hashchain

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The kinds of notes.
const (
	NoteHead   = "head"   // the newest row of an account's chain at the time
	NoteKey    = "key"    // a public key with which notes are, or were, signed
	NoteBreak  = "break"  // the chain does not match the note of Seq and Hash any more; Reason says how
	NoteAccept = "accept" // an operator has accepted the earlier breaks for a Reason; the chain has to match Seq and Hash from here on
)

// Note is a note about a chain outside of the database: one line of JSON. Its
// signature is Ed25519 (RFC 8032), in unpadded base64url, over the object in
// canonical form (RFC 8785) without the member "signature".
type Note struct {
	Type    string `json:"type"`
	Account string `json:"account"` // empty: rows of the platform itself, or a note of a key
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
	// AfterBreak says that the chain had a break at the time that was not accepted.
	AfterBreak bool   `json:"after_break,omitzero"`
	Reason     string `json:"reason,omitzero"`
	PublicKey  string `json:"public_key,omitzero"` // of NoteKey
	Time       string `json:"time"`                // RFC 3339, in UTC
	Key        string `json:"key"`                 // KeyID of the signing key
	Signature  string `json:"signature,omitzero"`
}

// KeyID returns the name of a public key: the first 8 hex digits of its SHA-256.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:4])
}

// PublicKey returns the public half of a key in the form of notes.
func PublicKey(key ed25519.PrivateKey) string { return spell(public(key)) }

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func spell(public ed25519.PublicKey) string { return base64.RawURLEncoding.EncodeToString(public) }

// ParsePublicKey reads a public key in the form of notes.
func ParsePublicKey(s string) (ed25519.PublicKey, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("a public key is 43 characters of base64url")
	}
	return b, nil
}

// Sign completes a note and returns it with its line, without a line break.
func Sign(key ed25519.PrivateKey, at time.Time, n Note) (Note, []byte, error) {
	n.Time, n.Key = at.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano), KeyID(public(key))
	n.Signature = ""
	text, err := json.Marshal(n)
	if err == nil {
		text, err = unsigned(text)
	}
	if err != nil {
		return n, nil, err
	}
	n.Signature = base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, text))
	line, err := json.Marshal(n)
	return n, line, err
}

// unsigned returns the bytes that the signature of a line covers.
func unsigned(line []byte) ([]byte, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, err
	}
	delete(members, "signature")
	v, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	text := jsontext.Value(v)
	err = text.Canonicalize()
	return text, err
}

// by tells whether a line was signed with a key.
func by(key ed25519.PublicKey, line []byte, signature string) bool {
	text, err := unsigned(line)
	if err != nil {
		return false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	return err == nil && len(b) == ed25519.SignatureSize && ed25519.Verify(key, text, b)
}

// Says describes the note for people.
func (n Note) Says() string { return fmt.Sprintf("number %d, noted at %s", n.Seq, n.Time) }
