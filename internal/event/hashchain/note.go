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

// Kinds of notes.
const (
	NoteHead   = "head"   // the newest row of an account's chain, as it was then
	NoteKey    = "key"    // a public key that notes are, or were, signed with
	NoteBreak  = "break"  // the chain is no longer what Seq and Hash noted; Reason says how
	NoteAccept = "accept" // somebody knows of the breaks before, and says why; Seq and Hash are what holds from here
)

// Note is what is noted of a chain outside of the database: one line of JSON.
// Its signature is Ed25519 (RFC 8032), in unpadded base64url, over the object in
// canonical form (RFC 8785) without the member "signature".
type Note struct {
	Type    string `json:"type"`
	Account string `json:"account"` // empty: rows of the platform itself, or a key's note
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
	// AfterBreak says that the chain had a break then that nobody had accepted.
	AfterBreak bool   `json:"after_break,omitzero"`
	Reason     string `json:"reason,omitzero"`
	PublicKey  string `json:"public_key,omitzero"` // of NoteKey
	Time       string `json:"time"`                // RFC 3339, in UTC
	Key        string `json:"key"`                 // KeyID of the key that signed
	Signature  string `json:"signature,omitzero"`
}

// KeyID names a public key: the first 8 hex digits of its SHA-256.
func KeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:4])
}

// PublicKey is the public half of a key, as notes spell it.
func PublicKey(key ed25519.PrivateKey) string { return spell(public(key)) }

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func spell(public ed25519.PublicKey) string { return base64.RawURLEncoding.EncodeToString(public) }

// ParsePublicKey reads a public key as notes spell it.
func ParsePublicKey(s string) (ed25519.PublicKey, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("a public key is 43 characters of base64url")
	}
	return b, nil
}

// Sign completes a note and answers its line, without a line break.
func Sign(key ed25519.PrivateKey, at time.Time, n Note) (Note, []byte, error) {
	n.Time, n.Key, n.Signature = at.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano), KeyID(public(key)), ""
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

// unsigned is what the signature of a line covers.
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

// Says is the note for people.
func (n Note) Says() string { return fmt.Sprintf("number %d, noted at %s", n.Seq, n.Time) }
