package remote

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Key is the key of the deployment, from which those of the accounts follow. It signs
// nothing itself.
type Key struct{ seed []byte }

// ParseKey reads a key as `ssh-keygen -t ed25519` writes it, without a passphrase.
func ParseKey(text []byte) (*Key, error) {
	raw, err := ssh.ParseRawPrivateKey(text)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, errors.New("it has a passphrase, which nobody can type in for a server")
	}
	if err != nil {
		return nil, errors.New("it is no private key that OpenSSH has written")
	}
	switch key := raw.(type) {
	case *ed25519.PrivateKey:
		return &Key{key.Seed()}, nil
	case ed25519.PrivateKey:
		return &Key{key.Seed()}, nil
	}
	return nil, errors.New("it is no key of the kind ed25519: ssh-keygen -t ed25519 makes one")
}

// Of is the key of an account.
func (k *Key) Of(account string) (ssh.Signer, error) {
	seed, err := hkdf.Key(sha256.New, k.seed, nil, "yardmaster: join over SSH, for the account "+account, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the SSH key of an account: %w", err)
	}
	return ssh.NewSignerFromSigner(ed25519.NewKeyFromSeed(seed))
}

// Line is the line of authorized_keys for a key. It lets the key run commands, and open
// nothing else.
func Line(key ssh.PublicKey, comment string) string {
	return "restrict " + Public(key) + " " + comment
}

// Public writes a public key as OpenSSH does: its kind and its bytes.
func Public(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// HostKey names the host key of a machine: its fingerprint, or its kind and bytes.
type HostKey string

// families are the kinds of host keys, the one that is asked for first at the head.
var families = [][]string{
	{ssh.KeyAlgoED25519}, {ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521}, {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
}

// ParseHostKey reads a fingerprint as OpenSSH shows it (SHA256:…), a line of known_hosts or
// of a .pub file.
func ParseHostKey(text string) (HostKey, error) {
	wrong := errors.New("is neither a fingerprint (SHA256:…) nor a line of known_hosts")
	words := strings.Fields(text)
	if len(words) == 1 {
		sum, is := strings.CutPrefix(words[0], "SHA256:")
		b, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(sum, "="))
		if !is || err != nil || len(b) != sha256.Size {
			return "", wrong
		}
		return HostKey("SHA256:" + base64.RawStdEncoding.EncodeToString(b)), nil
	}
	for i, word := range words {
		if i+1 == len(words) || !strings.HasPrefix(word, "ssh-") && !strings.HasPrefix(word, "ecdsa-") {
			continue
		}
		b, err := base64.StdEncoding.DecodeString(words[i+1])
		if err != nil {
			return "", wrong
		}
		key, err := ssh.ParsePublicKey(b)
		if err != nil || key.Type() != word {
			return "", wrong
		}
		if _, certificate := key.(*ssh.Certificate); certificate || words[0] == "@revoked" || words[0] == "@cert-authority" {
			return "", errors.New("must be the key of one machine")
		}
		return HostKey(Public(key)), nil
	}
	return "", wrong
}

// is tells whether a key is the one that is named.
func (h HostKey) is(key ssh.PublicKey) bool {
	return h != "" && (string(h) == ssh.FingerprintSHA256(key) || string(h) == Public(key))
}

// whole tells whether the key is named with its kind and bytes.
func (h HostKey) whole() bool { return strings.Contains(string(h), " ") }

// algorithms are those by which the machine may prove that it has the key: where its kind is
// not known, all, the best first.
func (h HostKey) algorithms() []string {
	kind, _, whole := strings.Cut(string(h), " ")
	switch {
	case !whole:
		return slices.Concat(families...)
	case kind == ssh.KeyAlgoRSA:
		return families[2]
	}
	return []string{kind}
}
