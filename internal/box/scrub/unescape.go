package scrub

import (
	"bytes"
	"html"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// symbols are bytes, each of which stands for a part of the source.
type symbols struct {
	text     []byte
	from, to []int64
}

func (s *symbols) add(b byte, from, to int64) {
	s.text, s.from, s.to = append(s.text, b), append(s.from, from), append(s.to, to)
}

// drop removes the first k symbols.
func (s *symbols) drop(k int) {
	if k == len(s.text) {
		s.text, s.from, s.to = s.text[:0], s.from[:0], s.to[:0]
		return
	}
	n := copy(s.text, s.text[k:])
	copy(s.from, s.from[k:])
	copy(s.to, s.to[k:])
	s.text, s.from, s.to = s.text[:n], s.from[:n], s.to[:n]
}

// undecided returns the position of the first symbol, or end if there are none.
func (s *symbols) undecided(end int64) int64 {
	if len(s.from) > 0 {
		return s.from[0]
	}
	return end
}

// layers is how often text may be escaped: a tool prints a string in JSON as JSON,
// an agent reports that as JSON again, and the string itself may have escapes.
const layers = 4

// unescaper removes layers of escapes: those of JSON, C, shells, URLs and HTML, in
// any mixture. Other bytes stay as they are.
type unescaper struct {
	waiting [layers]symbols // a possible beginning of an escape
	pending int             // number of layers with waiting symbols
	next    func(b byte, from, to int64)
}

// escapes marks the bytes that begin an escape.
var escapes = [256]bool{'\\': true, '%': true, '&': true, '\'': true}

func (u *unescaper) put(layer int, b byte, from, to int64) {
	for ; layer < layers; layer++ {
		if w := &u.waiting[layer]; len(w.text) > 0 || escapes[b] {
			if len(w.text) == 0 {
				u.pending++
			}
			w.add(b, from, to)
			u.drain(layer, false)
			return
		}
	}
	u.next(b, from, to)
}

// drain passes on the decided symbols of a layer, or with last all of them.
func (u *unescaper) drain(layer int, last bool) {
	w, at := &u.waiting[layer], 0
	for at < len(w.text) {
		n, b, r := unescape(w.text[at:], last)
		if n == 0 {
			break
		}
		from, to := w.from[at], w.to[at+n-1]
		at += n
		if r < utf8.RuneSelf {
			u.put(layer+1, b, from, to)
			continue
		}
		for _, b := range utf8.AppendRune(nil, r) {
			u.put(layer+1, b, from, to)
		}
	}
	if w.drop(at); len(w.text) == 0 && at > 0 {
		u.pending--
	}
}

// finish passes on all waiting symbols.
func (u *unescaper) finish() {
	for layer := range u.waiting {
		u.drain(layer, true)
	}
}

// undecided returns the position of the first waiting byte, or end.
func (u *unescaper) undecided(end int64) int64 {
	first := end
	for i := range u.waiting {
		first = min(first, u.waiting[i].undecided(end))
	}
	return first
}

func (u *unescaper) clear() {
	for i := range u.waiting {
		u.waiting[i].drop(len(u.waiting[i].text))
	}
	u.pending = 0
}

// unescape reads the first character of text. It returns how many bytes the
// character takes, and the byte it stands for, or the rune if it is not ASCII. It
// takes 0 bytes if more text could change the result; with last it never does. A
// backslash before a character without a meaning stands for nothing.
func unescape(text []byte, last bool) (n int, b byte, r rune) {
	n, b, r = escape(text)
	if n == 0 && last {
		return 1, text[0], 0
	}
	return n, b, r
}

func escape(text []byte) (n int, b byte, r rune) {
	switch text[0] {
	case '\\':
		return backslash(text)
	case '%':
		if v, k := digits(text[1:], 16, 2, 2); k == 2 {
			return 3, byte(v), 0
		} else if k < 0 {
			return 0, 0, 0
		}
	case '&':
		return entity(text)
	case '\'':
		for _, quote := range [...]string{`'\''`, `'"'"'`} {
			if len(text) < len(quote) && quote[:len(text)] == string(text) {
				return 0, 0, 0
			}
			if bytes.HasPrefix(text, []byte(quote)) {
				return len(quote), '\'', 0
			}
		}
	}
	return 1, text[0], 0
}

// digits reads between least and most digits and returns their value and number.
// The number is 0 if there are too few, and -1 if text ends too early to tell.
func digits(text []byte, base, least, most int) (v int64, k int) {
	for k < most && k < len(text) {
		d := int(hexDigit[text[k]])
		if d >= base {
			break
		}
		v, k = v*int64(base)+int64(d), k+1
	}
	switch {
	case k == len(text) && k < most:
		return 0, -1
	case k < least:
		return 0, 0
	}
	return v, k
}

// simple maps the characters of one-character escapes to the characters they stand
// for.
var simple = [256]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v'}

func backslash(text []byte) (n int, b byte, r rune) {
	if len(text) < 2 {
		return 0, 0, 0
	}
	c := text[1]
	if s := simple[c]; s != 0 {
		return 2, s, 0
	}
	switch {
	case c == 'x':
		if v, k := digits(text[2:], 16, 1, 2); k != 0 {
			return number(2, v, k, 0)
		}
	case c == 'U':
		if v, k := digits(text[2:], 16, 8, 8); k != 0 {
			return number(2, 0, k, rune(v))
		}
	case '0' <= c && c <= '7':
		if v, k := digits(text[1:], 8, 1, 3); k != 0 {
			return number(1, v&0xff, k, 0)
		}
	case c == 'u':
		return unicode(text)
	}
	return 2, c, 0
}

// number returns an escape of k digits after before other bytes, which stands for
// the byte v or the rune r.
func number(before int, v int64, k int, r rune) (int, byte, rune) {
	if k < 0 {
		return 0, 0, 0
	}
	if r < utf8.RuneSelf {
		return before + k, byte(v) | byte(r), 0
	}
	return before + k, 0, r
}

func unicode(text []byte) (n int, b byte, r rune) {
	v, k := digits(text[2:], 16, 4, 4)
	if k <= 0 {
		if k == 0 {
			return 2, 'u', 0
		}
		return 0, 0, 0
	}
	if !utf16.IsSurrogate(rune(v)) {
		return number(2, 0, k, rune(v))
	}
	const low = `\u`
	rest := text[6:]
	if len(rest) < len(low) && low[:len(rest)] == string(rest) {
		return 0, 0, 0
	}
	if bytes.HasPrefix(rest, []byte(low)) {
		w, k := digits(rest[2:], 16, 4, 4)
		if k < 0 {
			return 0, 0, 0
		}
		if r := utf16.DecodeRune(rune(v), rune(w)); k > 0 && r != utf8.RuneError {
			return 12, 0, r
		}
	}
	return 6, 0, utf8.RuneError
}

// longestEntity is longer than the names of all ASCII characters.
const longestEntity = 12

func entity(text []byte) (n int, b byte, r rune) {
	end := 1
	for end < len(text) && end < longestEntity && (alphanumeric(text[end]) || end == 1 && text[end] == '#') {
		end++
	}
	switch {
	case end == len(text) && end < longestEntity:
		return 0, 0, 0
	case end == longestEntity || text[end] != ';' || end == 1:
		return 1, '&', 0
	}
	name := string(text[1:end])
	if name[0] == '#' {
		// The library reads some numbers as characters of Windows code pages.
		num, base := name[1:], 10
		if num != "" && num[0]|0x20 == 'x' {
			num, base = num[1:], 16
		}
		v, err := strconv.ParseInt(num, base, 32)
		if err != nil {
			return 1, '&', 0
		}
		return number(end+1, 0, 0, rune(v))
	}
	s := html.UnescapeString("&" + name + ";")
	r, size := utf8.DecodeRuneInString(s)
	if size != len(s) {
		return 1, '&', 0
	}
	return number(end+1, 0, 0, r)
}

// hexDigit is the value of a digit, or 255.
var hexDigit = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for i, c := range []byte("0123456789abcdef") {
		t[c] = byte(i)
	}
	for i, c := range []byte("ABCDEF") {
		t[c] = byte(10 + i)
	}
	return t
}()
