package scrub

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// spread puts white space between the characters of a text, as programs wrap
// and indent: once beside white space that the text has itself, so that no gap is longer than maxGap.
func spread(s string, rnd *rand.Rand) string {
	var b strings.Builder
	for i := range len(s) {
		if i > 0 && kinds[s[i-1]]&isSpace == 0 && (rnd.IntN(8) == 0 || i == len(s)/2) {
			b.WriteString([]string{" ", "\n", "\r\n", "\n    ", "\t", "\x1b[31m", strings.Repeat(" ", 100)}[rnd.IntN(7)])
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// longestSpace is the length of white space in the form that makes most of it, in bytes.
const longestSpace = 12

// blank makes one of all white space.
func blank(r rune) rune {
	if r <= ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// spaced are the forms that may have white space anywhere.
var spaced = map[string]func(string) string{
	"hex":    func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":    func(s string) string { return fmt.Sprintf("%X", s) },
	"base64": func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"url":    func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
}

// FuzzScrub hides a secret in a text in all forms. It must be gone however the
// text is cut into pieces, and nothing else may change.
func FuzzScrub(f *testing.F) {
	f.Add("s3cr/t+\"value\"\\ü?&x\n=end", "before ", " after", uint64(1))
	f.Add("aaaaaaaaaaaaaaaa", "aaaaaaa%", "aaaa", uint64(2))
	f.Add(`a\nb\\tc%41&amp;d'e`, `C:\`, "%%", uint64(3))
	f.Add("12345678", "0x31 00000000: ", "  |", uint64(4))
	f.Add("-----BEGIN X-----\nabcdefghijklmnop\n-----END X-----", "+", "$\n", uint64(5))
	f.Fuzz(func(t *testing.T, secret, before, after string, seed uint64) {
		if secret = strings.TrimSpace(secret); len(secret) < MinLength || len(secret) > 4096 || len(before)+len(after) > 4096 {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := New(secret, "Kw4RmTq81+Ly/0dH&5v")
		check := func(name, form string, exactly bool) {
			t.Helper()
			in := before + form + after
			got := s.String(in)
			if pieces := stream(t, s, []byte(in), func(int) int { return 1 + rnd.IntN(1+rnd.IntN(30)) }); !alike(got, pieces) &&
				(exactly || strings.Contains(pieces, form) || !strings.Contains(pieces, Mark)) {
				t.Fatalf("%s of %q: in one piece %q, in several %q", name, secret, got, pieces)
			}
			// What the marks stand for is unknown; what is between is as it was.
			left := in
			for _, part := range strings.Split(got, Mark) {
				_, rest, ok := strings.Cut(left, part)
				if !ok {
					t.Fatalf("%s: %q became %q", name, in, got)
				}
				left = rest
			}
			if strings.Contains(got, form) && !strings.Contains(Mark, form) {
				t.Fatalf("%q leaks as %s in %q", secret, name, got)
			}
		}
		// What a view leaves out of a secret is a gap where a piece ends.
		whole := len(bare(secret, layers)) == len(secret)
		for name, encode := range encoders {
			check(name, encode(secret), whole)
		}
		// Nothing around these makes something else of their ends.
		gap := strings.Contains(strings.Map(blank, secret), strings.Repeat(" ", maxGap/longestSpace))
		if before = strings.Trim(before, "%&\\'\x1b") + " "; strings.Contains(before, "\x1b") || !stable(secret) || gap ||
			len(bare(secret, layers)) < MinLength {
			return
		}
		after = " " + after
		for name, encode := range others {
			check(name, encode(secret), whole && name != "numbers")
		}
		for name, encode := range spaced {
			check(name+" spread", spread(encode(secret), rnd), false)
		}
		if len(bare(secret, layers)) >= MinLoose && !strings.ContainsAny(secret, "\x1b\\%&'") {
			check("spread", spread(secret, rnd), false)
		}
		// Another secret: all that is not this one stays.
		other := New("Kw4RmTq81+Ly/0dH&5v")
		if in := before + secret + after; other.String(in) != in ||
			stream(t, other, []byte(in), func(int) int { return 1 + rnd.IntN(9) }) != in {
			t.Fatalf("%q was changed", in)
		}
	})
}
