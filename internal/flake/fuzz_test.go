package flake

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "yardmaster/internal/proof/chance" // seeds rapid
)

func sane(t interface{ Fatalf(string, ...any) }, f Failure) {
	if len(f.Prints) < 1 || len(f.Prints) > MaxPrints {
		t.Fatalf("%d fingerprints", len(f.Prints))
	}
	for i, p := range f.Prints {
		if len(p.FP) != 64 || len(p.Error) > maxError || !utf8.ValidString(p.Error) || !utf8.ValidString(p.Test) || len(p.Test) > 500 {
			t.Fatalf("%+v", p)
		}
		if i > 0 && f.Prints[i-1].FP >= p.FP {
			t.Fatalf("fingerprints are not sorted, or occur twice")
		}
	}
	if len(f.Tail) > MaxTail || len(f.Excerpt()) > MaxExcerpt || !utf8.ValidString(f.Tail) {
		t.Fatalf("a tail of %d bytes", len(f.Tail))
	}
}

func FuzzRead(f *testing.F) {
	for _, l := range logs {
		f.Add(l.job, l.log, "")
		f.Add(l.job, inActions(l.log), "<testcase name='x'><failure>"+l.log)
	}
	f.Fuzz(func(t *testing.T, name, log, junit string) {
		got := Read(Job{Repo: "r", Name: name, Step: name, Log: log, JUnit: [][]byte{[]byte(junit)}})
		sane(t, got)
		p := got.Prints[0]
		p.touches([]string{name, log})
	})
}

func FuzzEqual(f *testing.F) {
	for _, l := range logs {
		f.Add(l.log)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := Equal(s)
		if len(e) > maxError || !utf8.ValidString(e) || strings.Contains(e, "  ") || strayDigit.MatchString(e) {
			t.Fatalf("%q: %q", s, e)
		}
	})
}

var strayDigit = regexp.MustCompile(`(^|[^\pL0-9])[0-9]`)

// Logs of the full size that are all signature are read to their end, in the time that
// the tests of this package have: a rule that takes the square of a log does not.
func TestBoundedTime(t *testing.T) {
	t.Parallel()
	for name, piece := range map[string]func(int) string{
		"go": func(i int) string { return fmt.Sprintf("--- FAIL: Test%d/%s (0s)\n", i, strings.Repeat("a/", 200)) },
		"go -v": func(i int) string {
			return fmt.Sprintf("=== RUN   T%d\n    a_test.go:1: x\n--- FAIL: T%d (0s)\n", i, i)
		},
		"pytest":   func(i int) string { return fmt.Sprintf("E   x\nFAILED a.py::t%d - x\n", i) },
		"sections": func(i int) string { return fmt.Sprintf("____ t%d ____\nE   x\n", i) },
		"jest":     func(i int) string { return fmt.Sprintf("FAIL a.js\n● a › %d\n", i) },
		"cargo":    func(i int) string { return fmt.Sprintf("test t%d ... FAILED\n---- t%d stdout ----\n", i, i) },
		"gradle":   func(i int) string { return fmt.Sprintf("A > b%d FAILED\n", i) },
		"one line": func(int) string { return "1a" },
		"digits":   func(int) string { return "1:1.1m" },
		"paths":    func(int) string { return "/tmp/" },
		"errors":   func(int) string { return "0 errors " },
		"brackets": func(int) string { return "(((" },
		"slashes":  func(int) string { return `a\b.c/` },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			for i := 0; b.Len() < MaxLog; i++ {
				b.WriteString(piece(i))
			}
			got := Read(Job{Name: b.String()[:1000], Log: b.String(), JUnit: [][]byte{[]byte(b.String())}})
			sane(t, got)
		})
	}
}

// Two logs that differ in what changes between runs have the same fingerprints.
func TestSameFailure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[g-z]{2,8}`)
		name, before, after := word.Draw(t, "name"), word.Draw(t, "before"), word.Draw(t, "after")
		log := func(label string) string {
			n := rapid.IntRange(0, 1<<30)
			varies := rapid.SampledFrom([]string{"<n>", "<d>", "<ip>", "<x>", "<id>", "<t>", "<tmp>"}).Draw(t, "kind")
			_ = varies
			parts := []string{before}
			for _, kind := range []string{"n", "d", "ip", "x", "id", "t", "tmp"} {
				v := n.Draw(t, label+kind)
				switch kind {
				case "n":
					parts = append(parts, fmt.Sprint(v))
				case "d":
					parts = append(parts, fmt.Sprintf("%d.%ds", v, v%10))
				case "ip":
					parts = append(parts, fmt.Sprintf("10.%d.%d.%d:%d", v%200, v%100, v%50, v%60000))
				case "x":
					parts = append(parts, fmt.Sprintf("0x%x", v))
				case "id":
					parts = append(parts, fmt.Sprintf("%08x-0000-4000-8000-%012x", v, v))
				case "t":
					parts = append(parts, time.Unix(int64(v), 0).UTC().Format(time.RFC3339))
				case "tmp":
					parts = append(parts, fmt.Sprintf("/tmp/%d/x", v))
				}
			}
			return fmt.Sprintf("--- FAIL: Test%s (%d.00s)\n    %s_test.go:%d: %s\nFAIL\tshop/%s\t%ds\n", name, n.Draw(t, label+"s")%9,
				name, n.Draw(t, label+"l"), strings.Join(append(parts, after), " "), name, n.Draw(t, label+"e")%9)
		}
		a, b := Read(Job{Name: "j", Log: log("a")}), Read(Job{Name: "j", Log: log("b")})
		if a.Prints[0].FP != b.Prints[0].FP {
			t.Fatalf("%q\n%q", a.Prints[0].Error, b.Prints[0].Error)
		}
	})
}

// What must hold of every decision, whatever the case.
func TestEveryCase(t *testing.T) {
	t.Parallel()
	failure := rapid.Custom(func(t *rapid.T) *Failure {
		if rapid.Bool().Draw(t, "passed") {
			return nil
		}
		f := &Failure{Class: rapid.SampledFrom([]Class{ClassTest, ClassBuild, ClassInfra, ClassOther}).Draw(t, "class")}
		for _, fp := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID[string]).Draw(t, "fps") {
			f.Prints = append(f.Prints, Print{FP: fp, Files: []string{fp + ".go"}, Many: rapid.IntRange(0, 9).Draw(t, "many") == 0})
		}
		return f
	})
	rapid.Check(t, func(t *rapid.T) {
		c := Case{Failure: failure.Draw(t, "failure"), Before: failure.Draw(t, "before"), Base: failure.Draw(t, "base"),
			Evidence: map[string]Evidence{},
			Reruns:   rapid.IntRange(0, 4).Draw(t, "reruns"), RepoReruns: rapid.IntRange(0, 12).Draw(t, "repo")}
		for _, fp := range []string{"a", "b", "c"} {
			c.Evidence[fp] = Evidence{Rerun: rapid.Bool().Draw(t, "rerun"), Base: rapid.Bool().Draw(t, "base evidence")}
			if rapid.Bool().Draw(t, "changed") {
				c.Changed = append(c.Changed, fp+".go")
			}
		}
		d := Judge(c)
		infra := c.Failure != nil && c.Failure.Class == ClassInfra
		switch {
		case d.Round != (d.Verdict == New || d.Verdict == Real):
			t.Fatalf("a round is charged for %s", d.Verdict)
		case infra && d.Round:
			t.Fatal("a round is charged for a machine")
		case d.Verdict == Rerun && c.Reruns >= MaxReruns:
			t.Fatal("more re-runs than the limit")
		case d.Verdict == Flake && (c.Failure != nil || many(c.Before)):
			t.Fatal("a flake that did not pass, or that is many")
		case (c.Failure == nil) == d.Round, (d.Verdict == Passed) != (len(d.Prints) == 0):
			if c.Failure != nil && !d.Round && len(d.Prints) > 0 {
				break // it is run again, or is nobody's fault
			}
			t.Fatalf("%+v", d)
		}
		if d.Verdict == BaseBroken {
			for _, p := range d.Prints {
				if !c.Base.Has(p.FP) || !c.Before.Has(p.FP) {
					t.Fatal("it is not broken at the base")
				}
			}
		}
	})
}
