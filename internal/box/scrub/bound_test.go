package scrub

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repetitive are the secrets that partial matches overlap most in.
func repetitive() []string {
	return []string{strings.Repeat("a", 4000), strings.Repeat("ab", 2000) + "c", strings.Repeat("a", 2000) + "b" +
		strings.Repeat("a", 1999), strings.Repeat("aaaaaaab", 500),
		strings.Repeat("line of a secret\n", 200)}
}

// TestWorkIsLinear counts the steps of the automata on texts that are made of
// beginnings of secrets: what a symbol costs on average does not depend on how
// long the secrets are.
func TestWorkIsLinear(t *testing.T) {
	for name, secrets := range map[string][]string{"tokens": tokens(200), "repetitive": repetitive()} {
		c := compile(New(secrets...).secrets)
		all := texts(secrets)
		all["a"] = func() []byte { return bytes.Repeat([]byte("a"), 1<<16) }
		all["a and b"] = func() []byte { return bytes.Repeat([]byte(strings.Repeat("a", 3999)+"b"), 60) }
		for what, text := range all {
			for _, a := range []*automaton{c.exact, c.text} {
				var s int32
				steps, in := 0, text()
				in = in[:min(len(in), 1<<16)]
				for _, b := range in {
					for steps++; ; steps++ {
						at, end := a.first[s], a.first[s+1]
						if i := bytes.IndexByte(a.label[at:end], b); i >= 0 {
							s = at + int32(i)
							break
						}
						if s == 0 {
							break
						}
						s = a.fail[s]
					}
				}
				if steps > 2*len(in) {
					t.Errorf("%s, %s: %d steps for %d symbols", name, what, steps, len(in))
				}
			}
		}
	}
}

// TestHeldIsBounded writes such texts in small pieces: what is held back is
// less than the longest secret is at its widest.
func TestHeldIsBounded(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for name, secrets := range map[string][]string{"tokens": tokens(20), "repetitive": repetitive()} {
		longest := 0
		s := New(secrets...)
		for _, a := range []*automaton{s.load().exact, s.load().text, s.load().hex} {
			for _, d := range a.depth {
				longest = max(longest, int(d))
			}
		}
		for what, text := range texts(secrets) {
			in := text()
			in = in[:min(len(in), 1<<16)]
			w := s.Writer(io.Discard).(*writer)
			most := 0
			for len(in) > 0 {
				n := min(1+rnd.IntN(100), len(in))
				if _, err := w.Write(in[:n]); err != nil {
					t.Fatal(err)
				}
				in = in[n:]
				most = max(most, len(w.held)-w.head)
			}
			if limit := longest * (maxGap + 12); most > limit {
				t.Errorf("%s, %s: %d bytes are held, more than %d", name, what, most, limit)
			}
			if most > 0 && (what == "white" || what == "log" || what == "json") && most > 500 {
				t.Errorf("%s, %s: %d bytes are held of ordinary text", name, what, most)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestShortSecretsLeaveWordsAlone holds that white space makes no secret of
// ordinary text.
func TestShortSecretsLeaveWordsAlone(t *testing.T) {
	s := New("12345678", "loginname", "exactly-15-byte")
	for _, text := range []string{"1234 5678", "1234\n5678", "login name", "log-\nin name", "exactly-15 -byte", "1 2 3 4 5 6 7 8"} {
		if got := s.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for text, want := range map[string]string{
		"12345678": Mark, "&#49;2345678": Mark, "%312345678": Mark, "31 32 33 34 35 36 37 38": Mark, "MTIz\nNDU2Nzg=": Mark,
	} {
		if got := s.String(text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
	if got := New("correct horse battery").String("correct\n    horse  battery"); got != Mark {
		t.Error(got)
	}
	if got := New("correct horse").String("correct\n    horse"); got != Mark {
		t.Error(got)
	}
}

// TestFilesAreUnchanged holds that nothing in documents, sources and a program
// looks like a secret, however it is read.
func TestFilesAreUnchanged(t *testing.T) {
	s := New(append(tokens(200), "87654321", "correct horse battery", repetitive()[4])...)
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../../docs/*.*")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, program, "forms.go", "testdata/recorded.txtar", "../../../go.sum") {
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := stream(t, s, in, func(int) int { return 4096 }); got != string(in) {
			t.Errorf("%s was changed: %d marks", file, strings.Count(got, Mark)-bytes.Count(in, []byte(Mark)))
		}
	}
}

// TestLinesDoNotWait holds that a complete line is passed on, as are a number and
// an address, although forms of secrets begin with every character.
func TestLinesDoNotWait(t *testing.T) {
	for _, text := range []string{"ready\n", "at work\n", "exit code: 0\n", "00000010: 41 42\n", "add\n", "[12, 34\n", "it costs $\n",
		"e\n\n", "'quoted'\n", "100%\n"} {
		var b bytes.Buffer
		w := New(tokens(200)...).Writer(&b)
		if _, err := io.WriteString(w, text); err != nil || b.String() != text {
			t.Errorf("of %q only %q was passed on %v", text, b.String(), err)
		}
	}
}
