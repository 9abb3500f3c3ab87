package chain

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// Book is the notes of a file that were signed with a key that can be trusted.
type Book struct {
	Notes []Note   // in the order of the file
	Lines [][]byte // of Notes
	Bad   []string // what is wrong with other lines
	keys  map[string]ed25519.PublicKey
}

// ReadBook reads notes, one a line. Trusted are the keys that are known to be
// ours; a key that one of them has signed a note of is as good. The end of a
// file that was being written when the power went, a line without a line break,
// is no note.
func ReadBook(r io.Reader, trusted ...ed25519.PublicKey) (*Book, error) {
	b := &Book{keys: map[string]ed25519.PublicKey{}}
	for _, k := range trusted {
		b.keys[KeyID(k)] = k
	}
	type entry struct {
		Note
		at   int
		line []byte
	}
	var all []entry
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
		e := entry{at: n, line: line}
		if err := json.Unmarshal(line, &e.Note, json.RejectUnknownMembers(true)); err != nil {
			b.Bad = append(b.Bad, fmt.Sprintf("line %d is no note", n))
			continue
		}
		all = append(all, e)
	}
	for found := true; found; { // keys lead to keys
		found = false
		for _, e := range all {
			k, err := ParsePublicKey(e.PublicKey)
			if e.Type != NoteKey || err != nil || b.keys[KeyID(k)] != nil || !b.signed(e.Note, e.line) {
				continue
			}
			b.keys[KeyID(k)] = k
			found = true
		}
	}
	for _, e := range all {
		if !b.signed(e.Note, e.line) {
			b.Bad = append(b.Bad, fmt.Sprintf("line %d, of the time %s, is not signed with a key that can be trusted", e.at, quote(e.Time)))
			continue
		}
		b.Notes, b.Lines = append(b.Notes, e.Note), append(b.Lines, e.line)
	}
	return b, nil
}

// quote is text that nobody vouches for.
func quote(s string) string { return fmt.Sprintf("%.40q", s) }

func (b *Book) signed(n Note, line []byte) bool {
	k := b.keys[n.Key]
	return k != nil && by(k, line, n.Signature)
}

// Introduced tells whether a key has signed a note of another one, or of
// itself.
func (b *Book) Introduced(by, key ed25519.PublicKey) bool {
	return slices.ContainsFunc(b.Notes, func(n Note) bool {
		return n.Type == NoteKey && n.Key == KeyID(by) && n.PublicKey == spell(key)
	})
}

// Chain is what is noted of one account's chain and still has to hold, oldest
// first: what came before a note of type accept does not. Of Heads the last one
// that is not AfterBreak was written when all before it held.
type Chain struct {
	Account string
	Heads   []Note
	// Passed are the heads that need not hold any more, and Accepted why.
	Passed   []Note
	Accepted []Note
}

// Chains are the chains that something is noted of, in the order of accounts.
func (b *Book) Chains() []Chain {
	all := map[string]*Chain{}
	for _, n := range b.Notes {
		if n.Type != NoteHead && n.Type != NoteAccept {
			continue
		}
		c := all[n.Account]
		if c == nil {
			c = &Chain{Account: n.Account}
			all[n.Account] = c
		}
		if n.Type == NoteAccept {
			c.Passed, c.Heads, c.Accepted = append(c.Passed, c.Heads...), nil, append(c.Accepted, n)
		}
		c.Heads = append(c.Heads, n)
	}
	var out []Chain
	for _, account := range slices.Sorted(maps.Keys(all)) {
		out = append(out, *all[account])
	}
	return out
}

// Binding are the notes of which each has to be compared so that all of Heads
// are: the newest, and the newest of those that are not AfterBreak.
func (c Chain) Binding() (out []Note) {
	for i, sound := len(c.Heads)-1, false; i >= 0 && !sound; i-- {
		if sound = !c.Heads[i].AfterBreak; sound || len(out) == 0 {
			out = append(out, c.Heads[i])
		}
	}
	return out
}

// Missed says how a chain differs from what is noted of it.
func Missed(n Note, found string, newest int64, until *Note) string {
	var b strings.Builder
	switch {
	case found == "" && newest < n.Seq:
		fmt.Fprintf(&b, "the newest row has the number %d, but %d was noted at %s: rows were cut off at the end, or an older state was put back", newest, n.Seq, n.Time)
	case found == "":
		fmt.Fprintf(&b, "row number %d, noted at %s, is not there", n.Seq, n.Time)
	default:
		fmt.Fprintf(&b, "row number %d is not the one that was noted at %s: it or a row before it was changed", n.Seq, n.Time)
	}
	if until != nil {
		fmt.Fprintf(&b, "; up to number %d, noted at %s, nothing was", until.Seq, until.Time)
	}
	return b.String()
}

// VerifyAgainst is Verify that also holds the rows against notes. Missing says
// what is not as it was noted, naming the account; passed is what differs from
// notes that were accepted to be wrong since. Neither is said of rows that the
// export does not reach back to.
func VerifyAgainst(r io.Reader, b *Book) (spans []Span, missing, passed []string, err error) {
	chains := b.Chains()
	noted := map[string]map[int64]string{} // hashes found, by account and number
	for _, c := range chains {
		noted[c.Account] = map[int64]string{}
		for _, n := range slices.Concat(c.Passed, c.Heads) {
			noted[c.Account][n.Seq] = ""
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
		i := slices.IndexFunc(chains, func(c Chain) bool { return c.Account == s.AccountID })
		if i < 0 {
			missing = append(missing, name+": no head of it is noted")
			continue
		}
		c := chains[i]
		var until *Note
		for _, n := range c.Heads {
			found := noted[c.Account][n.Seq]
			if n.Seq < s.First.Seq {
				continue
			}
			if found != n.Hash {
				missing = append(missing, name+": "+Missed(n, found, s.Head.Seq, until))
				break
			}
			until = &n
		}
		for _, n := range c.Passed {
			if n.Seq >= s.First.Seq && noted[c.Account][n.Seq] != n.Hash {
				why := c.Accepted[len(c.Accepted)-1]
				passed = append(passed, fmt.Sprintf("%s: %s; this was accepted at %s: %s", name, Missed(n, noted[c.Account][n.Seq], s.Head.Seq, nil), why.Time, why.Reason))
				break
			}
		}
	}
	return spans, missing, passed, nil
}
