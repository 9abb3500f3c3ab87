package recorded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// frames is the type of a stream of frames, each of which begins with its length.
const frames = "application/vnd.amazon.eventstream"

// Vary makes another answer of the same bytes, or one that is cut.
//
//	one        the whole body in one piece
//	byte       each byte a piece (bodies over 64 KiB: pieces of 4,093 bytes)
//	shift+3    each boundary moved three bytes on (shift-3: back)
//	rune       one more boundary inside each rune of several bytes
//	half       one more boundary in the middle of each piece
//	after+3    the connection is cut behind the third event
//	inside+3   the connection is cut in the middle of the third event
//	close+3    as after+3, but the body ends without an error of the transport:
//	           no Transfer-Encoding, no Content-Length, the connection is closed
func (a *Answer) Vary(how string) (*Answer, error) {
	out := *a
	whole := a.Body()
	kind, number, _ := strings.Cut(strings.ReplaceAll(how, "-", "+-"), "+")
	n, err := strconv.Atoi(number)
	if number != "" && err != nil {
		return nil, fmt.Errorf("%s: no number", how)
	}
	switch kind {
	case "one":
		out.Pieces = split(whole, nil)
	case "byte":
		step := 1
		if len(whole) > 64<<10 {
			step = 4093
		}
		var at []int
		for i := step; i < len(whole); i += step {
			at = append(at, i)
		}
		out.Pieces = split(whole, at)
	case "shift":
		at := a.boundaries()
		for i := range at {
			at[i] += n
		}
		out.Pieces = split(whole, at)
	case "half":
		at := a.boundaries()
		from := 0
		for _, to := range append(slices.Clone(at), len(whole)) {
			at = append(at, (from+to)/2)
			from = to
		}
		out.Pieces = split(whole, at)
	case "rune":
		at := a.boundaries()
		for i := 0; i < len(whole); {
			_, size := utf8.DecodeRune(whole[i:])
			for k := 1; k < size; k++ {
				at = append(at, i+k)
			}
			i += size
		}
		out.Pieces = split(whole, at)
	case "after", "inside", "close":
		ends := a.events()
		if n < 0 || n > len(ends) || n == 0 && kind == "inside" {
			return nil, fmt.Errorf("%s: the answer has %d events", how, len(ends))
		}
		to := 0
		if n > 0 {
			to = ends[n-1]
		}
		if kind == "inside" {
			from := 0
			if n > 1 {
				from = ends[n-2]
			}
			to = (from + to) / 2
		}
		at := slices.DeleteFunc(a.boundaries(), func(i int) bool { return i >= to })
		out.Pieces = split(whole[:to], at)
		out.End = "cut"
		if kind == "close" {
			out.End = ""
			out.names = slices.DeleteFunc(slices.Clone(a.names), func(l string) bool {
				l = strings.ToLower(l)
				return strings.HasPrefix(l, "transfer-encoding:") || strings.HasPrefix(l, "content-length:")
			})
			out.Header = a.Header.Clone()
			out.Header.Del("Transfer-Encoding")
			out.Header.Del("Content-Length")
			out.names = append(out.names, "Connection: close")
		}
	default:
		return nil, fmt.Errorf("%s: no such variant", how)
	}
	return &out, nil
}

func (a *Answer) boundaries() (at []int) {
	n := 0
	for _, p := range a.Pieces {
		n += len(p)
		at = append(at, n)
	}
	return at[:max(len(at)-1, 0)]
}

func split(whole []byte, at []int) (out [][]byte) {
	slices.Sort(at)
	from := 0
	for _, to := range append(at, len(whole)) {
		if to > from && to <= len(whole) {
			out = append(out, whole[from:to])
			from = to
		}
	}
	return out
}

// events are the offsets behind each event: behind the empty line of a server-sent
// event, behind a line of NDJSON, behind a frame of an AWS event stream. Another
// body is cut behind each of its pieces.
func (a *Answer) events() (ends []int) {
	b := a.Body()
	kind := a.Header.Get("Content-Type")
	switch {
	case a.Header.Get("Content-Encoding") != "":
		return append(a.boundaries(), len(b))
	case strings.HasPrefix(kind, "text/event-stream"):
		empty := true // this line so far
		for i := 0; i < len(b); i++ {
			switch {
			case b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n':
			case b[i] == '\n' || b[i] == '\r':
				if empty && i > 0 {
					ends = append(ends, i+1)
				}
				empty = true
			default:
				empty = false
			}
		}
	case strings.HasPrefix(kind, "application/x-ndjson"):
		for i, c := range b {
			if c == '\n' {
				ends = append(ends, i+1)
			}
		}
	case kind == frames:
		for at := 0; at+4 <= len(b); {
			n := int(binary.BigEndian.Uint32(b[at:]))
			if n < 16 || at+n > len(b) {
				break
			}
			at += n
			ends = append(ends, at)
		}
	default:
		ends = a.boundaries()
	}
	if len(b) > 0 && (len(ends) == 0 || ends[len(ends)-1] < len(b)) && len(bytes.TrimSpace(b)) > 0 {
		ends = append(ends, len(b))
	}
	return ends
}

// Variants are the names of all variants with the same bytes.
func (a *Answer) Variants() []string {
	out := []string{"one", "half", "rune", "shift+1", "shift-1", "shift+3", "shift-3", "shift+7"}
	if len(a.Body()) <= 4<<10 || len(a.Body()) > 64<<10 {
		out = append(out, "byte")
	}
	return out
}

// Cuts are the names of all variants that are cut.
func (a *Answer) Cuts() (out []string) {
	n := len(a.events())
	for i := 0; i <= min(n, 40); i++ {
		out = append(out, fmt.Sprintf("after+%d", i), fmt.Sprintf("close+%d", i))
		if i > 0 {
			out = append(out, fmt.Sprintf("inside+%d", i))
		}
	}
	return out
}
