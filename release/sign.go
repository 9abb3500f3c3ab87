package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	sign "aead.dev/minisign"

	"yardmaster/internal/bundle"
	"yardmaster/internal/minisign"
	"yardmaster/internal/protocol"
)

// signer is a secret key of minisign.
type signer struct{ key sign.PrivateKey }

// openKey reads a secret key, with a password or without.
func openKey(path string) (*signer, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s signer
	if sign.IsEncrypted(text) {
		s.key, err = sign.DecryptKey(os.Getenv("MINISIGN_PASSWORD"), text)
	} else {
		err = s.key.UnmarshalText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the secret key: %w", err)
	}
	return &s, nil
}

// public is the key as minisign takes it with -P.
func (s *signer) public() string { return s.key.Public().(sign.PublicKey).String() }

// sign makes a signature, and checks it as boxes do. What the comment says is signed, too.
func (s *signer) sign(content []byte, comment string) ([]byte, error) {
	reader := sign.NewReader(bytes.NewReader(content)) // which hashes first, as minisign does since 0.6
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return nil, err
	}
	text := reader.SignWithComments(s.key, comment, bundle.Untrusted)
	key, err := minisign.ParseKey(s.public())
	if err != nil {
		return nil, err
	}
	digest, err := minisign.Digest(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	said, err := minisign.Verify([]minisign.Key{key}, digest, string(text))
	if err == nil && said != comment {
		err = errors.New("the signature has another comment")
	}
	return text, err
}

// program is the signature by which boxes take a program of this version.
func (s *signer) program(content []byte, version, target string) ([]byte, error) {
	return s.sign(content, protocol.Update{Channel: "stable", Version: version, Target: target, SHA256: sum(content)}.Statement())
}

func sum(content []byte) string {
	is := sha256.Sum256(content)
	return hex.EncodeToString(is[:])
}

// installer puts the script that installs a release into it, with its version and the key
// that it trusts.
func (r *release) installer() error {
	text, err := os.ReadFile(filepath.Join(r.files(), "install.sh"))
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("@VERSION@"), []byte(r.version))
	if r.key != nil {
		text = bytes.ReplaceAll(text, []byte("@KEY@"), []byte(r.key.public()))
	}
	return r.put("install.sh", text)
}

// seal writes the sums of all files, and signs each. A comment names the file and the version, so
// that a signed old file cannot pass for a new one.
func (r *release) seal() error {
	var sums strings.Builder
	for _, name := range r.made {
		content, err := os.ReadFile(filepath.Join(r.into, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum(content), name)
	}
	if err := r.put("SHA256SUMS", []byte(sums.String())); err != nil || r.key == nil {
		return err
	}
	for _, name := range r.made {
		content, err := os.ReadFile(filepath.Join(r.into, name))
		if err != nil {
			return err
		}
		text, err := r.key.sign(content, bundle.Of(name, r.version))
		if err != nil {
			return fmt.Errorf("the signature of %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(r.into, name+".minisig"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
