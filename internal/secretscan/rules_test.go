package secretscan

import (
	"regexp/syntax"
	"strings"
	"testing"
)

// example writes a text that a regular expression matches.
func example(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		for _, r := range "aB3x-" { // ordinary characters before the first of the class
			for i := 0; i < len(re.Rune); i += 2 {
				if re.Rune[i] <= r && r <= re.Rune[i+1] {
					return string(r)
				}
			}
		}
		return string(re.Rune[0])
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "." // where a rule means one
	case syntax.OpAlternate:
		return example(re.Sub[0])
	case syntax.OpCapture, syntax.OpPlus:
		return example(re.Sub[0])
	case syntax.OpRepeat:
		return strings.Repeat(example(re.Sub[0]), re.Min)
	case syntax.OpConcat:
		var b strings.Builder
		for _, sub := range re.Sub {
			b.WriteString(example(sub))
		}
		return b.String()
	}
	return "" // of what may be empty
}

// TestRules holds that each rule of the file can be read, and that a text it
// matches has one of its words: without it, the rule would never be asked.
func TestRules(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rules().rules {
		names[r.name] = true
		re, err := syntax.Parse(r.shape().String(), syntax.Perl)
		if err != nil {
			t.Fatal(r.name, err)
		}
		secret := example(re)
		text := "It is " + secret + " as of today."
		if !r.shape().MatchString(text) {
			t.Errorf("%s: the test makes no example: %q", r.name, secret)
			continue
		}
		if !Found(text) {
			t.Errorf("%s: not found in %q", r.name, text)
		}
		got := Scrub(text)
		if strings.Contains(got, strings.TrimSpace(secret)) || !strings.Contains(got, Mark) || !strings.HasPrefix(got, "It is ") {
			t.Errorf("%s: %q is scrubbed to %q", r.name, text, got)
		}
	}
	lines := 0
	for line := range strings.Lines(ruleFile) {
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if len(names) != lines || lines < 80 {
		t.Errorf("%d lines are %d rules of different names", lines, len(names))
	}
}

func BenchmarkFound(b *testing.B) {
	text := strings.Repeat("Name the account's key by its place in the vault; the build asks for it when it starts.\n", 700)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if Found(text) {
			b.Fatal("found")
		}
	}
}
