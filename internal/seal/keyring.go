package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Keyring holds master keys of 32 bytes each. The first key seals and signs; every
// key opens and verifies, so that values of an older key stay valid until that key
// is removed.
type Keyring struct{ keys []master }

type master struct {
	id  string
	key []byte
}

// maxKeys bounds a keyring: Unseal tries every key on a value without a key id.
const maxKeys = 16

// New makes a keyring of one new key.
func New() *Keyring {
	var k [32]byte
	rand.Read(k[:])
	return &Keyring{[]master{newMaster(k[:])}}
}

func newMaster(key []byte) master {
	m := master{key: key}
	m.id = hex.EncodeToString(m.derive("key-id", 4))
	return m
}

// Parse reads 1 to 16 master keys of 64 hex digits each, the sealing key first,
// separated by white space or commas.
func Parse(text string) (*Keyring, error) {
	k := &Keyring{}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		b, err := hex.DecodeString(word)
		if err != nil || len(b) != 32 {
			return nil, errors.New("a master key must be 64 hex digits")
		}
		m := newMaster(b)
		if slices.Contains(k.IDs(), m.id) {
			return nil, fmt.Errorf("the master key %s is there twice", m.id)
		}
		k.keys = append(k.keys, m)
	}
	switch n := len(k.keys); {
	case n == 0:
		return nil, errors.New("there is no master key: it must be 64 hex digits")
	case n > maxKeys:
		return nil, fmt.Errorf("there are %d master keys, of at most %d", n, maxKeys)
	}
	return k, nil
}

// Reveal is the keys themselves, one on each line, in the form that Parse reads.
func (k *Keyring) Reveal() string {
	var b strings.Builder
	for _, m := range k.keys {
		b.WriteString(hex.EncodeToString(m.key) + "\n")
	}
	return b.String()
}

// ID is the id of the sealing key: 8 hex digits that are derived from the key and
// disclose nothing else of it.
func (k *Keyring) ID() string { return k.keys[0].id }

// IDs are the ids of all keys, the sealing key's first.
func (k *Keyring) IDs() []string {
	ids := make([]string, len(k.keys))
	for i, m := range k.keys {
		ids[i] = m.id
	}
	return ids
}

// Before is a keyring that seals as k does and opens the values of both keyrings.
func (k *Keyring) Before(older *Keyring) (*Keyring, error) {
	return Parse(k.Reveal() + older.Reveal())
}

// Without is the keyring without one key, which must not be the only one.
func (k *Keyring) Without(id string) *Keyring {
	return &Keyring{slices.DeleteFunc(slices.Clone(k.keys), func(m master) bool { return m.id == id })}
}

func (m master) derive(purpose string, size int) []byte {
	b, err := hkdf.Key(sha256.New, m.key, nil, "yardmaster/"+purpose, size)
	if err != nil {
		panic(err) // only for lengths that the package does not use
	}
	return b
}

func (m master) aead(purpose string) cipher.AEAD {
	block, err := aes.NewCipher(m.derive(purpose, 32))
	if err != nil {
		panic(err)
	}
	g, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return g
}

// Versions of a sealed value: "v1." is followed by the ciphertext, "v2." by the id
// of the key, a dot and the ciphertext. Seal makes only the second.
const (
	nameless = "v1."
	named    = "v2."
)

// Seal encrypts for a purpose, such as "provider-key/<account id>". The result is
// safe in a TEXT column.
func (k *Keyring) Seal(purpose string, plain []byte) string {
	m := k.keys[0]
	return named + m.id + "." + base64.RawURLEncoding.EncodeToString(m.aead(purpose).Seal(nil, nil, plain, nil))
}

// KeyOf is the id of the key with which a value was sealed; empty for a value of
// the first version.
func KeyOf(sealed string) string {
	if rest, ok := strings.CutPrefix(sealed, named); ok {
		if id, _, ok := strings.Cut(rest, "."); ok {
			return id
		}
	}
	return ""
}

// UnknownKeyError says that the keyring lacks the key with which a value was
// sealed.
type UnknownKeyError struct{ ID string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("the value is sealed with the master key %s, which is not here", e.ID)
}

// Unseal reverses Seal for the same purpose. It fails as UnsealWith does.
func (k *Keyring) Unseal(purpose, sealed string) ([]byte, error) {
	plain, _, err := k.UnsealWith(purpose, sealed)
	return plain, err
}

// UnsealWith is Unseal, and answers the id of the key that opened the value. It
// fails with *UnknownKeyError for a key that is not in k.
func (k *Keyring) UnsealWith(purpose, sealed string) (plain []byte, id string, err error) {
	tried := k.keys
	body, ok := strings.CutPrefix(sealed, nameless)
	if !ok {
		if id = KeyOf(sealed); id == "" {
			return nil, "", errors.New("sealed value has an unknown version")
		}
		body = sealed[len(named)+len(id)+1:]
		i := slices.Index(k.IDs(), id)
		if i < 0 {
			return nil, "", &UnknownKeyError{id}
		}
		tried = k.keys[i : i+1]
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil, "", errors.New("sealed value is damaged")
	}
	for _, m := range tried {
		if plain, err := m.aead(purpose).Open(nil, nil, b, nil); err == nil {
			return plain, m.id, nil
		}
	}
	return nil, "", errors.New("sealed value does not open with this key")
}

// Sign is the HMAC-SHA256 of msg under the purpose's own key.
func (k *Keyring) Sign(purpose string, msg []byte) []byte { return k.keys[0].sign(purpose, msg) }

func (m master) sign(purpose string, msg []byte) []byte {
	h := hmac.New(sha256.New, m.derive("sign/"+purpose, 32))
	h.Write(msg)
	return h.Sum(nil)
}

// Signatures are the HMACs of msg under each key, the newest key's first: a
// signature from before a replacement of the key is among them.
func (k *Keyring) Signatures(purpose string, msg []byte) [][]byte {
	out := make([][]byte, len(k.keys))
	for i, m := range k.keys {
		out[i] = m.sign(purpose, msg)
	}
	return out
}

// Signers are the purpose's Ed25519 keys (RFC 8032) under each master key, the
// newest first. Their signatures can be verified without a master key.
func (k *Keyring) Signers(purpose string) []ed25519.PrivateKey {
	out := make([]ed25519.PrivateKey, len(k.keys))
	for i, m := range k.keys {
		out[i] = ed25519.NewKeyFromSeed(m.derive("ed25519/"+purpose, ed25519.SeedSize))
	}
	return out
}
