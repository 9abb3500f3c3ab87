package inbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// digest is the HMAC-SHA256 of the parts in turn.
func digest(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

// isHex tells, in constant time, whether text is a digest in hex.
func isHex(text string, want []byte) bool {
	got, err := hex.DecodeString(text)
	return hmac.Equal(got, want) && err == nil
}

// hexOfBody tells whether a header is the digest of the body in hex, behind a prefix.
func hexOfBody(secret string, r Request, header, prefix string) bool {
	text, ok := strings.CutPrefix(r.Header(header), prefix)
	return isHex(text, digest([]byte(secret), r.Body)) && ok
}

// sameToken tells whether a header is the secret itself. Both are compared as digests of
// the body, which takes the time that checking a signature takes.
func sameToken(secret string, r Request, header string) bool {
	return hmac.Equal(digest([]byte(r.Header(header)), r.Body), digest([]byte(secret), r.Body))
}

// fresh tells whether a time is within the window around now.
func fresh(at, now time.Time) bool {
	d := now.Sub(at)
	return d <= window && d >= -window
}

// freshSeconds is fresh of a time in seconds since 1970.
func freshSeconds(text string, now time.Time) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && fresh(time.Unix(n, 0), now)
}

// ours checks the signature that outbound webhooks of this server have: the digest of
// "<timestamp>.<body>" in X-Service-Signature.
func ours(secret string, r Request, now time.Time) bool {
	stamp := r.Header("X-Service-Timestamp")
	text, ok := strings.CutPrefix(r.Header("X-Service-Signature"), "sha256=")
	return isHex(text, digest([]byte(secret), []byte(stamp), []byte("."), r.Body)) && ok && freshSeconds(stamp, now)
}

// standardPrefix begins a secret of Standard Webhooks, which is the key in base64.
const standardPrefix = "whsec_"

// standard checks a signature of Standard Webhooks 1.0: one of the entries "v1,<base64>"
// of webhook-signature is the digest of "<webhook-id>.<webhook-timestamp>.<body>".
func standard(secret string, r Request, now time.Time) bool {
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, standardPrefix); ok {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			b, err = base64.RawStdEncoding.DecodeString(text)
		}
		if err != nil || len(b) == 0 {
			return false
		}
		key = b
	}
	stamp := r.Header("Webhook-Timestamp")
	want := digest(key, []byte(r.Header("Webhook-Id")), []byte("."), []byte(stamp), []byte("."), r.Body)
	found := false
	for i, entry := range strings.Fields(r.Header("Webhook-Signature")) {
		text, v1 := strings.CutPrefix(entry, "v1,")
		got, err := base64.StdEncoding.DecodeString(text)
		if v1 && err == nil && hmac.Equal(got, want) {
			found = true
		}
		if i >= maxEntries {
			break
		}
	}
	return found && freshSeconds(stamp, now)
}

// maxEntries limits the signatures of one header that are looked at.
const maxEntries = 10
