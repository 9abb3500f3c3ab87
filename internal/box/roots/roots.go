// Package roots tells git, and the programs of agents, which certificate authorities
// this process trusts. Go takes them from SSL_CERT_FILE and SSL_CERT_DIR. Git takes
// them from GIT_SSL_CAINFO, or from whatever the library knows that it was built with:
// a server behind an authority of its own is one for Go and none for git.
package roots

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The variables that name authorities for Go, and where Go looks on Linux without them
// (crypto/x509, root_linux.go).
const (
	fileVariable = "SSL_CERT_FILE"
	dirVariable  = "SSL_CERT_DIR"
)

var (
	files = []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
	}
	dirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs"}
)

// Variables answers the variables by which git, curl and what is built with OpenSSL
// trust the authorities in a file.
func Variables(file string) map[string]string {
	return map[string]string{"GIT_SSL_CAINFO": file, fileVariable: file}
}

// Bundle answers the certificates of all authorities that this process trusts, in PEM,
// as Go finds them. It is empty if neither variable is set: then git trusts the same
// ones by itself.
func Bundle() ([]byte, error) {
	file, dir := os.Getenv(fileVariable), os.Getenv(dirVariable)
	if file == "" && dir == "" {
		return nil, nil
	}
	b := bundle{seen: map[string]bool{}}
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the authorities of %s: %w", fileVariable, err)
		}
		if b.add(text) == 0 {
			return nil, fmt.Errorf("read the authorities of %s: %s has no certificate in PEM", fileVariable, file)
		}
	} else {
		for _, name := range files {
			if text, err := os.ReadFile(name); err == nil {
				b.add(text)
				break
			}
		}
	}
	within := dirs
	if dir != "" {
		within = strings.Split(dir, ":")
	}
	for _, d := range within {
		entries, err := os.ReadDir(d)
		if err != nil {
			continue // as Go does
		}
		for _, e := range entries {
			if text, err := os.ReadFile(filepath.Join(d, e.Name())); err == nil {
				b.add(text)
			}
		}
	}
	return b.out.Bytes(), nil
}

type bundle struct {
	out  bytes.Buffer
	seen map[string]bool
}

// add adds the certificates in a text that are not there yet, and answers how many the
// text has.
func (b *bundle) add(text []byte) (n int) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return n
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if n++; !b.seen[string(block.Bytes)] {
			b.seen[string(block.Bytes)] = true
			b.out.Write(pem.EncodeToMemory(block))
		}
	}
}
