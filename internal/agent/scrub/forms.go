package scrub

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// forms lists the ways in which a secret may be written. None is shorter than
// the secret.
func forms(secret string) []string {
	out := []string{secret, hex.EncodeToString([]byte(secret))}
	out = append(out, strings.ToUpper(out[1]))
	out = append(out, base64Forms(secret)...)
	out = append(out, percentForms(secret)...)
	for _, f := range jsonForms(secret) {
		// Agents report what a tool printed as a string in a JSON message: JSON within JSON.
		out = append(out, f)
		out = append(out, jsonForms(f)...)
	}
	return out
}

// base64Forms encodes the secret as it looks after 0, 1 and 2 other bytes of a
// group of three. The characters at the edges that also depend on neighbours
// are left out, but with nothing behind the secret the last ones are known.
func base64Forms(secret string) (out []string) {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for before := range 3 {
			text := enc.EncodeToString(append(make([]byte, before), secret...))
			text = text[(before*8+5)/6:]
			unpadded := strings.TrimRight(text, "=")
			out = append(out, text, unpadded)
			if (before+len(secret))%3 != 0 {
				out = append(out, unpadded[:len(unpadded)-1])
			}
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
