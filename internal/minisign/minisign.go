// Package minisign signs and checks files as the program minisign does: Ed25519 over the BLAKE2b-512
// of a file, and over that signature together with a comment, which therefore can be trusted. A
// signature without the second one, or over the file itself, is not taken.
package minisign

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// The sizes of what is signed and of what is written, in bytes.
const (
	DigestSize = blake2b.Size
	maxText    = 4 << 10 // of a signature
	maxComment = 1 << 10

	idSize    = 8
	keySize   = 2 + idSize + ed25519.PublicKeySize
	proofSize = 2 + idSize + ed25519.SignatureSize
)

var (
	// ErrForm says that a text is no key or no signature.
	ErrForm = errors.New("this is no minisign text")
	// ErrKey says that a signature was made by another key.
	ErrKey = errors.New("the signature is by another key")
	// ErrForged says that a signature does not hold for the file or for its comment.
	ErrForged = errors.New("the signature does not hold")
)

// Key is a public key. Its zero value is by nobody.
type Key struct {
	ID     uint64
	Public ed25519.PublicKey
}

// KeyOf is the key whose id follows from its bytes, so that one is made from a private key alone.
func KeyOf(public ed25519.PublicKey) Key {
	sum := blake2b.Sum512(public)
	return Key{ID: binary.LittleEndian.Uint64(sum[:idSize]), Public: public}
}

// String is the key as minisign takes it with -P.
func (k Key) String() string {
	b := binary.LittleEndian.AppendUint64([]byte("Ed"), k.ID)
	return base64.StdEncoding.EncodeToString(append(b, k.Public...))
}

// Name is the key's id as minisign prints it.
func (k Key) Name() string { return fmt.Sprintf("%016X", k.ID) }

// ParseKey reads what String writes. It fails with ErrForm.
func ParseKey(text string) (Key, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(text))
	if err != nil || len(b) != keySize || string(b[:2]) != "Ed" {
		return Key{}, ErrForm
	}
	return Key{ID: binary.LittleEndian.Uint64(b[2:]), Public: ed25519.PublicKey(b[2+idSize:])}, nil
}

// Digest reads all of r, of which a signature is made.
func Digest(r io.Reader) (out [DigestSize]byte, err error) {
	h, err := blake2b.New512(nil)
	if err != nil {
		return out, err
	}
	if _, err := io.Copy(h, r); err != nil {
		return out, err
	}
	return [DigestSize]byte(h.Sum(nil)), nil
}

// Sign makes the text of a signature of a file, by its digest, with a comment of one line and at
// most 1 KiB. It panics if the comment is longer or has several lines.
func Sign(private ed25519.PrivateKey, digest [DigestSize]byte, comment string) string {
	if len(comment) > maxComment || strings.ContainsAny(comment, "\r\n") {
		panic("minisign: the comment is no short line")
	}
	key := KeyOf(private.Public().(ed25519.PublicKey))
	proof := ed25519.Sign(private, digest[:])
	whole := append(binary.LittleEndian.AppendUint64([]byte("ED"), key.ID), proof...)
	second := ed25519.Sign(private, append(proof[:len(proof):len(proof)], comment...))
	return "untrusted comment: signature by key " + key.Name() + "\n" + base64.StdEncoding.EncodeToString(whole) +
		"\ntrusted comment: " + comment + "\n" + base64.StdEncoding.EncodeToString(second) + "\n"
}

// Verify checks the text of a signature of the file with a digest, and returns its comment. It fails
// with ErrForm, with ErrKey if none of keys has made it, and with ErrForged.
func Verify(keys []Key, digest [DigestSize]byte, text string) (comment string, err error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(text) > maxText || len(lines) != 4 || !strings.HasPrefix(lines[0], "untrusted comment: ") {
		return "", ErrForm
	}
	comment, ok := strings.CutPrefix(lines[2], "trusted comment: ")
	proof, err1 := base64.StdEncoding.Strict().DecodeString(lines[1])
	second, err2 := base64.StdEncoding.Strict().DecodeString(lines[3])
	if !ok || err1 != nil || err2 != nil || len(second) != ed25519.SignatureSize {
		return "", ErrForm
	}
	if len(proof) != proofSize || string(proof[:2]) != "ED" {
		return "", ErrForm
	}
	id, proof := binary.LittleEndian.Uint64(proof[2:]), proof[2+idSize:]
	err = ErrKey
	for _, k := range keys {
		if k.ID != id || len(k.Public) != ed25519.PublicKeySize {
			continue
		}
		whole := append(proof[:len(proof):len(proof)], comment...)
		if ed25519.Verify(k.Public, digest[:], proof) && ed25519.Verify(k.Public, whole, second) {
			return comment, nil
		}
		err = ErrForged
	}
	return "", err
}
