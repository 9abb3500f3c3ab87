package seal

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Link is what a signed link vouches for.
type Link struct {
	Subject string // id of the object
	Account string
	Expires time.Time // to the second
}

// claims are a Link as a JSON Web Token (RFC 7519) spells it.
type claims struct {
	Audience string `json:"aud"`
	Subject  string `json:"sub"`
	Account  string `json:"acct"`
	Expires  int64  `json:"exp"`
}

// jwtHeader is the only header that is made or taken: no token chooses how it
// is checked.
var jwtHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// SignLink makes the token of a link, good for one purpose. It is no secret
// store: whoever has it can read it.
func (k *Keyring) SignLink(purpose string, l Link) string {
	b, err := json.Marshal(claims{purpose, l.Subject, l.Account, l.Expires.Unix()})
	if err != nil {
		panic(err) // strings and a number
	}
	text := jwtHeader + "." + base64.RawURLEncoding.EncodeToString(b)
	return text + "." + base64.RawURLEncoding.EncodeToString(k.Sign("link/"+purpose, []byte(text)))
}

// ReadLink reads a token that SignLink made for the same purpose, with any of
// the keys. Whether it has expired is the caller's to judge.
func (k *Keyring) ReadLink(purpose, token string) (Link, error) {
	bad := errors.New("this is no link of ours")
	i := strings.LastIndexByte(token, '.')
	if i < 0 || len(token) > 4096 {
		return Link{}, bad
	}
	text := token[:i]
	// As text: decoding would pass over line breaks, and a link is one text only.
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
