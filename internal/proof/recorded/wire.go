package recorded

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// Answer is one recorded answer of a provider: its head, and its body in the pieces
// in which it comes.
type Answer struct {
	None   bool // the connection is closed instead of an answer
	Status int
	Header http.Header
	Pieces [][]byte
	End    string // "", cut, reset or hang: what happens behind the last piece

	line  string
	names []string // header lines as written, in order
}

// Body is all that comes behind the head.
func (a *Answer) Body() []byte { return bytes.Join(a.Pieces, nil) }

func (a *Answer) chunked() bool { return a.Header.Get("Transfer-Encoding") == "chunked" }

// length is the announced length of the body; -1: none.
func (a *Answer) length() int {
	n, err := strconv.Atoi(a.Header.Get("Content-Length"))
	if err != nil {
		return -1
	}
	return n
}

// Whole tells whether the transport says that the body is complete.
func (a *Answer) Whole() bool { return a.End == "" && !a.None }

// Torn tells whether a client sees that the body has no end. One that is cut and has
// no framing looks complete.
func (a *Answer) Torn() bool {
	return a.None || a.End == "reset" || a.End == "hang" || a.End == "cut" && (a.chunked() || a.length() >= 0)
}

// parse reads the form that README.md describes.
func parse(text string) (*Answer, error) {
	if strings.Contains(text, "\r") {
		return nil, fmt.Errorf("the file has a carriage return: write \\r")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	a := &Answer{Header: http.Header{}}
	at := 0
	for at < len(lines) && strings.HasPrefix(lines[at], "#") {
		at++
	}
	if at < len(lines) && lines[at] == "!cut" {
		a.None, a.End = true, "cut"
		return a, nil
	}
	for ; at < len(lines) && lines[at] != ""; at++ {
		l := lines[at]
		if a.line == "" {
			a.line = l
			if _, err := fmt.Sscanf(l, "HTTP/1.1 %d", &a.Status); err != nil {
				return nil, fmt.Errorf("line %d is no status line", at+1)
			}
			continue
		}
		name, value, ok := strings.Cut(l, ": ")
		if !ok || name != textproto.TrimString(name) {
			return nil, fmt.Errorf("line %d is no header", at+1)
		}
		a.names = append(a.names, l)
		a.Header.Add(name, value)
	}
	at++
	var piece []byte
	flush := func() {
		if len(piece) > 0 {
			a.Pieces = append(a.Pieces, piece)
			piece = nil
		}
	}
	for ; at < len(lines); at++ {
		l := lines[at]
		if a.End != "" {
			return nil, fmt.Errorf("line %d is behind the end", at+1)
		}
		if l == "--" {
			flush()
			continue
		}
		if l == "" {
			return nil, fmt.Errorf("line %d is empty", at+1)
		}
		rest := l[1:]
		switch l[0] {
		case '#':
		case '|':
			piece = append(append(piece, rest...), '\n')
		case '>':
			piece = append(piece, rest...)
		case '\\':
			b, err := unescape(rest)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", at+1, err)
			}
			piece = append(piece, b...)
		case '=':
			b, err := base64.StdEncoding.Strict().DecodeString(rest)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", at+1, err)
			}
			piece = append(piece, b...)
		case '*':
			count, what, _ := strings.Cut(rest, " ")
			n, err := strconv.Atoi(count)
			if err != nil || n < 1 || n*len(what) > 16<<20 {
				return nil, fmt.Errorf("line %d repeats nothing", at+1)
			}
			piece = append(piece, strings.Repeat(what, n)...)
		case '!':
			if rest != "cut" && rest != "reset" && rest != "hang" {
				return nil, fmt.Errorf("line %d: no such end", at+1)
			}
			flush()
			a.End = rest
		default:
			return nil, fmt.Errorf("line %d begins with %q", at+1, l[0])
		}
	}
	flush()
	return a, nil
}

func unescape(s string) (out []byte, err error) {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i++; i == len(s) {
			return nil, fmt.Errorf("nothing follows the backslash")
		}
		switch s[i] {
		case 'r':
			out = append(out, '\r')
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case '\\':
			out = append(out, '\\')
		case 'x':
			if i+2 >= len(s) {
				return nil, fmt.Errorf("\\x needs two digits")
			}
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return nil, err
			}
			out = append(out, byte(n))
			i += 2
		default:
			return nil, fmt.Errorf("\\%c means nothing", s[i])
		}
	}
	return out, nil
}
