package acp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func frames(t *testing.T, r io.Reader, max int) ([]string, error) {
	t.Helper()
	fr := newFrameReader(r, max)
	var out []string
	for {
		line, err := fr.next()
		if err != nil {
			return out, err
		}
		out = append(out, string(line))
	}
}

func TestFramesAreLines(t *testing.T) {
	long := strings.Repeat("x", 200<<10) // over the read buffer
	got, err := frames(t, strings.NewReader("{\"a\":1}\r\n\n  \n"+long+"\nlast"), 1<<20)
	if !errors.Is(err, io.EOF) {
		t.Fatalf("the end is %v, want io.EOF", err)
	}
	want := []string{`{"a":1}`, long, "last"}
	if len(got) != len(want) {
		t.Fatalf("%d frames, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("frame %d has %d bytes, want %d", i, len(got[i]), len(want[i]))
		}
	}
}

func TestFrameLimit(t *testing.T) {
	if _, err := frames(t, strings.NewReader(strings.Repeat("x", 100)+"\n"), 100); !errors.Is(err, io.EOF) {
		t.Errorf("a line of exactly the limit: %v", err)
	}
	// An endless line must be refused while it is being read, not at its end.
	if _, err := frames(t, endless{}, 1<<20); !errors.Is(err, ErrFrameTooLong) {
		t.Errorf("an endless line: %v, want ErrFrameTooLong", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// FuzzFrameReader holds the reader against the plain definition of its frames,
// whatever the sizes of the reads that feed it.
func FuzzFrameReader(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\"}\n\r\n{}"))
	f.Add([]byte("\n\n a \r\n"))
	f.Add(bytes.Repeat([]byte("y"), 40))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 32
		var want []string
		var tooLong bool
		for line := range bytes.Lines(in) {
			if len(bytes.TrimRight(line, "\r\n")) > limit {
				tooLong = true
				break
			}
			if s := bytes.TrimSpace(line); len(s) > 0 {
				want = append(want, string(s))
			}
		}
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in))} {
			got, err := frames(t, r, limit)
			if errors.Is(err, ErrFrameTooLong) != tooLong {
				t.Fatalf("ended with %v; too long: %v", err, tooLong)
			}
			if strings.Join(got, "\x00") != strings.Join(want, "\x00") {
				t.Fatalf("frames %q, want %q", got, want)
			}
		}
	})
}
