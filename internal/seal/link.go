package seal

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Link is the content of a signed link.
type Link struct {
	Subject string // id of the object
	Account string
	Expires time.Time // to the second
}

// claims is a Link in the form of a JSON Web Token (RFC 7519).
type claims struct {
	Audience string `json:"aud"`
	Subject  string `json:"sub"`
	Account  string `json:"acct"`
	Expires  int64  `json:"exp"`
}

// jwtHeader is the only header that SignLink writes and ReadLink accepts: a token
// cannot choose how it is verified.
var jwtHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// SignLink makes the token of a link for one purpose. The token is not encrypted:
// its holder can read the link.
func (k *Keyring) SignLink(purpose string, l Link) string {
	b, err := json.Marshal(claims{purpose, l.Subject, l.Account, l.Expires.Unix()})
	if err != nil {
		panic(err) // strings and a number always encode
	}
	text := jwtHeader + "." + base64.RawURLEncoding.EncodeToString(b)
	return text + "." + base64.RawURLEncoding.EncodeToString(k.Sign("link/"+purpose, []byte(text)))
}

// ReadLink verifies a token of SignLink for the same purpose under any of the keys.
// The caller checks whether the link has expired.
func (k *Keyring) ReadLink(purpose, token string) (Link, error) {
	bad := errors.New("this is no link of ours")
	i := strings.LastIndexByte(token, '.')
	if i < 0 || len(token) > 4096 {
		return Link{}, bad
	}
	text := token[:i]
	// Compared as text: decoding ignores line breaks, and a link has one text only.
	ours := false
	for _, s := range k.Signatures("link/"+purpose, []byte(text)) {
		ours = Equal(token[i+1:], base64.RawURLEncoding.EncodeToString(s)) || ours
	}
	if !ours {
		return Link{}, bad
	}
	header, body, _ := strings.Cut(text, ".")
	b, err := base64.RawURLEncoding.DecodeString(body)
	var c claims
	if err != nil || header != jwtHeader || json.Unmarshal(b, &c) != nil || c.Audience != purpose {
		return Link{}, bad
	}
	return Link{c.Subject, c.Account, time.Unix(c.Expires, 0).UTC()}, nil
}
