// Package id makes identifiers: random and time-ordered UUIDs, and one-time
// secrets in a form that secret scanners recognise.
package id

import (
	"crypto/rand"
	"encoding/base64"
	"hash/crc32"
	"math/big"
	"strings"

	"github.com/google/uuid"
)

// New is a time-ordered id (UUIDv7): a later id sorts later.
func New() string { return uuid.Must(uuid.NewV7()).String() }

// Random is an id without order (UUIDv4), for ids whose first characters must
// not collide within a minute: task ids name branches.
func Random() string { return uuid.NewString() }

// Valid tells whether s is a UUID in canonical form.
func Valid(s string) bool {
	u, err := uuid.Parse(s)
	return err == nil && u.String() == s
}

// Opaque is 32 random bytes in URL-safe base64: a secret that only the service
// reads back, for example from a cookie.
func Opaque() string {
	var b [32]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Prefixes of the secrets that callers hold.
const (
	PAT        = "dev_pat_" // personal access token
	RunToken   = "dev_run_" // durable token of a box
	Enrollment = "dev_enr_" // one-time enrollment token
	Attempt    = "dev_att_" // token of one attempt of one run: model, git, artifact
	Setup      = "dev_set_" // first-boot setup
	Invite     = "dev_inv_" // one-time link of an invitation
	SignIn     = "dev_sin_" // one-time address that signs in
	Webhook    = "dev_whk_" // signs what is sent to a webhook
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Secret is prefix, 32 random bytes in base62 (43 characters) and the CRC-32 of
// these two in base62 (6 characters).
func Secret(prefix string) string {
	var b [32]byte
	rand.Read(b[:])
	body := prefix + encode(b[:], 43)
	return body + checksum(body)
}

// Typed is a short code for a person to type: eight of twenty letters in two
// groups. The letters form no words and cannot be confused with each other. The
// code is safe only if it expires within minutes and guesses are limited.
func Typed() string {
	const letters = "BCDFGHJKLMNPQRSTVWXZ"
	n := make([]byte, 8)
	for i := range n {
		k, _ := rand.Int(rand.Reader, big.NewInt(int64(len(letters)))) // the reader never fails
		n[i] = letters[k.Int64()]
	}
	return string(n[:4]) + "-" + string(n[4:])
}

// Digits is a random number of n digits as text, for a person to copy from a mail.
// It is safe only if it expires within minutes and guesses are limited.
func Digits(n int) string {
	out := make([]byte, n)
	for i := range out {
		k, _ := rand.Int(rand.Reader, big.NewInt(10)) // the reader never fails
		out[i] = '0' + byte(k.Int64())
	}
	return string(out)
}

// Checked tells whether s has the prefix and a correct checksum. It spares a
// lookup in the database, and proves nothing.
func Checked(prefix, s string) bool {
	if !strings.HasPrefix(s, prefix) || len(s) != len(prefix)+49 {
		return false
	}
	return checksum(s[:len(s)-6]) == s[len(s)-6:]
}

func checksum(s string) string {
	n := crc32.ChecksumIEEE([]byte(s))
	var out [6]byte
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = base62[n%62]
		n /= 62
	}
	return string(out[:])
}

func encode(b []byte, width int) string {
	n := new(big.Int).SetBytes(b)
	out := make([]byte, width)
	base, rem := big.NewInt(62), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, rem)
		out[i] = base62[rem.Int64()]
	}
	return string(out)
}
