// Package seal keeps secrets at rest and checks the ones that come in. A
// master key (a file in the data folder, or given by configuration) derives a
// key for each purpose and account; what is sealed for one cannot be opened as
// another. Tokens are never sealed: only their SHA-256 is kept.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/argon2"
)

// Keyring derives keys from one 32-byte master key.
type Keyring struct{ master []byte }

// Open reads the master key from path (64 hex digits) and makes it on first
// use, readable by the owner only.
func Open(path string) (*Keyring, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var k [32]byte
		rand.Read(k[:])
		if err := writeOnce(path, []byte(hex.EncodeToString(k[:])+"\n")); err != nil {
			return nil, fmt.Errorf("create master key: %w", err)
		}
		b, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read master key: %w", err)
	}
	return Parse(strings.TrimSpace(string(b)))
}

// writeOnce leaves a file that somebody else made first as it is.
func writeOnce(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Parse takes a master key of 64 hex digits.
func Parse(s string) (*Keyring, error) {
	k, err := hex.DecodeString(s)
	if err != nil || len(k) != 32 {
		return nil, errors.New("the master key must be 64 hex digits")
	}
	return &Keyring{k}, nil
}

func (k *Keyring) derive(purpose string) []byte {
	b, err := hkdf.Key(sha256.New, k.master, nil, "yardmaster/"+purpose, 32)
	if err != nil {
		panic(err) // only for lengths that do not occur
	}
	return b
}

func (k *Keyring) aead(purpose string) cipher.AEAD {
	block, err := aes.NewCipher(k.derive(purpose))
	if err != nil {
		panic(err)
	}
	g, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return g
}

// Seal encrypts for a purpose, say "provider-key/<account id>". The text is
// safe in a TEXT column.
func (k *Keyring) Seal(purpose string, plain []byte) string {
	return "v1." + base64.RawURLEncoding.EncodeToString(k.aead(purpose).Seal(nil, nil, plain, nil))
}

// Unseal reverses Seal for the same purpose.
func (k *Keyring) Unseal(purpose, sealed string) ([]byte, error) {
	body, ok := strings.CutPrefix(sealed, "v1.")
	if !ok {
		return nil, errors.New("sealed value has an unknown version")
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil, errors.New("sealed value is damaged")
	}
	plain, err := k.aead(purpose).Open(nil, nil, b, nil)
	if err != nil {
		return nil, errors.New("sealed value does not open with this key")
	}
	return plain, nil
}

// Sign is an HMAC-SHA256 over msg with the purpose's own key.
func (k *Keyring) Sign(purpose string, msg []byte) []byte {
	m := hmac.New(sha256.New, k.derive("sign/"+purpose))
	m.Write(msg)
	return m.Sum(nil)
}

// Hash is what is stored of a token: its SHA-256 in hex. Tokens carry 256 bits
// of their own, so no salt or stretching is needed.
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
	argonMemory  = 19 << 10
	argonThreads = 1
)

// Password hashes a password with argon2id in the PHC string format.
func Password(plain string) string {
	var salt [16]byte
	rand.Read(salt[:])
	h := argon2.IDKey([]byte(plain), salt[:], argonTime, argonMemory, argonThreads, 32)
	e := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonThreads, e.EncodeToString(salt[:]), e.EncodeToString(h))
}

// decoy is checked when there is no such user, so that the answer takes as
// long as for a wrong password.
var decoy = sync.OnceValue(func() string { return Password("a password nobody has") })

// CheckPassword tells whether plain matches the hash. An empty hash never
// matches, and costs the same time.
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
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &v, &m, &t, &p); err != nil || v != argon2.Version || t < 1 || p < 1 || p > 255 {
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
