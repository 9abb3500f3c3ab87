package hashchain

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// signer is a key that a test signs with.
func signer(name string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(name, 32)[:32]))
}

// rows makes the lines of an account's first n rows, oldest first, each with
// the hash it has; "" is the platform.
func rows(t *testing.T, account string, n int, data func(seq int) string) (lines []string, hashes map[int64]string) {
	t.Helper()
	hashes = map[int64]string{}
	for seq := 1; seq <= n; seq++ {
		row := map[string]any{"id": fmt.Sprint("r", seq), "account_id": account, "seq": seq, "prev_hash": hashes[int64(seq-1)],
			"data": data(seq)}
		if account == "" {
			row["account_id"] = nil
		}
		hash, err := HashOf(row)
		if err != nil {
			t.Fatal(err)
		}
		row["hash"] = hash
		b, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		lines, hashes[int64(seq)] = append(lines, string(b)), hash
	}
	return lines, hashes
}

func truth(int) string { return "it happened" }

// unix is an hour of a day.
func unix(hour int) time.Time { return time.Unix(1_800_000_000+int64(hour)*3600, 0) }

// signed makes the file of notes.
func signed(t *testing.T, key ed25519.PrivateKey, notes ...Note) string {
	t.Helper()
	var b strings.Builder
	for i, n := range notes {
		_, line, err := Sign(key, unix(i), n)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func read(t *testing.T, text string, trusted ...ed25519.PrivateKey) *Book {
	t.Helper()
	var keys []ed25519.PublicKey
	for _, k := range trusted {
		keys = append(keys, public(k))
	}
	b, err := ReadBook(strings.NewReader(text), keys...)
	if err != nil {
		t.Fatal(err)
	}
	b.Check()
	return b
}

// TestVerifyAgainst holds that a chain that was changed after its heads were noted
// is named with its account and the place up to which it is unchanged, and that
// rows before the export are not mentioned.
func TestVerifyAgainst(t *testing.T) {
	key := signer("a")
	a, ofA := rows(t, "a", 9, truth)
	ours, ofOurs := rows(t, "", 3, truth)
	head := func(account string, hashes map[int64]string, seq int64) Note {
		return Note{Type: NoteHead, Account: account, Seq: seq, Hash: hashes[seq]}
	}
	heads := []Note{head("a", ofA, 3), head("", ofOurs, 2), head("a", ofA, 5), head("", ofOurs, 3), head("a", ofA, 8)}
	lied, _ := rows(t, "a", 9, func(seq int) string { return strings.Repeat("not ", boolean(seq == 4)) + "it happened" })
	down := func(l []string) []string {
		l = slices.Clone(l)
		slices.Reverse(l)
		return l
	}
	accepted := append(slices.Clone(heads), Note{Type: NoteBreak, Account: "a", Seq: 8, Hash: ofA[8], Reason: "gone"},
		Note{Type: NoteAccept, Account: "a", Seq: 4, Hash: ofA[4], Reason: "a copy was put back"}, head("a", ofA, 6))
	for name, c := range map[string]struct {
		lines   []string
		notes   []Note
		missing []string
		passed  string
	}{
		"nothing":          {a, heads, nil, ""},
		"newest first":     {down(a), heads, nil, ""},
		"two accounts":     {append(slices.Clone(a), ours...), heads, nil, ""},
		"not all is noted": {a, heads[:1], nil, ""},
		"rows were cut off": {a[:6], heads,
			[]string{"a: the newest row has the number 6, but 8 was noted at 2027-01-15T12:00:00Z: rows were cut off at the end, or an older " +
				"state was put back; up to number 5, noted at 2027-01-15T10:00:00Z, nothing was"}, ""},
		"all but one": {a[:1], heads, []string{"a: the newest row has the number 1, but 3 was noted"}, ""},
		"a row was changed": {down(lied), heads,
			[]string{"a: row number 5 is not the one that was noted at 2027-01-15T10:00:00Z: it or a row before it was changed; up to number " +
				"3, noted"}, ""},
		"of two accounts": {append(slices.Clone(lied), ours[:2]...), heads,
			[]string{"a: row number 5", "the platform: the newest row has the number 2, but 3"}, ""},
		"a part that is new": {a[5:], heads, nil, ""},
		"a part, cut off":    {a[5:7], heads, []string{"a: the newest row has the number 7, but 8"}, ""},
		"nothing is noted":   {ours, heads[:1], []string{"the platform: no head of it is noted"}, ""},
		"accepted, and on": {a[:7], accepted, nil,
			"a: the newest row has the number 7, but 8 was noted at 2027-01-15T12:00:00Z: rows were cut off at the end, or an older state was " +
				"put back; this was accepted at 2027-01-15T14:00:00Z: a copy was put back"},
		"accepted, and cut":  {a[:5], accepted, []string{"a: the newest row has the number 5, but 6 was noted"}, "this was accepted"},
		"accepted and whole": {a, accepted, nil, ""},
	} {
		_, missing, passed, err := VerifyAgainst(strings.NewReader(strings.Join(c.lines, "\n")), read(t, signed(t, key, c.notes...), key))
		if err != nil || len(missing) != len(c.missing) || (c.passed == "") != (len(passed) == 0) || len(passed) > 0 &&
			!strings.Contains(passed[0], c.passed) {
			t.Errorf("%s: %q, %q, %v", name, missing, passed, err)
			continue
		}
		for i, want := range c.missing {
			if !strings.HasPrefix(missing[i], want) {
				t.Errorf("%s: %s", name, missing[i])
			}
		}
	}
	if _, _, _, err := VerifyAgainst(strings.NewReader(strings.Join(slices.Delete(slices.Clone(a), 3, 4), "\n")),
		read(t, signed(t, key, heads...), key)); err == nil {
		t.Error("a row is missing in the middle, and it verifies")
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestReadBook holds that a note counts if a trusted key has signed it, or a key
// that leads to a trusted one in any number of steps, and that it does not count if
// a letter of it was changed.
func TestReadBook(t *testing.T) {
	one, two, three, forger := signer("1"), signer("2"), signer("3"), signer("f")
	vouch := func(by, of ed25519.PrivateKey) string {
		return signed(t, by, Note{Type: NoteKey, PublicKey: PublicKey(of)})
	}
	text := signed(t, one, Note{Type: NoteHead, Account: "a", Seq: 1, Hash: "x"}) + vouch(two, one) +
		signed(t, two, Note{Type: NoteHead, Account: "a", Seq: 2, Hash: "y"}) +
		vouch(three, two) + vouch(forger, forger) + signed(t, forger, Note{Type: NoteAccept, Account: "a"})
	b := read(t, text, three)
	if len(b.Notes()) != 4 || len(b.Bad) != 2 || !strings.HasPrefix(b.Bad[0], "line 5, ") || !b.Introduced(public(three), public(two)) ||
		b.Introduced(public(three), public(one)) {
		t.Errorf("%+v, %q", b.Notes(), b.Bad)
	}
	if b := read(t, text, one); len(b.Notes()) != 1 || len(b.Bad) != 5 {
		t.Errorf("an old key vouches for newer ones: %+v", b.Notes())
	}
	// An old key that is found later signs nothing valid after the note of the next
	// key.
	for name, late := range map[string]string{"a head": signed(t, one, Note{Type: NoteHead, Account: "a", Seq: 9}),
		"an acceptance": signed(t, two, Note{Type: NoteAccept, Account: "a"}),
		"a key":         vouch(two, forger) + signed(t, forger, Note{Type: NoteAccept, Account: "a"})} {
		b := read(t, text+late, three)
		if got := b.Notes(); len(got) != 4 || len(b.Bad) < 3 || !strings.Contains(b.Bad[2], "another one had taken the place of") {
			t.Errorf("%s of an old key: %+v, %q", name, got, b.Bad)
		}
		if b := read(t, text+late, two, three); name == "an acceptance" && len(b.Notes()) != 5 {
			t.Errorf("of a key that is trusted itself: %+v", b.Notes())
		}
	}
	// The first of several servers' keys vouches for all it has, also for one that
	// is to come.
	early := vouch(one, two) + signed(t, one, Note{Type: NoteHead, Account: "a", Seq: 1}) + vouch(two, one) +
		signed(t, two, Note{Type: NoteHead, Account: "a", Seq: 2}) + vouch(three, two)
	if b := read(t, early, three); len(b.Notes()) != 5 || b.Bad != nil {
		t.Errorf("a key that came before its time: %+v, %q", b.Notes(), b.Bad)
	}
	if b := read(t, text); len(b.Notes()) != 0 {
		t.Errorf("without a key: %+v", b.Notes())
	}
	whole := signed(t, one, Note{Type: NoteHead, Account: "a", Seq: 17, Hash: "abc", Reason: "r"})
	for i := range len(whole) - 1 {
		for _, c := range []byte{'0', 'a', '"'} {
			changed := []byte(whole)
			if changed[i] == c {
				continue
			}
			changed[i] = c
			if b, err := ReadBook(bytes.NewReader(changed), public(one)); err != nil || len(b.Notes()) > 0 &&
				b.Notes()[0] != read(t, whole, one).Notes()[0] {
				t.Errorf("changed at %d it is believed: %s", i, changed)
			}
		}
	}
	if b := read(t, whole+whole[:len(whole)-1], one); len(b.Notes()) != 1 || b.Bad != nil {
		t.Errorf("half a line: %+v, %q", b.Notes(), b.Bad)
	}
	if id := KeyID(public(one)); len(id) != 8 || read(t, whole, one).Notes()[0].Key != id {
		t.Errorf("key %s", id)
	}
	for _, bad := range []string{"", "x", PublicKey(one) + "A", PublicKey(one)[1:]} {
		if _, err := ParsePublicKey(bad); err == nil {
			t.Errorf("%q is a public key", bad)
		}
	}
}
