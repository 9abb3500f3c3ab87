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

// patterns are the patterns of all secrets, for each view of a text.
type patterns struct {
	exact map[string]pattern // for the bytes as they are, and for numbers that stand for them
	text  map[string]pattern // for unescaped text without white space
	hex   map[string]pattern // for digits of base 16
}

func newPatterns() patterns {
	return patterns{map[string]pattern{}, map[string]pattern{}, map[string]pattern{}}
}

func put(to map[string]pattern, text string, loose bool) {
	to[text] = pattern{text, loose || to[text].loose}
}

// add adds the forms of a secret and of its lines.
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
		// White space and escapes that the secret lacks may be missing in a text as
		// well.
		put(p.text, text, len(text) >= MinLoose || len(text) < len(secret))
	}
	for _, f := range base64Forms(secret) {
		put(p.text, f, true) // in the one alphabet of the view
	}
	put(p.hex, nibbles([]byte(secret)), true)
}

// lines returns the lines of a secret that are secrets by themselves. A line end
// may be an escape, as in a key within JSON. The frame of a PEM key is no secret.
func lines(secret string) (out []string) {
	parts := strings.FieldsFunc(strings.ReplaceAll(secret, `\n`, "\n"),
		func(r rune) bool { return r == '\n' || r == '\r' })
	if len(parts) < 2 {
		return nil
	}
	for _, l := range parts {
		l = strings.TrimSpace(l)
		framed := strings.Contains(l, "-----BEGIN ") || strings.Contains(l, "-----END ")
		if len(l) >= MinLine && !framed {
			out = append(out, l)
		}
	}
	return out
}

// maxEscaped is the length in bytes above which a secret without escapes of its own
// is found only in the view of unescaped text.
const maxEscaped = 1024

// escapedForms returns forms that the view of unescaped text could miss: forms
// after a character that turns their beginning into an escape, forms of a secret
// whose own escapes change with each layer, and spaces as the plus signs of
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

// wide returns the forms of UTF-16, in both byte orders.
func wide(secret string) []string {
	var little, big []byte
	for _, u := range utf16.Encode([]rune(secret)) {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	return []string{string(little), string(big)}
}

var otherAlphabet = strings.NewReplacer("+", "-", "/", "_")

var pythonHTML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;")

// printable returns the forms of mail (RFC 2045, 6.7), of cat -v and of od -c, and
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

// bare returns a secret as the view of text sees it, after depth layers of escapes
// are removed.
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

// stable tells whether one layer removes all escapes of a secret.
func stable(secret string) bool { return bare(secret, 1) == bare(secret, layers) }

// nibbles returns the digits of base 16, each as a byte from 0 to 15.
func nibbles(b []byte) string {
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = append(out, c>>4, c&15)
	}
	return string(out)
}

// wordForms returns digits of base 16 as od -x and hexdump print them on nearly all
// machines: two bytes are one number, the second byte first. Bytes that share a
// number with others are left out.
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

// base32Forms returns the form of the secret alone, and the form with other bytes
// after it.
func base32Forms(secret string) []string {
	text := strings.TrimRight(base32.StdEncoding.EncodeToString([]byte(secret)), "=")
	return []string{text, text[:len(secret)*8/5]}
}

// nestedForms returns the forms of a string in JSON, and of JSON within JSON.
func nestedForms(secret string) (out []string) {
	for _, f := range jsonForms(secret) {
		out = append(out, f)
		out = append(out, jsonForms(f)...)
	}
	return out
}

// base64Forms returns the secret after 0, 1 and 2 other bytes of a group of three.
// Characters at the edges that depend on neighbouring bytes are left out; the last
// ones are known if no byte follows. The alphabet for addresses is folded into the
// standard one.
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

// percentForms returns the forms of a query and of a path in Go, of
// encodeURIComponent, with every byte except letters and digits encoded, and with
// every byte encoded as shell scripts do it, each with upper and lower case digits.
func percentForms(secret string) (out []string) {
	const component = "-_.!~*'()"
	for _, f := range []string{
		url.QueryEscape(secret), url.PathEscape(secret),
		percent(secret, component), percent(secret, "-_.~"), percent(secret, ""),
		"%" + strings.ReplaceAll(fmt.Sprintf("% X", secret), " ", "%"),
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

// lowerEscapes writes the digits of %XX in lower case. Every percent sign begins an
// escape, because all encodings encode it.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(b)
}

// jsonForms returns the inside of a JSON string: as Go writes it with and without
// escapes for HTML, with an escaped slash, and in ASCII.
func jsonForms(s string) []string {
	var plain, inGo, ascii strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1: // not UTF-8: no encoder keeps it
			plain.WriteString(s[i : i+1])
			inGo.WriteString(`\ufffd`)
			ascii.WriteString(`\ufffd`)
		case r < 0x80:
			f := escaped(r)
			plain.WriteString(f)
			inGo.WriteString(f)
			ascii.WriteString(f)
		default:
			plain.WriteRune(r)
			if r == 0x2028 || r == 0x2029 { // ends of lines in JavaScript
				fmt.Fprintf(&inGo, `\u%04x`, r)
			} else {
				inGo.WriteRune(r)
			}
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&ascii, `\u%04x`, u)
			}
		}
		i += n
	}
	out := []string{
		plain.String(), inGo.String(), ascii.String(), strings.ReplaceAll(plain.String(), "/", `\/`), upperEscapes(ascii.String()),
	}
	if b, err := json.Marshal(s); err == nil {
		out = append(out, string(b[1:len(b)-1]))
	}
	return out
}

// escaped returns the form of an ASCII character in nearly every encoder.
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
		i++ // an escaped backslash begins no escape
	}
	return string(b)
}
