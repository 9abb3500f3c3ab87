package scrub

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// patterns are what to look for, in each view of a text.
type patterns struct {
	exact map[string]pattern // in the bytes as they are, and in numbers that stand for them
	text  map[string]pattern // in unescaped text without white space
	hex   map[string]pattern // in digits of base 16
}

func newPatterns() patterns {
	return patterns{map[string]pattern{}, map[string]pattern{}, map[string]pattern{}}
}

func put(to map[string]pattern, text string, loose bool) {
	to[text] = pattern{text, loose || to[text].loose}
}

// add makes the forms of a secret known, and those of its lines.
func (p patterns) add(secret string) {
	p.addOne(secret)
	for _, f := range base32Forms(secret) {
		put(p.text, f, true)
	}
	for _, f := range printable(secret) {
		if text := bare(f, layers); len(text) >= MinLength {
			put(p.text, text, len(text) >= MinLoose || len(text) < len(f))
		}
	}
	for _, f := range wordForms(secret) {
		put(p.hex, f, true)
	}
	for _, f := range append(escapedForms(secret), wide(secret)...) {
		put(p.exact, f, true)
	}
	for _, line := range lines(secret) {
		p.addOne(line)
	}
}

func (p patterns) addOne(secret string) {
	put(p.exact, secret, true)
	if text := bare(secret, layers); len(text) >= MinLength {
		// What is left out of the secret may be left out of a text.
		put(p.text, text, len(text) >= MinLoose || len(text) < len(secret))
	}
	for _, f := range base64Forms(secret) {
		put(p.text, f, true) // in the one alphabet that the view has
	}
	put(p.hex, nibbles([]byte(secret)), true)
}

// lines are the parts of a secret of several lines that are secrets as well. A
// line end may be an escape, as in a key within JSON. What frames a key in PEM
// is no secret.
func lines(secret string) (out []string) {
	parts := strings.FieldsFunc(strings.ReplaceAll(secret, `\n`, "\n"), func(r rune) bool { return r == '\n' || r == '\r' })
	if len(parts) < 2 {
		return nil
	}
	for _, l := range parts {
		if l = strings.TrimSpace(l); len(l) >= MinLine && !strings.Contains(l, "-----BEGIN ") && !strings.Contains(l, "-----END ") {
			out = append(out, l)
		}
	}
	return out
}

// maxEscaped is the length in bytes from which a secret that has no escapes
// itself is left to the view of unescaped text.
const maxEscaped = 1024

// escapedForms are those that the view of unescaped text could miss: behind a
// character that makes an escape of the first ones; of a secret whose own
// escapes mean something else after each layer; and space as the plus sign of
// queries.
func escapedForms(secret string) (out []string) {
	if len(secret) <= maxEscaped || !stable(secret) {
		digits := hex.EncodeToString([]byte(secret))
		out = append(percentForms(secret), digits, strings.ToUpper(digits))
		out = append(append(out, nestedForms(secret)...), base32Forms(secret)...)
		for _, f := range base64Forms(secret) {
			out = append(out, f, otherAlphabet.Replace(f))
		}
		out = append(out, html.EscapeString(secret), pythonHTML.Replace(secret))
	} else if strings.Contains(secret, " ") {
		out = append(out, url.QueryEscape(secret), lowerEscapes(url.QueryEscape(secret)))
	}
	return out
}

// wide are the forms of UTF-16.
func wide(secret string) []string {
	var little, big []byte
	for _, u := range utf16.Encode([]rune(secret)) {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	return []string{string(little), string(big)}
}

var otherAlphabet = strings.NewReplacer("+", "-", "/", "_")

var pythonHTML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;")

// printable are the forms of mail (RFC 2045, 6.7), of cat -v and of od -c, and
// that of text whose bytes were taken for characters.
func printable(secret string) []string {
	var mail, cat, od, wrong strings.Builder
	for i := range len(secret) {
		c := secret[i]
		wrong.WriteRune(rune(c))
		if c == '=' || c >= 0x7f {
			fmt.Fprintf(&mail, "=%02X", c)
		} else {
			mail.WriteByte(c)
		}
		if c >= 0x7f {
			fmt.Fprintf(&od, "%03o", c)
		} else {
			od.WriteByte(c)
		}
		if c >= 0x80 {
			cat.WriteString("M-")
			c &= 0x7f
		}
		switch {
		case c == 0x7f:
			cat.WriteString("^?")
		case c < ' ' && secret[i] != '\n':
			cat.WriteByte('^')
			cat.WriteByte(c + '@')
		default:
			cat.WriteByte(c)
		}
	}
	return []string{mail.String(), cat.String(), od.String(), wrong.String()}
}

// bare is a secret as the view of text has it, with so many layers of escapes
// taken off.
func bare(secret string, depth int) string {
	var out []byte
	u := unescaper{next: func(b byte, _, _ int64) {
		if kinds[b]&isSpace == 0 {
			out = append(out, fold[b])
		}
	}}
	for i := range len(secret) {
		u.put(layers-depth, secret[i], int64(i), int64(i)+1)
	}
	u.finish()
	return string(out)
}

// stable tells whether all escapes in a secret are gone after one layer.
func stable(secret string) bool { return bare(secret, 1) == bare(secret, layers) }

// nibbles are the digits of base 16, each a byte from 0 to 15.
func nibbles(b []byte) string {
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, c>>4, c&15)
	}
	return string(out)
}

// wordForms are digits of base 16 as od -x and hexdump print them on nearly all
// machines: two bytes are one number, the second byte first. The bytes that
// share a number with others are left out.
func wordForms(secret string) (out []string) {
	for skip := range 2 {
		b := []byte(secret)[skip:]
		b = b[:len(b)/2*2]
		for i := 0; i < len(b); i += 2 {
			b[i], b[i+1] = b[i+1], b[i]
		}
		out = append(out, nibbles(b))
	}
	return out
}

// base32Forms are those of the secret alone, and with other bytes behind it.
func base32Forms(secret string) []string {
	text := strings.TrimRight(base32.StdEncoding.EncodeToString([]byte(secret)), "=")
	return []string{text, text[:len(secret)*8/5]}
}

// nestedForms are strings in JSON, and in JSON within JSON.
func nestedForms(secret string) (out []string) {
	for _, f := range jsonForms(secret) {
		out = append(out, f)
		out = append(out, jsonForms(f)...)
	}
	return out
}

// base64Forms encodes the secret as it looks after 0, 1 and 2 other bytes of a
// group of three. The characters at the edges that also depend on neighbours
// are left out, but with nothing behind the secret the last ones are known. The
// alphabet for addresses is folded into the other one.
func base64Forms(secret string) (out []string) {
	for before := range 3 {
		text := base64.StdEncoding.EncodeToString(append(make([]byte, before), secret...))
		text = text[(before*8+5)/6:]
		unpadded := strings.TrimRight(text, "=")
		out = append(out, text, unpadded)
		if (before+len(secret))%3 != 0 {
			out = append(out, unpadded[:len(unpadded)-1])
		}
	}
	return out
}

// percentForms are those of a query and of a path in Go, of encodeURIComponent,
// with every byte that is no letter or digit encoded, and with every byte at
// all, as shell scripts do it; in both cases.
func percentForms(secret string) (out []string) {
	const component = "-_.!~*'()"
	for _, f := range []string{
		url.QueryEscape(secret), url.PathEscape(secret), percent(secret, component), percent(secret, "-_.~"), percent(secret, ""), "%" + strings.ReplaceAll(fmt.Sprintf("% X", secret), " ", "%"),
	} {
		out = append(out, f, lowerEscapes(f))
	}
	return out
}

func percent(s, keep string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; alphanumeric(c) || strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// lowerEscapes writes the digits of %XX in lower case. A percent sign that the
// encoding left as it was does not occur: all of them encode it.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}

// jsonForms are the inside of a JSON string: as Go writes it with and without
// care for HTML, with an escaped slash, and in ASCII.
func jsonForms(s string) []string {
	var plain, ascii strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1: // not text: no encoder keeps it
			plain.WriteString(s[i : i+1])
			ascii.WriteString(`\ufffd`)
		case r < 0x80:
			f := escaped(r)
			plain.WriteString(f)
			ascii.WriteString(f)
		default:
			plain.WriteRune(r)
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&ascii, `\u%04x`, u)
			}
		}
		i += n
	}
	out := []string{plain.String(), ascii.String(), strings.ReplaceAll(plain.String(), "/", `\/`), upperEscapes(ascii.String())}
	if b, err := json.Marshal(s); err == nil {
		out = append(out, string(b[1:len(b)-1]))
	}
	return out
}

// escaped is what nearly every encoder makes of an ASCII character.
func escaped(r rune) string {
	switch r {
	case '"', '\\':
		return `\` + string(r)
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	}
	if r < 0x20 {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// upperEscapes writes the digits of \uXXXX in upper case.
func upperEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		if b[i+1] == 'u' && i+5 < len(b) {
			copy(b[i+2:i+6], strings.ToUpper(s[i+2:i+6]))
		}
		i++ // an escaped backslash escapes nothing
	}
	return string(b)
}
