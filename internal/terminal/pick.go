package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"yardmaster/internal/client/inert"
)

// ErrNothingPicked is the error of a picker that was left.
var ErrNothingPicked = errors.New("nothing was picked")

// ErrInterrupted is the error of a picker that was left with Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// shown is the number of rows that a picker shows at once.
const shown = 10

// picker is the state of a choice: what is typed, which rows have it, and which row the
// cursor is on.
type picker struct {
	prompt string
	rows   []string
	typed  string
	at     int // in matches
	top    int
}

// matches are the indices of the rows that have every word that is typed.
func (p *picker) matches() (out []int) {
	words := strings.Fields(strings.ToLower(p.typed))
next:
	for i, r := range p.rows {
		r = strings.ToLower(r)
		for _, w := range words {
			if !strings.Contains(r, w) {
				continue next
			}
		}
		out = append(out, i)
	}
	return out
}

// key handles a key. It answers the picked row, or -1 while nothing is picked.
func (p *picker) key(k string) (row int, err error) {
	found := p.matches()
	switch k {
	case "\r", "\n":
		if p.at < len(found) {
			return found[p.at], nil
		}
	case "\x03": // Ctrl-C
		return -1, ErrInterrupted
	case "\x04", "\x1b": // Ctrl-D, Escape
		return -1, ErrNothingPicked
	case "\x1b[A", "\x1bOA", "\x10":
		p.at = max(p.at-1, 0)
	case "\x1b[B", "\x1bOB", "\x0e":
		p.at = min(p.at+1, max(len(found)-1, 0))
	case "\x7f", "\b":
		if p.typed != "" {
			_, n := utf8.DecodeLastRuneInString(p.typed)
			p.typed, p.at = p.typed[:len(p.typed)-n], 0
		}
	default:
		if r, _ := utf8.DecodeRuneInString(k); len(k) > 0 && unicode.IsPrint(r) {
			p.typed, p.at = p.typed+k, 0
		}
	}
	switch {
	case p.at < p.top:
		p.top = p.at
	case p.at >= p.top+shown:
		p.top = p.at - shown + 1
	}
	return -1, nil
}

// draw writes the picker and answers how many lines it has.
func (p *picker) draw(s Screen, w io.Writer) int {
	found := p.matches()
	var b strings.Builder
	fmt.Fprintf(&b, "\r\x1b[J%s %s\r\n", s.Paint(Strong, p.prompt), inert.Line(p.typed))
	n := 1
	for i := p.top; i < min(len(found), p.top+shown); i++ {
		mark, tone := "  ", Plain
		if i == p.at {
			mark, tone = "> ", Strong
		}
		b.WriteString(s.Paint(tone, Cut(mark+p.rows[found[i]], s.Width-1)) + "\r\n")
		n++
	}
	fmt.Fprintf(&b, "%s", s.Paint(Faint, Cut(fmt.Sprintf("%d of %d; type to filter, arrows, Enter; Escape leaves", len(found), len(p.rows)),
		s.Width-1)))
	_, _ = io.WriteString(w, b.String())
	return n
}

// Pick has a person choose one of rows on the terminal, and answers its index. It fails
// with ErrNothingPicked if the person leaves, and with ErrInterrupted after Ctrl-C.
func Pick(ctx context.Context, env func(string) string, prompt string, rows []string) (int, error) {
	if !Interactive() {
		return -1, ErrNothingPicked
	}
	in := int(os.Stdin.Fd())
	s := Of(os.Stderr, env)
	before, err := term.MakeRaw(in)
	if err != nil {
		return -1, err
	}
	defer func() { _ = term.Restore(in, before) }()
	p := &picker{prompt: prompt}
	for _, r := range rows {
		p.rows = append(p.rows, inert.Line(r))
	}
	keys := make(chan string)
	go func() {
		defer close(keys)
		read(os.Stdin, keys)
	}()
	for {
		lines := p.draw(s, os.Stderr)
		var k string
		select {
		case <-ctx.Done():
			k = "\x03"
		case got, more := <-keys:
			if k = got; !more {
				k = "\x04"
			}
		}
		row, err := p.key(k)
		fmt.Fprintf(os.Stderr, "\r\x1b[%dA", lines)
		if row >= 0 || err != nil {
			fmt.Fprint(os.Stderr, "\x1b[J")
			return row, err
		}
	}
}

// read sends each key, an escape sequence as one. What is typed in one burst after
// Escape belongs to its sequence.
func read(f io.Reader, keys chan<- string) {
	r := bufio.NewReader(f)
	for {
		c, _, err := r.ReadRune()
		if err != nil {
			return
		}
		k := string(c)
		if c == '\x1b' && r.Buffered() > 0 {
			for r.Buffered() > 0 {
				c, _, _ := r.ReadRune()
				k += string(c)
				if c != '[' && c != 'O' && (unicode.IsLetter(c) || c == '~') {
					break
				}
			}
		}
		keys <- k
		if k == "\r" || k == "\n" || k == "\x03" || k == "\x04" || k == "\x1b" {
			return // the rest of what is typed is not the picker's
		}
	}
}
