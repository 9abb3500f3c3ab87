package hashchain

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/go-json-experiment/json"
)

// Book holds the notes of a file that were signed with a trusted key.
type Book struct {
	// Bad describes lines that are no notes, or that are not signed with a trusted
	// key. Before Check it holds only the first kind.
	Bad     []string
	entries []*entry
	keys    map[string]*trust
}

// trust says how far a key is trusted.
type trust struct {
	key ed25519.PublicKey
	// until is the line in which a newer key vouches for this one, which it had
	// replaced by then. Later lines with this key were signed with a stolen key.
	// 0: the key is trusted by itself.
	until int
}

// entry is a line in the form of a note.
type entry struct {
	Note
	line    []byte
	at      int // number of the line
	checked bool
	good    bool
}

// ReadBook reads notes, one a line. trusted are known keys of ours. A key for which
// a trusted key has signed a note is trusted up to that line, and not after it. A
// last line without a line break is no note, because the power may have failed
// while it was written. Signatures are checked when a note is needed; 10,000 checks
// take about a second.
func ReadBook(r io.Reader, trusted ...ed25519.PublicKey) (*Book, error) {
	b := &Book{keys: map[string]*trust{}}
	for _, k := range trusted {
		b.keys[KeyID(k)] = &trust{key: k}
	}
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		e := &entry{at: n, line: line}
		if err := json.Unmarshal(line, &e.Note, json.RejectUnknownMembers(true)); err != nil {
			b.Bad = append(b.Bad, fmt.Sprintf("line %d is no note", n))
			continue
		}
		b.entries = append(b.entries, e)
	}
	// Keys lead to older keys, step by step. A note of an old key about a newer one
	// proves nothing.
	for from := maps.Clone(b.keys); len(from) > 0; {
		next := map[string]*trust{}
		for _, e := range b.entries {
			k, err := ParsePublicKey(e.PublicKey)
			if e.Type != NoteKey || err != nil || from[e.Key] == nil || b.keys[KeyID(k)] != nil || !b.good(e) {
				continue
			}
			if next[KeyID(k)] == nil {
				next[KeyID(k)] = &trust{k, e.at}
			}
		}
		maps.Copy(b.keys, next)
		from = next
	}
	return b, nil
}

// good tells whether a note is signed with a key that is trusted at its line. All
// keys that lead to the key of e must be known.
func (b *Book) good(e *entry) bool {
	k := b.keys[e.Key]
	if !e.checked {
		e.checked, e.good = true, k != nil && by(k.key, e.line, e.Signature)
	}
	return e.good && (k.until == 0 || e.at < k.until)
}

// Check adds every line that is not signed with a trusted key to Bad.
func (b *Book) Check() {
	for _, e := range b.entries {
		switch {
		case b.good(e):
		case e.good:
			b.Bad = append(b.Bad, fmt.Sprintf(
				"line %d, of the time %.40q, is signed with a key that another one had taken the place of", e.at, e.Time))
		default:
			b.Bad = append(b.Bad, fmt.Sprintf(
				"line %d, of the time %.40q, is not signed with a key that can be trusted", e.at, e.Time))
		}
	}
}

// Notes lists all notes that are signed with a trusted key, in the order of the
// file.
func (b *Book) Notes() (out []Note) {
	for _, e := range b.entries {
		if b.good(e) {
			out = append(out, e.Note)
		}
	}
	return out
}

// Introduced tells whether a key has signed a note of another key, or of itself.
func (b *Book) Introduced(by, key ed25519.PublicKey) bool {
	return slices.ContainsFunc(b.entries, func(e *entry) bool {
		return e.Type == NoteKey && e.Key == KeyID(by) && e.PublicKey == spell(key) && b.good(e)
	})
}

// Chain holds the notes of one account's chain that the chain still has to match:
// those from the last note of type accept on.
type Chain struct {
	Account  string
	Accepted []Note // oldest first
	book     *Book
	heads    []*entry // to be matched, oldest first
	passed   []*entry // before the last accept; they need not match
}

// Chains lists the chains that have notes, ordered by account.
func (b *Book) Chains() []*Chain {
	all := map[string]*Chain{}
	for _, e := range b.entries {
		if e.Type != NoteHead && (e.Type != NoteAccept || !b.good(e)) {
			continue
		}
		c := all[e.Account]
		if c == nil {
			c = &Chain{Account: e.Account, book: b}
			all[e.Account] = c
		}
		if e.Type == NoteAccept {
			c.passed, c.heads, c.Accepted = append(c.passed, c.heads...), nil, append(c.Accepted, e.Note)
		}
		c.heads = append(c.heads, e)
	}
	var out []*Chain
	for _, account := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[account])
	}
	return out
}

// Heads lists the notes that the chain has to match, oldest first.
func (c *Chain) Heads() []Note { return c.book.notes(c.heads) }

func (b *Book) notes(entries []*entry) (out []Note) {
	for _, e := range entries {
		if b.good(e) {
			out = append(out, e.Note)
		}
	}
	return out
}

// Binding lists the notes that are enough to compare: if the chain matches them, it
// matches all of Heads. They are the newest note, and the newest one that is not
// AfterBreak, which was written when the chain matched all notes before it.
func (c *Chain) Binding() []Note { return c.book.notes(c.binding()) }

func (c *Chain) binding() (out []*entry) {
	for i := len(c.heads) - 1; i >= 0; i-- {
		e := c.heads[i]
		if (len(out) == 0 || !e.AfterBreak) && c.book.good(e) {
			out = append(out, e)
		}
		if !e.AfterBreak && c.book.good(e) {
			break
		}
	}
	return out
}

// Newest returns the last note, and its line.
func (c *Chain) Newest() (n Note, line []byte, ok bool) {
	if all := c.binding(); len(all) > 0 {
		return all[0].Note, all[0].line, true
	}
	return n, nil, false
}

// Until returns the newest note before n that a chain still matches, as holds tells
// for a note; nil if there is none. Each row fixes the rows before it: a chain that
// matches a note also matches the earlier ones.
func (c *Chain) Until(n Note, holds func(Note) bool) *Note {
	var sound []*entry
	for _, e := range c.heads {
		if !e.AfterBreak && e.Seq > 0 && e.Seq < n.Seq {
			sound = append(sound, e)
		}
	}
	i := sort.Search(len(sound), func(i int) bool { return !holds(sound[i].Note) }) - 1
	for ; i >= 0; i-- {
		if c.book.good(sound[i]) {
			return &sound[i].Note
		}
	}
	return nil
}

// Shorten returns the lines to keep in a file that may have half of limit bytes:
// the notes of keys, the notes that each chain is compared with, and the newest of
// the others.
func (b *Book) Shorten(limit int) []byte {
	keep := map[*entry]bool{}
	left := limit / 2
	hold := func(e *entry) {
		if !keep[e] {
			keep[e] = true
			left -= len(e.line) + 1
		}
	}
	for _, c := range b.Chains() {
		for _, e := range c.binding() {
			hold(e)
		}
		if len(c.Accepted) > 0 {
			last := c.Accepted[len(c.Accepted)-1].Signature
			hold(c.heads[slices.IndexFunc(c.heads, func(e *entry) bool { return e.Signature == last })])
		}
	}
	for _, e := range b.entries {
		if e.Type == NoteKey && b.good(e) {
			hold(e)
		}
	}
	for i := len(b.entries) - 1; i >= 0 && left > 0; i-- {
		hold(b.entries[i])
	}
	var text bytes.Buffer
	for _, e := range b.entries {
		if keep[e] {
			text.Write(e.line)
			text.WriteByte('\n')
		}
	}
	return text.Bytes()
}

// Mismatch says how a chain differs from a note about it.
func Mismatch(n Note, found string, newest int64, until *Note) string {
	var b strings.Builder
	switch {
	case found == "" && newest < n.Seq:
		fmt.Fprintf(&b, "the newest row has the number %d, but %d was noted at %s: "+
			"rows were cut off at the end, or an older state was put back", newest, n.Seq, n.Time)
	case found == "":
		fmt.Fprintf(&b, "row number %d, noted at %s, is not there", n.Seq, n.Time)
	default:
		fmt.Fprintf(&b, "row number %d is not the one that was noted at %s: it or a row before it was changed",
			n.Seq, n.Time)
	}
	if until != nil {
		fmt.Fprintf(&b, "; up to number %d, noted at %s, nothing was", until.Seq, until.Time)
	}
	return b.String()
}

// VerifyAgainst is Verify that also compares the rows with notes. missing describes
// the differences, with the account; passed describes differences from notes that
// were accepted since. Rows before the export's first one are not compared.
func VerifyAgainst(r io.Reader, b *Book) (spans []Span, missing, passed []string, err error) {
	chains := b.Chains()
	noted := map[string]map[int64]string{} // hashes found, by account and number
	for _, c := range chains {
		noted[c.Account] = map[int64]string{}
		for _, e := range slices.Concat(c.passed, c.heads) {
			noted[c.Account][e.Seq] = ""
		}
	}
	spans, err = walkAll(r, func(account string, l Link) {
		if _, ok := noted[account][l.Seq]; ok {
			noted[account][l.Seq] = l.Hash
		}
	})
	if err != nil {
		return nil, nil, nil, err
	}
	for _, s := range spans {
		name := s.AccountID
		if name == "" {
			name = "the platform"
		}
		i := slices.IndexFunc(chains, func(c *Chain) bool { return c.Account == s.AccountID })
		if i < 0 || len(chains[i].Heads()) == 0 {
			missing = append(missing, name+": no head of it is noted")
			continue
		}
		c := chains[i]
		var until *Note
		for _, n := range c.Heads() {
			found := noted[c.Account][n.Seq]
			if n.Seq < s.First.Seq {
				continue
			}
			if found != n.Hash {
				missing = append(missing, name+": "+Mismatch(n, found, s.Head.Seq, until))
				break
			}
			until = &n
		}
		for _, n := range b.notes(c.passed) {
			if n.Seq >= s.First.Seq && noted[c.Account][n.Seq] != n.Hash {
				why := c.Accepted[len(c.Accepted)-1]
				passed = append(passed, fmt.Sprintf("%s: %s; this was accepted at %s: %s",
					name, Mismatch(n, noted[c.Account][n.Seq], s.Head.Seq, nil), why.Time, why.Reason))
				break
			}
		}
	}
	return spans, missing, passed, nil
}
