package seal

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/base64"
	"errors"
	"fmt"
)

// Recipient is the key pair of one process (HPKE, RFC 9180). Intermediaries cannot
// read a value that is sealed to its public half; the value is lost with the
// process.
type Recipient struct{ key hpke.PrivateKey }

// NewRecipient makes a key pair.
func NewRecipient() (Recipient, error) {
	k, err := hpke.DHKEM(ecdh.X25519()).GenerateKey()
	return Recipient{k}, err
}

// Public is the public half, for SealTo.
func (r Recipient) Public() string {
	return base64.RawURLEncoding.EncodeToString(r.key.PublicKey().Bytes())
}

// Open opens a value that SealTo sealed to r for the same purpose.
func (r Recipient) Open(purpose, sealed string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return nil, errors.New("sealed value is damaged")
	}
	plain, err := hpke.Open(r.key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte("yardmaster/"+purpose), b)
	if err != nil {
		return nil, errors.New("the value was not sealed to this key")
	}
	return plain, nil
}

// SealTo encrypts plain for the owner of a public key and a purpose.
func SealTo(public, purpose string, plain []byte) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(public)
	if err != nil {
		return "", errors.New("the public key is damaged")
	}
	k, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(b)
	if err != nil {
		return "", errors.New("the public key is none")
	}
	sealed, err := hpke.Seal(k, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte("yardmaster/"+purpose), plain)
	if err != nil {
		return "", fmt.Errorf("seal to a public key: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}
