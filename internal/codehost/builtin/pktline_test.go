package builtin

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"yardmaster/internal/codehost"
)

// FuzzReadPush holds that readPush and git read the same: the unchanged head, up to its
// end, with commands of two SHAs and a valid ref name.
func FuzzReadPush(f *testing.F) {
	zero, one := codehost.ZeroSHA, strings.Repeat("1", 40)
	first := pkt(zero + " " + one + " refs/heads/a\x00 report-status side-band-64k agent=git/2.39")
	for _, seed := range []string{
		flushPkt, first + flushPkt + "PACK", first + pkt(one+" "+zero+" refs/heads/b\n") + flushPkt, pkt("shallow "+one) + first + flushPkt,
		"0001", "0004", "fff1", "ffff", "-001", "+0a1", first, pkt("push-cert\x00report-status\n") + flushPkt, first + first + flushPkt,
		pkt(zero+" "+one+" refs/heads/../x\x00report-status") + flushPkt, pkt(zero+"  "+one+" refs/heads/x") + flushPkt,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		r := bufio.NewReader(bytes.NewReader(input))
		p, err := readPush(r)
		if err != nil {
			if !errors.Is(err, errMalformed) {
				t.Fatalf("error of another kind: %v", err)
			}
			return
		}
		if !bytes.HasPrefix(input, p.raw) || !bytes.HasSuffix(p.raw, []byte(flushPkt)) {
			t.Fatalf("replays %q", p.raw)
		}
		if rest := len(input) - len(p.raw); rest > 0 {
			if next, err := r.ReadByte(); err != nil || next != input[len(p.raw)] {
				t.Fatalf("left at %q, %v", next, err)
			}
		}
		for _, u := range p.updates {
			if !codehost.ValidRef(u.Ref) || !validOrZero(u.Old) || !validOrZero(u.New) {
				t.Fatalf("update %+v", u)
			}
			if !bytes.Contains(p.raw, []byte(u.Old+" "+u.New+" "+u.Ref)) {
				t.Fatalf("update %+v is not in the head", u)
			}
		}
	})
}

func TestTooManyCommands(t *testing.T) {
	var b bytes.Buffer
	for range maxCommands + 1 {
		b.WriteString(pkt(codehost.ZeroSHA + " " + strings.Repeat("1", 40) + " refs/heads/a\n"))
	}
	b.WriteString(flushPkt)
	if _, err := readPush(bufio.NewReader(&b)); !errors.Is(err, errMalformed) {
		t.Errorf("readPush: %v", err)
	}
}

// TestRefusalIsWellFormed holds that a refusal of many refs takes several packets,
// and parses as a whole.
func TestRefusalIsWellFormed(t *testing.T) {
	for _, sideBand := range []bool{true, false} {
		p := push{}
		if sideBand {
			p.capabilities = []string{"side-band-64k"}
		}
		var want []string
		for range maxCommands {
			ref := "refs/heads/" + strings.Repeat("a", 200)
			p.updates = append(p.updates, codehost.RefUpdate{Ref: ref})
			want = append(want, "ng "+ref+" two lines\n")
		}
		var got []string
		var outer, inner packets
		line := func(b []byte) { got = append(got, string(b)) }
		answer := p.refusal(map[string]string{p.updates[0].Ref: "two\nlines"})
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
	inner := pkt("unpack ok\n") + pkt("ok refs/heads/a\n") + pkt("ng refs/heads/b fetch first\n") + pkt("ok refs/heads/c\n") +
		pkt("option refname refs/heads/x\n") + flushPkt
	stream := pkt("\x02progress: ok refs/heads/no\n") + pkt("\x01"+inner[:30]) + pkt("\x02more") + pkt("\x01") +
		pkt("\x01"+inner[30:]) + flushPkt
	want := map[string]bool{"refs/heads/a": true, "refs/heads/c": true}
	rapid.Check(t, func(t *rapid.T) {
		sideBand := rapid.Bool().Draw(t, "side band")
		rest := inner
		if sideBand {
			rest = stream
		}
		r := newReport(sideBand)
		for rest != "" {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			_, _ = r.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if diff := cmp.Diff(want, r.ok); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
