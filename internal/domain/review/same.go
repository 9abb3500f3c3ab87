package review

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// keyOf identifies a finding. No number of a line is in it.
func keyOf(repoID, prID, file, kind, symbol, anchor string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{repoID, prID, file, kind, symbol, anchor}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// alike is the likeness from which two claims say the same.
const alike = 0.6

// likeness is the share of the trigrams of two texts that both have: 0 to 1.
func likeness(a, b string) float64 {
	x, y := trigrams(a), trigrams(b)
	if len(x) == 0 || len(y) == 0 {
		return 0
	}
	both := 0
	for t := range x {
		if y[t] {
			both++
		}
	}
	return float64(both) / float64(len(x)+len(y)-both)
}

func trigrams(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		r := []rune("  " + w + " ")
		for i := range len(r) - 2 {
			out[string(r[i:i+3])] = true
		}
	}
	return out
}

// repeats tells whether a new finding was made before: its key is equal, or it is of the
// same kind and its lines overlap those of the old one, or it claims nearly the same within
// the same section. The old one is as it stands on the head of the new one.
func (f Finding) repeats(old Finding) bool {
	switch {
	case f.Key == old.Key:
		return true
	case f.File != old.File:
		return false
	case f.Kind == old.Kind && f.Side == old.Side && old.placed() && f.first() <= old.Line && old.first() <= f.Line:
		return true
	}
	return f.Symbol == old.Symbol && likeness(f.Claim, old.Claim) >= alike
}

// first is the first line of a finding.
func (f Finding) first() int {
	if f.StartLine > 0 {
		return f.StartLine
	}
	return f.Line
}

// placed tells whether the lines of a finding count on the present head.
func (f Finding) placed() bool { return f.Line > 0 && f.State != Stale }
