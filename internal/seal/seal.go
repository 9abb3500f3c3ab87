// Package seal encrypts stored secrets and verifies presented ones. It derives a
// key for each purpose and account from the master keys (lines of a file, or given
// by configuration); a value that is sealed for one purpose cannot be opened for
// another. Tokens are never sealed: the database has only their SHA-256.
package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"
)

// Hash is the stored form of a token: its SHA-256 in hex. A token has 256 random
// bits, so it needs no salt and no stretching.
func Hash(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

// Equal compares two secrets in constant time.
func Equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Parameters of argon2id (RFC 9106, second recommended option, with the memory
// of 19 MiB that keeps a sign-in under 50 ms on small machines).
const (
	argonTime    = 2
	argonThreads = 1
)

var argonMemory uint32 = 19 << 10 // KiB; ForTests alone makes it less

// ForTests makes passwords cheap that are hashed from now on. The main function of tests
// calls it (internal/db/dbtest) before they begin; the program never does.
func ForTests() { argonMemory = 64 }

// Password hashes a password with argon2id in the PHC string format.
func Password(plain string) string {
	var salt [16]byte
	rand.Read(salt[:])
	h := argon2.IDKey([]byte(plain), salt[:], argonTime, argonMemory, argonThreads, 32)
	e := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, argonMemory, argonTime, argonThreads, e.EncodeToString(salt[:]), e.EncodeToString(h))
}

// decoy is the hash that CheckPassword checks for an unknown user, so that the
// answer takes as long as for a wrong password.
var decoy = sync.OnceValue(func() string { return Password("a password nobody has") })

// CheckPassword tells whether plain matches the hash. An empty hash never matches,
// and takes the same time.
func CheckPassword(hash, plain string) bool {
	known := hash != ""
	if !known {
		hash = decoy()
	}
	var v, m, t, p int
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &v, &m, &t, &p); err != nil || v != argon2.Version ||
		t < 1 || p < 1 || p > 255 {
		return false
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(want) == 0 {
		return false
	}
	got := argon2.IDKey([]byte(plain), salt, uint32(t), uint32(m), uint8(p), uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1 && known
}
