package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"yardmaster/internal/codehost"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/jsonschema"
	_ "yardmaster/internal/proof/chance" // seeds rapid
)

const source = `package web

// year is the year of the footer.
func year() int {
	t := time.Now()

	if t.IsZero() {
		return 0
	}
	return   t.Year()
}
`

// An anchor is the text around a line: blanks, blank lines and numbers of lines are not in
// it.
func TestAnchor(t *testing.T) {
	t.Parallel()
	a := splitLines([]byte(source))
	b := splitLines([]byte("\n\n" + strings.ReplaceAll(strings.ReplaceAll(source, "\t", "    "), "\n\n\tif", "\n\n\n\tif")))
	at := func(lines []string, text string) int {
		return 1 + slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, text) })
	}
	for _, text := range []string{"t := time", "IsZero", "t.Year()"} {
		if x, y := anchorOf(a, at(a, text)), anchorOf(b, at(b, text)); x != y || x == "" {
			t.Errorf("%q: %q and %q", text, x, y)
		}
		if s := symbolOf(a, at(a, text)); s != "func year() int {" || s != symbolOf(b, at(b, text)) {
			t.Errorf("%q is in %q", text, s)
		}
	}
	if got := anchorOf(a, at(a, "return 0")); !strings.HasSuffix(got, "return t.Year()") || anchorOf(a, 99) != "" ||
		anchorOf(nil, 1) != "" {
		t.Errorf("%q", got)
	}
	if symbolOf(nil, 3) != "" || symbolOf([]string{"\tx"}, 1) != "" {
		t.Error("a section of nothing")
	}
}

func hunk(oldStart, newStart int, lines ...string) codehost.Hunk {
	h := codehost.Hunk{OldStart: oldStart, NewStart: newStart, Lines: lines}
	for _, l := range lines {
		switch l[0] {
		case '-':
			h.OldLines++
		case '+':
			h.NewLines++
		default:
			h.OldLines++
			h.NewLines++
		}
	}
	if h.OldLines == 0 {
		h.OldStart--
	}
	if h.NewLines == 0 {
		h.NewStart--
	}
	return h
}

func TestMoveRange(t *testing.T) {
	t.Parallel()
	hunks := []codehost.Hunk{
		hunk(3, 3, " c", "-d", "+D", "+E", " e"), // line 4 is replaced by two
		hunk(10, 11, "-j", "-k"),                 // lines 10 and 11 go
		hunk(20, 19, "+x"),                       // a line comes before 20
	}
	for in, want := range map[[2]int]string{
		{1, 1}: "1 1 false", {3, 3}: "3 3 false", {4, 4}: "4 4 true", {5, 5}: "6 6 false", {2, 6}: "2 7 true",
		{9, 9}: "10 10 false", {10, 10}: "11 11 true", {12, 12}: "11 11 false", {19, 19}: "18 18 false", {20, 20}: "20 20 false",
		{19, 20}: "18 20 true", {99, 99}: "99 99 false",
	} {
		start, end, touched := moveRange(hunks, in[0], in[1])
		if got := fmt.Sprint(start, end, touched); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
}

// Lines that a diff keeps are found again with the same text, whatever the diff.
func TestKeptLinesAreFoundAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var hunks []codehost.Hunk
		var before, after []string
		for range rapid.IntRange(1, 4).Draw(t, "hunks") {
			for range rapid.IntRange(1, 5).Draw(t, "between") {
				before = append(before, fmt.Sprint("line ", len(before)))
				after = append(after, before[len(before)-1])
			}
			var lines []string
			start := [2]int{len(before) + 1, len(after) + 1}
			for range rapid.IntRange(1, 6).Draw(t, "lines") {
				switch rapid.SampledFrom([]string{" ", "+", "-"}).Draw(t, "kind") {
				case " ":
					before = append(before, fmt.Sprint("line ", len(before)))
					after = append(after, before[len(before)-1])
					lines = append(lines, " "+before[len(before)-1])
				case "+":
					after = append(after, fmt.Sprint("new ", len(after)))
					lines = append(lines, "+"+after[len(after)-1])
				case "-":
					before = append(before, fmt.Sprint("line ", len(before)))
					lines = append(lines, "-"+before[len(before)-1])
				}
			}
			hunks = append(hunks, hunk(start[0], start[1], lines...))
		}
		for i, text := range before {
			_, end, touched := moveRange(hunks, i+1, i+1)
			kept := slices.Contains(after, text)
			if touched == kept || kept && after[end-1] != text || end < 1 {
				t.Fatalf("line %d (%s), kept %t: now %d, touched %t; %+v", i+1, text, kept, end, touched, hunks)
			}
		}
	})
}

func TestPlace(t *testing.T) {
	t.Parallel()
	f := &codehost.File{Hunks: []codehost.Hunk{hunk(10, 10, " a", "-b", "+B", "+C", " d"), hunk(50, 51, " x", "-y", " z")}}
	symbol := func(line int) string { return map[bool]string{true: "func a", false: "func b"}[line < 48] }
	for name, c := range map[string]struct {
		f          *codehost.File
		side       string
		start, end int
		want       place
	}{
		"in a hunk":                {f, "RIGHT", 11, 11, place{"RIGHT", 0, 11}},
		"a range":                  {f, "RIGHT", 11, 12, place{"RIGHT", 11, 12}},
		"a range over hunks":       {f, "RIGHT", 12, 52, place{"RIGHT", 0, 52}},
		"near, in the section":     {f, "RIGHT", 20, 20, place{"RIGHT", 0, 13}},
		"near, in another section": {f, "RIGHT", 45, 45, place{"RIGHT", 0, 0}},
		"a deleted line":           {f, "LEFT", 51, 51, place{"LEFT", 0, 51}},
		"not a deleted line":       {f, "LEFT", 30, 30, place{"LEFT", 0, 0}},
		"a file not touched":       {nil, "RIGHT", 1, 1, place{"RIGHT", 0, 0}},
		"a file that was cut":      {&codehost.File{Cut: true, Hunks: f.Hunks}, "RIGHT", 11, 11, place{"RIGHT", 0, 0}},
	} {
		if got := placeOf(c.f, c.side, c.start, c.end, symbol); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	old := Finding{Key: "k", File: "a.go", Kind: "bug", Side: "RIGHT", Line: 10, Symbol: "func a", State: Posted,
		Claim: "The lock is not held while the map is written."}
	for name, c := range map[string]struct {
		change func(*Finding)
		want   bool
	}{
		"the same key":           {func(f *Finding) { f.Key = "k"; f.File = "b.go" }, true},
		"the same kind and line": {func(f *Finding) { f.Claim = "Else."; f.StartLine, f.Line = 8, 10 }, true},
		"another kind":           {func(f *Finding) { f.Claim = "Else."; f.Kind = "doc" }, false},
		"another line":           {func(f *Finding) { f.Claim = "Else."; f.Line = 11 }, false},
		"the other side":         {func(f *Finding) { f.Claim = "Else."; f.Side = "LEFT" }, false},
		"nearly the same claim": {func(f *Finding) {
			f.Line = 30
			f.Kind = "security"
			f.Claim = "the lock is not held while map is written"
		}, true},
		"that claim, another section": {func(f *Finding) { f.Line = 30; f.Symbol = "func b" }, false},
		"that claim, another file":    {func(f *Finding) { f.File = "b.go" }, false},
	} {
		f := old
		f.Key, f.State = "other", Raw
		c.change(&f)
		if f.repeats(old) != c.want {
			t.Errorf("%s: %t", name, !c.want)
		}
	}
}

func TestSift(t *testing.T) {
	t.Parallel()
	f := Finding{Key: "k", File: "a", Kind: "bug", Symbol: "s", Anchor: "x", Severity: "medium", Claim: "It is wrong.", Line: 1, State: Raw}
	old := f
	old.State = Fixed
	for name, c := range map[string]struct {
		before, found []Finding
		rules         []rule
		least, want   string
	}{
		"new":                  {nil, nil, nil, "medium", Raw},
		"below":                {nil, nil, nil, "high", Below},
		"fixed before":         {[]Finding{old}, nil, nil, "medium", Duplicate},
		"twice":                {nil, []Finding{f}, nil, "medium", Duplicate},
		"twice, and one wrong": {nil, []Finding{{Key: "k", State: Refuted}}, nil, "medium", Raw},
		"dismissed":            {nil, nil, []rule{{"bug", "s", "x"}}, "medium", Duplicate},
		"another dismissed":    {nil, nil, []rule{{"doc", "s", "x"}}, "medium", Raw},
	} {
		if got, _ := sift(f, c.before, c.found, c.rules, repo.Severity(c.least)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What an agent answers is read without trust.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{findingsSchema, verdictsSchema} {
		if _, err := jsonschema.Parse([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	one := func(change map[string]any) string {
		f := map[string]any{"file": "./a/../b.go", "line": 3, "start_line": 7, "severity": "high", "kind": "bug",
			"claim": " It  is\nwrong. ",
			"why":   "w", "how_to_see": "h", "confidence": 7}
		for k, v := range change {
			f[k] = v
		}
		text, _ := json.Marshal(map[string]any{"findings": []any{f}})
		return string(text)
	}
	got := readFindings(one(nil))
	if len(got) != 1 || got[0].File != "b.go" ||
		got[0].StartLine != 0 || got[0].Claim != "It is wrong." ||
		got[0].Side != "" || got[0].Confidence != 1 {
		t.Errorf("%+v", got)
	}
	for _, bad := range []map[string]any{{"file": "../x"}, {"file": "/etc/passwd"}, {"file": "."}, {"line": 0}, {"severity": "awful"},
		{"kind": "taste"}, {"claim": "\x00"}} {
		if got := readFindings(one(bad)); len(got) != 0 {
			t.Errorf("%v is taken: %+v", bad, got)
		}
	}
	if readFindings("{") != nil {
		t.Error("half a text is taken")
	}
	said := readVerdicts(`{"verdicts": [{"claim": 1, "verdict": "confirmed", "evidence": "e"}, {"claim": 2, "verdict": "confirmed", "evidence": " "},
		{"claim": 3, "verdict": "cannot_say", "evidence": "e"}, {"claim": 4, "verdict": "confirmed", "evidence": "e"},
		{"claim": 4, "verdict": "refuted", "evidence": "e"}, {"claim": 6, "verdict": "refuted", "evidence": "e"},
		{"claim": 7, "verdict": "refuted"}, {"claim": 9, "verdict": "confirmed", "evidence": "e"}]}`, 7)
	for claim, want := range map[int]string{1: verdictConfirmed, 2: "", 3: "", 4: "", 5: "", 6: verdictRefuted, 7: "", 9: ""} {
		if got := said[claim].verdict; got != want {
			t.Errorf("claim %d: %q, want %q", claim, got, want)
		}
	}
}

// Text of others in a prompt cannot end the block in which it stands.
func TestFence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("(`{1,6}|a|\n){0,20}").Draw(t, "text")
		lines := strings.Split(strings.TrimSuffix(fenced(text), "\n"), "\n")
		if fence := lines[0]; fence != lines[len(lines)-1] || strings.Contains(text, fence) {
			t.Fatalf("%q", lines)
		}
	})
}
