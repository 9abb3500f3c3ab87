package kb

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// term is what is looked up. Start and End are its bytes in the text as it was
// written, so that a mark never depends on the folded form.
type term struct {
	Text       string
	Start, End int
	Whole      bool // false for a part of an identifier, or one sign of a script without spaces
}

// maxTerm is how many characters of a run of letters count: a blob of base64 is no word.
const maxTerm = 64

// fold gives one form to every way in which a word can be written: compatibility forms,
// case, accents. Neither database's idea of case is asked. fold(fold(s)) is fold(s).
func fold(s string) string {
	ascii := true
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return strings.ToLower(s)
	}
	// Folding can undo the normal form and the other way round, so it is done twice.
	for range 2 {
		s = cases.Fold().String(norm.NFKD.String(s))
	}
	s = norm.NFKD.String(s)
	s = strings.Map(func(r rune) rune {
		// Only the accents of Latin, Greek and Cyrillic go: a mark of Thai or a
		// dakuten of kana makes another word.
		if r >= 0x300 && r < 0x370 || !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.M, r) {
			return -1
		}
		return r
	}, s)
	return norm.NFC.String(s)
}

// isDense tells whether a sign is of a script without spaces between words.
func isDense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer,
		unicode.Myanmar)
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || '0' <= r && r <= '9' || 'a' <= r|0x20 && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.M, r)
}

// terms walks a text. Words are runs of letters, digits and _; an identifier gives itself
// without its _ and its parts (parseHTTPHeader: parsehttpheader, parse, http, header), so
// that camel and snake case meet. Scripts without spaces give each sign and each pair.
func terms(s string, yield func(term)) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case isDense(r):
			i = denseTerms(s, i, yield)
		case isWord(r):
			start := i
			for i < len(s) {
				if r, n = utf8.DecodeRuneInString(s[i:]); !isWord(r) || isDense(r) {
					break
				}
				i += n
			}
			emit(s, start, i, true, yield)
			eachPart(s, start, i, func(a, b int) { emit(s, a, b, false, yield) })
		default:
			i += n
		}
	}
}

// denseTerms yields the signs and pairs of the run that begins at a byte, and returns its end.
func denseTerms(s string, i int, yield func(term)) int {
	for prev := -1; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isDense(r) && !unicode.Is(unicode.M, r) {
			break
		}
		emit(s, i, i+n, false, yield)
		if prev >= 0 {
			emit(s, prev, i+n, true, yield)
		}
		prev = i
		i += n
	}
	return i
}

func emit(s string, a, b int, whole bool, yield func(term)) {
	text := s[a:b]
	if strings.IndexByte(text, '_') >= 0 {
		text = strings.ReplaceAll(text, "_", "")
	}
	if text = fold(text); text == "" {
		return
	}
	if len(text) > maxTerm && utf8.RuneCountInString(text) > maxTerm {
		text = string([]rune(text)[:maxTerm])
	}
	yield(term{text, a, b, whole})
}

// eachPart splits an identifier at _, where a capital follows a small letter or a digit,
// and before the last capital of a run. What has one part yields none.
func eachPart(s string, start, end int, yield func(a, b int)) {
	plain := true // most words are: nothing to split, nothing to allocate
	for i := start; i < end && plain; i++ {
		c := s[i]
		plain = c < utf8.RuneSelf && c != '_' && (i == start || c < 'A' || c > 'Z')
	}
	if plain {
		return
	}
	type sign struct {
		r  rune
		at int
	}
	var signs []sign
	for i, r := range s[start:end] {
		signs = append(signs, sign{r, start + i})
	}
	var out [][2]int
	from := start
	cut := func(to, next int) {
		if to > from {
			out = append(out, [2]int{from, to})
		}
		from = next
	}
	for k, c := range signs {
		if c.r == '_' {
			cut(c.at, c.at+1)
			continue
		}
		if k == 0 || !unicode.IsUpper(c.r) {
			continue
		}
		before := signs[k-1].r
		smallAfter := k+1 < len(signs) && unicode.IsLower(signs[k+1].r)
		if unicode.IsLower(before) || unicode.IsDigit(before) || unicode.IsUpper(before) && smallAfter {
			cut(c.at, c.at)
		}
	}
	cut(end, end)
	if len(out) < 2 {
		return
	}
	for _, p := range out {
		yield(p[0], p[1])
	}
}

// gram is three characters, 21 bits each: no hash, no collision.
type gram int64

// grams are those of a term with a blank before and after it: " pa", "par", "ars", "rse",
// "se ". One sign gives " c ", so that short words have a gram, too.
func grams(t string) []gram {
	rs := append(append([]rune{' '}, []rune(t)...), ' ')
	out := make([]gram, 0, len(rs))
	for i := 0; i+3 <= len(rs); i++ {
		g := gram(rs[i])<<42 | gram(rs[i+1])<<21 | gram(rs[i+2])
		twice := false
		for _, o := range out {
			if o == g {
				twice = true
				break
			}
		}
		if !twice {
			out = append(out, g)
		}
	}
	return out
}
