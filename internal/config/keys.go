package config

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Keys are public keys of minisign. The zero value has none.
type Keys []string

func (k Keys) String() string { return strings.Join(k, ",") }

// isKey tells whether a text has the form of a key: base64 of "Ed", an id and the key.
func isKey(s string) bool {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == 42 && string(b[:2]) == "Ed"
}

func keys(s string) (out Keys, err error) {
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if !isKey(part) {
			return nil, fmt.Errorf("%q is not a public key as minisign prints it", part)
		}
		out = append(out, part)
	}
	return out, nil
}
