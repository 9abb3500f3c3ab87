package answer

import (
	"bytes"
	"encoding/json"
	"strings"
)

// value is the text of a JSON value; nil for a member that is missing. Only strings
// and brackets are told apart, so that what nobody reads costs little.
type value []byte

// picked is the most members that pick finds.
const picked = 12

// pick finds members of an object, in one pass. Of a member that is there twice the
// last counts. All are nil if v is no object, or one whose end is missing.
func (v value) pick(names ...string) (out [picked]value) {
	i := space(v, 0)
	if i == len(v) || v[i] != '{' {
		return out
	}
	for i = space(v, i+1); i < len(v) && v[i] != '}'; i = space(v, i) {
		if v[i] == ',' {
			i++
			continue
		}
		if v[i] != '"' {
			return [picked]value{}
		}
		from := i + 1
		end, ok := text(v, from)
		if !ok {
			return [picked]value{}
		}
		key := v[from : end-1]
		if i = space(v, end); i == len(v) || v[i] != ':' {
			return [picked]value{}
		}
		from = space(v, i+1)
		if i, ok = skip(v, from); !ok {
			return [picked]value{}
		}
		for n, name := range names {
			if string(key) == name {
				out[n] = v[from:i]
			}
		}
	}
	if i >= len(v) {
		return [picked]value{}
	}
	return out
}

// get is one member of an object.
func (v value) get(name string) value { return v.pick(name)[0] }

// each calls f with the elements of an array.
func (v value) each(f func(n int, e value)) {
	if len(v) == 0 || v[0] != '[' {
		return
	}
	n := 0
	for i := space(v, 1); i < len(v) && v[i] != ']'; i = space(v, i) {
		if v[i] == ',' {
			i++
			continue
		}
		end, ok := skip(v, i)
		if !ok {
			return
		}
		f(n, v[i:end])
		n++
		i = end
	}
}

// is tells whether v is the string s, which needs no escape.
func (v value) is(s string) bool {
	return len(v) == len(s)+2 && v[0] == '"' && string(v[1:len(v)-1]) == s
}

// object tells whether v is an object.
func (v value) object() bool { return len(v) > 0 && v[0] == '{' }

// empty tells whether v is missing, null, or an empty string, list or object.
func (v value) empty() bool {
	if len(v) < 2 || string(v) == "null" {
		return len(v) == 0 || v[0] < '0' || v[0] > '9'
	}
	return v[len(v)-1] != '"' && space(v, 1) == len(v)-1 && (v[0] == '[' || v[0] == '{') || string(v) == `""`
}

// str is the text of a string; "" for any other value.
func (v value) str() string {
	if len(v) < 2 || v[0] != '"' {
		return ""
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return strings.ToValidUTF8(string(v[1:len(v)-1]), "\uFFFD")
	}
	var s string
	_ = json.Unmarshal(v, &s) // what is no string has no text
	return s
}

// word is a string, or a number as it is written.
func (v value) word() string {
	if len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
		return string(v)
	}
	return v.str()
}

// maxTokens exceeds every real count, and is small enough for sums of costs. A
// larger number is no count.
const maxTokens = 100_000_000

// count is a number of tokens; false for anything else.
func (v value) count() (n int64, ok bool) {
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n = n*10 + int64(c-'0'); n > maxTokens {
			return 0, false
		}
	}
	return n, len(v) > 0
}

// space is the next offset that holds no space.
func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// text is the offset behind a string whose opening quote is before i.
func text(b []byte, i int) (end int, ok bool) {
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b), false
		}
		slashes := 0
		for k := i + n - 1; k >= i && b[k] == '\\'; k-- {
			slashes++
		}
		i += n + 1
		if slashes%2 == 0 {
			return i, true
		}
	}
	return i, false
}

// skip is the offset behind the value at i.
func skip(b []byte, i int) (end int, ok bool) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i, ok = text(b, i+1); !ok {
				return i, false
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i, false // no value stands here
			}
			depth--
			i++
		case ' ', '\n', '\r', '\t', ',', ':':
			if depth == 0 {
				return i, false
			}
			i++
			continue
		default:
			for i < len(b) && !delimits(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i, true
		}
	}
	return i, false
}

func delimits(c byte) bool {
	switch c {
	case ' ', '\n', '\r', '\t', ',', ':', '}', ']', '{', '[', '"':
		return true
	}
	return false
}
