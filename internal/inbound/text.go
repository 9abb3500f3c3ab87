package inbound

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"yardmaster/internal/client/inert"
	"yardmaster/internal/lazy"
	"yardmaster/internal/secretscan"
)

// Limits of texts, in characters, and of lists.
const (
	maxTitle = 200
	maxName  = 200
	maxText  = 18_000
	maxLink  = 500
	maxKey   = 120
	maxList  = 20
)

// mention is the sign before a name that would call somebody in a chat or at a code host.
var mention = lazy.New(`(^|[^\pL\pN._%+-])@(\pL|\pN)`)

// Line makes text of a stranger one harmless line of at most max characters: without
// hidden characters, without what looks like a secret, and calling nobody.
func Line(text string, max int) string {
	line := secretscan.Scrub(plain(text, 4*max))
	line = mention.ReplaceAllString(line, "${1}＠${2}")
	return clip(strings.Join(strings.Fields(line), " "), max)
}

// Text makes text of a stranger harmless: hidden characters are shown as escapes, what
// looks like a secret is removed.
func Text(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(clean(text))
	return clip(inert.Escape(secretscan.Scrub(clip(text, 2*maxText))), maxText)
}

// plain is text on one line, without hidden characters.
func plain(text string, max int) string { return clip(inert.Line(clean(text)), max) }

// clean is text that a database stores.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}

// clip cuts text to max characters.
func clip(text string, max int) string {
	if len(text) <= max || utf8.RuneCountInString(text) <= max {
		return text
	}
	return string([]rune(text)[:max-1]) + "…"
}

// short is a key as it is stored: itself, or its hash if it is long or no plain text.
func short(key string) string {
	if len(key) <= maxKey && plain(key, maxKey) == key {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(sum[:])
}
