package smarthttp

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"yardmaster/internal/codehost"
	_ "yardmaster/internal/proof/chance" // seeds rapid
)

// FuzzReadPush holds that ReadPush and git read the same: the unchanged head, up to its
// end, with commands of two SHAs and a valid ref name.
func FuzzReadPush(f *testing.F) {
	zero, one := codehost.ZeroSHA, strings.Repeat("1", 40)
	first := Pkt(zero + " " + one + " refs/heads/a\x00 report-status side-band-64k agent=git/2.39")
	for _, seed := range []string{
		Flush, first + Flush + "PACK", first + Pkt(one+" "+zero+" refs/heads/b\n") + Flush, Pkt("shallow "+one) + first + Flush,
		"0001", "0004", "fff1", "ffff", "-001", "+0a1", first, Pkt("push-cert\x00report-status\n") + Flush, first + first + Flush,
		Pkt(zero+" "+one+" refs/heads/../x\x00report-status") + Flush, Pkt(zero+"  "+one+" refs/heads/x") + Flush,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bufio.NewReader(bytes.NewReader(input))
		p, err := ReadPush(r, MaxHead)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if !bytes.HasPrefix(input, p.Raw) || !bytes.HasSuffix(p.Raw, []byte(Flush)) {
			t.Fatalf("replays %q", p.Raw)
		}
		if rest := len(input) - len(p.Raw); rest > 0 {
			if next, err := r.ReadByte(); err != nil || next != input[len(p.Raw)] {
				t.Fatalf("left at %q, %v", next, err)
			}
		}
		for _, u := range p.Updates {
			if !codehost.ValidRef(u.Ref) || !validOrZero(u.Old) || !validOrZero(u.New) {
				t.Fatalf("update %+v", u)
			}
			if !bytes.Contains(p.Raw, []byte(u.Old+" "+u.New+" "+u.Ref)) {
				t.Fatalf("update %+v is not in the head", u)
			}
		}
	})
}

// TestTooManyCommands holds that a head may have many thousand commands, and that one which
// is too long is known by its error and can be answered in the form that the client asked for.
func TestTooManyCommands(t *testing.T) {
	var b bytes.Buffer
	n := 0
	for ; b.Len() < MaxHead; n++ {
		command := codehost.ZeroSHA + " " + strings.Repeat("1", 40) + " refs/tags/v1"
		if n == 0 {
			command += "\x00report-status side-band-64k"
		}
		b.WriteString(Pkt(command + "\n"))
	}
	if n < 70_000 {
		t.Errorf("only %d commands fit", n)
	}
	b.WriteString(Flush)
	p, err := ReadPush(bufio.NewReader(&b), MaxHead)
	if !errors.Is(err, ErrMalformed) || !errors.Is(err, ErrTooLong) {
		t.Errorf("ReadPush: %v", err)
	}
	report := Pkt("unpack two lines\n") + Flush
	if got, want := string(p.Unpacked("two\nlines")), Pkt("\x01"+report)+Flush; got != want {
		t.Errorf("answer %q, want %q", got, want)
	}
}

// TestHeldKeepsTheReport holds that progress and what keeps a connection open pass at once,
// and the report only when it is released, however the answer is cut.
func TestHeldKeepsTheReport(t *testing.T) {
	report := Pkt("\x01"+Pkt("unpack ok\n")+Pkt("ok refs/heads/a\n")+Flush) + Flush
	alive, progress := Pkt("\x01"), Pkt("\x02Resolving deltas\n")
	stream := progress + alive + report[:len(report)-4] + progress + Flush
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		h := &Held{To: &out, SideBand: true}
		for rest := stream; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			_, _ = h.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if got, want := out.String(), progress+alive+progress; got != want || !h.Passed() {
			t.Fatalf("passed %q, want %q", got, want)
		}
		if err := h.Release(); err != nil || out.String() != progress+alive+progress+report {
			t.Fatalf("released %q, %v", out.String(), err)
		}
	})
}

// TestRefusalIsWellFormed holds that a refusal of many refs takes several packets,
// and parses as a whole.
func TestRefusalIsWellFormed(t *testing.T) {
	for _, sideBand := range []bool{true, false} {
		p := Push{}
		if sideBand {
			p.capabilities = []string{"side-band-64k"}
		}
		var want []string
		for range 1000 {
			ref := "refs/heads/" + strings.Repeat("a", 200)
			p.Updates = append(p.Updates, codehost.RefUpdate{Ref: ref})
			want = append(want, "ng "+ref+" two lines\n")
		}
		var got []string
		var outer, inner packets
		line := func(b []byte) { got = append(got, string(b)) }
		answer := p.Refusal(map[string]string{p.Updates[0].Ref: "two\nlines"})
		if sideBand {
			outer.feed(answer, func(b []byte) { inner.feed(b[1:], line) })
		} else {
			inner.feed(answer, line)
		}
		if diff := cmp.Diff(append([]string{"unpack ok\n"}, want...), got); diff != "" {
			t.Errorf("side band %v (-want +got):\n%s", sideBand, diff)
		}
	}
}

// TestReportReadsAnyCut holds that the report is the same for any split of git's
// output into writes.
func TestReportReadsAnyCut(t *testing.T) {
	inner := Pkt("unpack ok\n") + Pkt("ok refs/heads/a\n") + Pkt("ng refs/heads/b fetch first\n") + Pkt("ok refs/heads/c\n") +
		Pkt("option refname refs/heads/x\n") + Flush
	stream := Pkt("\x02progress: ok refs/heads/no\n") + Pkt("\x01"+inner[:30]) + Pkt("\x02more") + Pkt("\x01") +
		Pkt("\x01"+inner[30:]) + Flush
	want := map[string]bool{"refs/heads/a": true, "refs/heads/c": true}
	rapid.Check(t, func(t *rapid.T) {
		sideBand := rapid.Bool().Draw(t, "side band")
		rest := inner
		if sideBand {
			rest = stream
		}
		r := NewReport(sideBand)
		for rest != "" {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			_, _ = r.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if diff := cmp.Diff(want, r.OK); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
