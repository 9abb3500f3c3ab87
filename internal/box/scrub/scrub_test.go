package scrub

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	_ "yardmaster/internal/proof/chance" // the seed
)

const secret = "s3cr/t+\"value\"\\ü?&x\n=end"

// encoders are the standard library's, not this package's: what a tool would do.
var encoders = map[string]func(string) string{
	"as it is":       func(s string) string { return s },
	"hex":            func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":            func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"query":          url.QueryEscape,
	"path":           url.PathEscape,
	"every byte":     func(s string) string { return "%" + strings.ReplaceAll(fmt.Sprintf("% x", s), " ", "%") },
	"base64":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 raw":     func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 url":     func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 url raw": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"json":           inJSON,
	"html":           html.EscapeString,
	"base32":         func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) },
	"json in json":   func(s string) string { return inJSON(inJSON(s)) },
	"json, no html": func(s string) string {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(s)
		return strings.Trim(b.String(), "\n")[1 : b.Len()-2]
	},
}

// others are forms that a view decodes: what is right before one must not make
// something else of its beginning, as a backslash does.
var others = map[string]func(string) string{
	"html numbers":  each("&#%d;"),
	"html HEX":      each("&#x%X;"),
	"C":             each(`\x%02x`),
	"octal":         each(`\%03o`),
	"percent twice": each("%%25%02X"),
	"numbers":       func(s string) string { return strings.ReplaceAll(fmt.Sprintf("%d", []byte(s)), " ", ", ") },
	"mail":          mail,
	"shell":         func(s string) string { return strings.ReplaceAll(s, "'", `'\''`) },
}

// each encodes every byte.
func each(format string) func(string) string {
	return func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			if s[i] >= 0x80 && strings.HasPrefix(format, "&") { // of which HTML has characters, not bytes
				b.WriteByte(s[i])
				continue
			}
			fmt.Fprintf(&b, format, s[i])
		}
		return b.String()
	}
}

func mail(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c == '=' || c > '~' {
			fmt.Fprintf(&b, "=%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func inJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

func TestForms(t *testing.T) {
	s := New(secret)
	for name, f := range others {
		if got := s.String("before " + f(secret) + " after"); got != "before [redacted] after" && got != "before [[redacted]] after" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, f := range encoders {
		if got := s.String("before " + f(secret) + " after"); got != "before [redacted] after" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, text := range []string{
		`s3cr\/t+\"value\"\\ü?&x\n=end`, `s3cr/t+\"value\"\\\u00fc?&x\n=end`, `s3cr/t+\"value\"\\\u00FC?&x\n=end`,
		"s3cr%2ft%2b%22value%22%5c%c3%bc%3f%26x%0a%3dend", "s3cr%2Ft%2B%22value%22%5C%C3%BC%3F%26x%0A%3Dend",
	} {
		if got := s.String("(" + text + ")"); got != "([redacted])" {
			t.Errorf("%s: %q", text, got)
		}
	}
	// Inside a longer text that is encoded as a whole, as in "Basic base64(user:token)".
	for before := range 7 {
		for after := range 7 {
			whole := strings.Repeat("u", before) + secret + strings.Repeat("v", after)
			for name, enc := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding} {
				got := s.String(enc.EncodeToString([]byte(whole)))
				if !strings.Contains(got, Mark) || len(got)-len(Mark) > (before+after+4)*4/3+4 {
					t.Errorf("%s, %d before, %d after: %q", name, before, after, got)
				}
			}
		}
	}
}

func TestShortAndBlankSecretsAreIgnored(t *testing.T) {
	s := New("", "admin", "1234567", "       \n")
	const text = "the admin has 1234567        \n"
	if got := s.String(text); got != text {
		t.Errorf("%q", got)
	}
	if got := New("12345678\n").String("12345678"); got != Mark {
		t.Errorf("%q", got)
	}
}

func TestOverlapsAreOneHole(t *testing.T) {
	s := New("aaaabbbbcccc", "bbbbccccdddd", "aaaabbbb", "aaaabbbbccccxxxxyyyy")
	for in, want := range map[string]string{
		"-aaaabbbbccccdddd-":       "-[redacted]-",
		"-aaaabbbb-aaaabbbbcccc-":  "-[redacted]-[redacted]-",
		"aaaabbbbaaaabbbb-":        "[redacted]-",
		"aaaabbbbccccxxxxyyy":      "[redacted]xxxxyyy",
		"aaaabbbbccccddddxxxxyyyy": "[redacted]xxxxyyyy",
	} {
		if got := s.String(in); got != want {
			t.Errorf("%s: %s, not %s", in, got, want)
		}
		for n := 1; n < len(in); n++ {
			if got := stream(t, s, []byte(in), func(int) int { return n }); got != want {
				t.Errorf("%s in chunks of %d: %s, not %s", in, n, got, want)
			}
		}
	}
}

// stream writes in through a Writer in chunks of the sizes that size gives.
func stream(t interface{ Fatal(...any) }, s *Scrubber, in []byte, size func(left int) int) string {
	var b bytes.Buffer
	w := s.Writer(&b)
	for len(in) > 0 {
		n := min(size(len(in)), len(in))
		if k, err := w.Write(in[:n]); k != n || err != nil {
			t.Fatal(k, err)
		}
		in = in[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// alike tells whether a text that came in pieces is as clean as it is in one: all
// it may show more are the few bytes before a secret that are not held back
// where a piece ends, such as a backslash that is taken for a part of it.
func alike(whole, pieces string) bool {
	rest := func(s string) int { return len(strings.ReplaceAll(s, Mark, "")) }
	return rest(whole) <= rest(pieces) && rest(pieces) <= rest(whole)+8*strings.Count(pieces, Mark)
}

func TestNoChunkingLeaks(t *testing.T) {
	names := make([]string, 0, len(encoders))
	for n := range encoders {
		names = append(names, n)
	}
	rapid.Check(t, func(t *rapid.T) {
		// Few different characters, so that secrets overlap and nearly occur.
		secrets := rapid.SliceOfN(rapid.StringMatching(`[ab/"é+]{8,20}`), 1, 4).Draw(t, "secrets")
		s := New(secrets...)
		var in bytes.Buffer
		for range rapid.IntRange(1, 8).Draw(t, "parts") {
			in.WriteString(rapid.StringMatching(`[ab/"é+ Y\\]{0,12}`).Draw(t, "text"))
			x := encoders[rapid.SampledFrom(names).Draw(t, "form")](rapid.SampledFrom(secrets).Draw(t, "secret"))
			in.WriteString(x[:rapid.IntRange(0, len(x)).Draw(t, "cut")]) // often the start of one only
			if rapid.Bool().Draw(t, "whole") {
				in.WriteString(x)
			}
		}
		whole := string(s.Bytes(in.Bytes()))
		chunked := stream(t, s, in.Bytes(), func(int) int { return rapid.IntRange(1, 16).Draw(t, "chunk") })
		if !alike(whole, chunked) {
			t.Fatalf("in one piece %q, in chunks %q", whole, chunked)
		}
		for _, x := range secrets {
			for name, f := range encoders {
				if strings.Contains(chunked, f(x)) {
					t.Fatalf("%q leaks as %s in %q", x, name, chunked)
				}
			}
		}
	})
}

func TestOtherTextIsUnchanged(t *testing.T) {
	s := New("zzzz-secret-zzzz", "another-zzzz-one")
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOf(rapid.Byte().Filter(func(b byte) bool { return b != 'z' && b != 'e' && b != '6' })).Draw(t, "in")
		got := stream(t, s, in, func(int) int { return rapid.IntRange(1, 9).Draw(t, "chunk") })
		if got != string(in) {
			t.Fatalf("%q became %q", in, got)
		}
		if got := s.Bytes(in); len(in) > 0 && &got[0] != &in[0] {
			t.Fatal("copied for nothing")
		}
	})
}

func TestWriterHoldsBackOnlyWhatItMust(t *testing.T) {
	var b bytes.Buffer
	w := New("open-sesame").Writer(&b)
	for _, step := range []struct{ in, out string }{
		{"a line\n", "a line\n"}, {"say op", "a line\nsay "}, {"en-sesam", "a line\nsay "}, {"!", "a line\nsay open-sesam!"},
		{"open-sesame", "a line\nsay open-sesam![redacted]"},
	} {
		if _, err := io.WriteString(w, step.in); err != nil {
			t.Fatal(err)
		}
		if b.String() != step.out {
			t.Errorf("after %q: %q, not %q", step.in, b.String(), step.out)
		}
	}
	_, _ = io.WriteString(w, "open-")
	if err := errors.Join(w.Close(), w.Close()); err != nil || !strings.HasSuffix(b.String(), "[redacted]open-") {
		t.Errorf("%q %v", b.String(), err)
	}
	if _, err := io.WriteString(w, "x"); err == nil {
		t.Error("wrote after Close")
	}
}

func TestWriterReportsItsDestination(t *testing.T) {
	r, pw := io.Pipe()
	r.CloseWithError(errors.New("gone"))
	w := New("open-sesame").Writer(pw)
	if n, err := io.WriteString(w, "text"); n != 0 || err == nil || err.Error() != "gone" {
		t.Error(n, err)
	}
	if err := w.Close(); err == nil {
		t.Error("Close forgot the error")
	}
}

func TestAddWhileInUse(t *testing.T) {
	s := New()
	var b bytes.Buffer
	w := s.Writer(&b)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { s.Add("a-new-secret-" + string(rune('a'+i))) })
		wg.Go(func() { s.String("a-new-secret-a") })
	}
	wg.Wait()
	_, _ = io.WriteString(w, "a-new-secret-a a-new-sec")
	_, _ = io.WriteString(w, "ret-h")
	if err := w.Close(); err != nil || b.String() != "[redacted] [redacted]" {
		t.Errorf("%q %v", b.String(), err)
	}
}
