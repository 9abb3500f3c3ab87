package answer

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestThinKeepsTheForm: whatever is shortened, at every chunking, is a JSON text of the same form.
func TestThinKeepsTheForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.SampledFrom([]string{`a`, `\"`, `\\`, `\u00e9`, "é", `\n`, `{`, `]`, `u`}), 0, 200)
		one := `"` + strings.Join(text.Draw(t, "text"), "") + `"`
		other := `"` + strings.Join(text.Draw(t, "other"), "") + `"`
		whole := []byte(`{"a":[` + one + `,{"b":` + other + `}],"usage":{"n":12}}`)
		at := rapid.IntRange(0, len(whole)).Draw(t, "from")
		var s thin
		got := s.start(bytes.Clone(whole[:at]))
		for rest := whole[at:]; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got, rest = s.add(got, rest[:n]), rest[n:]
		}
		if !json.Valid(got) || !strings.HasSuffix(string(got), `],"usage":{"n":12}}`) || !strings.HasPrefix(string(got), `{"a":["`) {
			t.Fatalf("%s becomes %s", whole, got)
		}
	})
}

// TestManyLinesOfAnEvent: each line of an event is copied once, so that many cost no more than one.
func TestManyLinesOfAnEvent(t *testing.T) {
	var e events
	lines := []byte(strings.Repeat("data: x\n", 100))
	n := testing.AllocsPerRun(1, func() {
		for range 1000 {
			e.write(lines, func(string, []byte) {})
		}
	})
	if n > 200 {
		t.Errorf("%v allocations for an event of 100,000 lines", n)
	}
}
