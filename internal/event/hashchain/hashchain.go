// Package hashchain chains audit rows by hashes. Every row of an account carries
// the hash of the row before it and its own hash. So a reader of an export can
// tell, without the server, whether a row was changed, removed or inserted. The
// export alone does not show whether the newest rows are missing, or whether all
// hashes were computed anew; signed notes of heads outside of the database do.
//
// The hash of a row is the SHA-256, in lower-case hex, of the row's JSON in the
// canonical form of RFC 8785, without the member "hash". The first row of an
// account has seq 1 and an empty prev_hash.
package hashchain

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Hash returns the hash of a row: a JSON object, with or without "hash".
func Hash(row []byte) (string, error) {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(row, &members); err != nil {
		return "", err
	}
	delete(members, "hash")
	v, err := json.Marshal(members)
	if err != nil {
		return "", err
	}
	return sum(v)
}

// HashOf returns the hash of the object that v is encoded as; v has no "hash".
func HashOf(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return sum(b)
}

func sum(v jsontext.Value) (string, error) {
	if err := v.Canonicalize(); err != nil {
		return "", err
	}
	s := sha256.Sum256(v)
	return hex.EncodeToString(s[:]), nil
}

// Link holds the members of a row that tell its place in the chain.
type Link struct {
	ID        string  `json:"id"`
	AccountID *string `json:"account_id"`
	Seq       int64   `json:"seq"`
	PrevHash  string  `json:"prev_hash"`
	Hash      string  `json:"hash"`
}

// Break is the first bad row of an export.
type Break struct {
	Line int
	ID   string // "" if it cannot be read
	Why  string
}

func (b *Break) Error() string {
	if b.ID == "" {
		return fmt.Sprintf("line %d: %s", b.Line, b.Why)
	}
	return fmt.Sprintf("line %d, row %s: %s", b.Line, b.ID, b.Why)
}

// Span is the part of one account's chain that is in an export.
type Span struct {
	AccountID string // empty: rows of the platform itself
	Rows      int
	First     Link
	Head      Link // the newest row
}

// longest limits a row, in bytes. A request is not longer, and the record of a
// request is shorter.
const longest = 4 << 20

// Verify reads an export, one row a line, with each account's rows either all
// newest first or all oldest first. It fails with a *Break at the first bad row,
// and otherwise returns a span for each account, in the order of appearance.
func Verify(r io.Reader) ([]Span, error) { return walkAll(r, func(string, Link) {}) }

// walkAll is Verify that calls see for each good row.
func walkAll(r io.Reader, see func(account string, l Link)) ([]Span, error) {
	var order []string
	walks := map[string]*walk{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longest)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var row struct {
			Link
			Withheld []string `json:"withheld"`
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return nil, &Break{Line: n, Why: "is not an audit row: " + err.Error()}
		}
		l, account := row.Link, ""
		if l.AccountID != nil {
			account = *l.AccountID
		}
		w := walks[account]
		if w == nil {
			w = &walk{span: Span{AccountID: account}}
			walks[account] = w
			order = append(order, account)
		}
		got, err := Hash(text)
		switch {
		case len(row.Withheld) > 0:
			return nil, &Break{n, l.ID, "cannot be checked: something was withheld from whoever made the export. Somebody " +
				"with write:members exports all of it"}
		case err != nil:
			return nil, &Break{n, l.ID, err.Error()}
		case got != l.Hash:
			return nil, &Break{n, l.ID, "was changed: its hash is not that of its content"}
		}
		if why := w.step(l); why != "" {
			return nil, &Break{n, l.ID, why}
		}
		see(account, l)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line is longer than %d bytes", longest)
		}
		return nil, err
	}
	out := make([]Span, len(order))
	for i, account := range order {
		out[i] = walks[account].span
	}
	return out, nil
}

// walk follows one account's chain.
type walk struct {
	span Span
	last Link
	down bool // newest first
}

// step takes the next row. It returns what is wrong with the row's place, or "".
func (w *walk) step(l Link) string {
	s, last := &w.span, w.last
	if l.Seq < 1 || (l.Seq == 1) != (l.PrevHash == "") {
		return "has no place in a chain: the first row, and no other, follows nothing"
	}
	switch s.Rows {
	case 0:
		s.First, s.Head = l, l
	case 1:
		w.down = l.Seq < last.Seq
	}
	if s.Rows > 0 {
		older, newer := last, l
		if w.down {
			older, newer = l, last
		}
		switch {
		case newer.Seq != older.Seq+1:
			return fmt.Sprintf("has the number %d and stands beside %d: rows were taken out, put in or moved",
				l.Seq, last.Seq)
		case newer.PrevHash != older.Hash:
			return fmt.Sprintf("is not the row that number %d was written next to", last.Seq)
		}
		if w.down {
			s.First = l
		} else {
			s.Head = l
		}
	}
	s.Rows++
	w.last = l
	return ""
}
