package hashchain

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzReadBook holds that only signed notes count, whatever is in a file.
func FuzzReadBook(f *testing.F) {
	key := signer("1")
	lines := []string{}
	for i, n := range []Note{{Type: NoteHead, Account: "a", Seq: 3, Hash: "x"}, {Type: NoteAccept, Account: "a", Seq: 1, Reason: "r"},
		{Type: NoteHead, Seq: 9, AfterBreak: true}} {
		_, line, err := Sign(key, unix(i), n)
		if err != nil {
			f.Fatal(err)
		}
		lines = append(lines, string(line))
		f.Add(string(line) + "\n")
	}
	_, line, err := Sign(signer("f"), unix(0), Note{Type: NoteKey, PublicKey: PublicKey(signer("f"))})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(line) + "\n" + lines[0] + "\n" + strings.Replace(lines[1], "a", "b", 1) + "\n")
	known := map[string]bool{}
	for _, l := range lines {
		text, err := unsigned([]byte(l))
		if err != nil {
			f.Fatal(err)
		}
		known[string(text)] = true
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ReadBook(strings.NewReader(text), public(key))
		if err != nil {
			t.Fatal(err)
		}
		b.Check()
		for _, e := range b.entries {
			if !b.good(e) {
				continue
			}
			if said, err := unsigned(e.line); err != nil || !known[string(said)] {
				t.Errorf("%s is believed", e.line)
			}
		}
		for _, c := range b.Chains() {
			if len(c.Heads()) > 0 && len(c.Binding()) == 0 {
				t.Errorf("of %+v nothing is compared", c.Heads())
			}
		}
		again, err := ReadBook(bytes.NewReader(b.Shorten(len(text)/2)), public(key))
		if err != nil || len(again.Chains()) > len(b.Chains()) {
			t.Errorf("shortened: %v", err)
		}
	})
}
