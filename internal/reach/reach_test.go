package reach

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
)

// expected reads testdata/table.txt: kinds, verb, target, text, outcome, reason. A star
// stands for all kinds, and a line below another one takes precedence.
func expected(t *testing.T) map[[4]string]string {
	t.Helper()
	f, err := os.Open("testdata/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[[4]string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		if len(w) < 5 {
			t.Fatalf("%q", line)
		}
		of := []string{w[0]}
		if w[0] == "*" {
			of = Kinds()
		}
		for _, kind := range of {
			out[[4]string{kind, w[1], w[2], w[3]}] = strings.Join(w[4:], " ")
		}
	}
	return out
}

// Every kind of run, verb, target and text has the outcome that the written table says,
// and none is left out of that.
func TestTableOfRuns(t *testing.T) {
	t.Parallel()
	want := expected(t)
	n := 0
	for _, kind := range Kinds() {
		for _, v := range Verbs() {
			for _, to := range Targets() {
				for _, given := range Texts() {
					n++
					d := Of(kind, v, to, given)
					got := strings.TrimSpace(string(d.Outcome) + " " + d.Reason)
					if w, ok := want[[4]string{kind, string(v), string(to), string(given)}]; !ok || got != w {
						t.Errorf("%s %s %s %s is %q, want %q", kind, v, to, given, got, w)
					}
				}
			}
		}
	}
	if n != len(want) {
		t.Errorf("the written table has %d cells, there are %d", len(want), n)
	}
}

// What no row may ever allow, whatever the written table says.
func TestWallsOfTheTable(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		for _, v := range Verbs() {
			begins := slices.Contains(work, v)
			for _, to := range Targets() {
				for _, given := range Texts() {
					d := Of(kind, v, to, given)
					at := []any{kind, v, to, given}
					switch {
					case to == Other && d.Outcome != Waits && d.Outcome != Refused:
						t.Errorf("%v reaches another repository: %v", at, d)
					case given == Fork && v == FollowUp && d != Decision{Waits, StrangersText}:
						t.Errorf("%v is an answer of a person, about a fork: %v", at, d)
					case given == Fork && v != FollowUp && d.Outcome != Refused:
						t.Errorf("%v is about a fork: %v", at, d)
					case given == Strangers && d.Outcome == Done:
						t.Errorf("%v has text of strangers, and nobody is told: %v", at, d)
					case begins && (to == Wider || kind == check) && d.Outcome == Done:
						t.Errorf("%v begins work with more rights: %v", at, d)
					case (d.Outcome == Waits) != (d.Reason != ""):
						t.Errorf("%v has the reason %q", at, d.Reason)
					case !begins && d.Outcome == Waits:
						t.Errorf("%v is a question, and waits for one", at)
					}
				}
			}
		}
	}
}

// What is not known is refused.
func TestUnknownIsRefused(t *testing.T) {
	t.Parallel()
	for _, d := range []Decision{
		Of("", Ask, Own, Account), Of("mint", Ask, Own, Account), Of("work", "", Own, Account), Of("work", "escalation", Own, Account),
		Of("work", Ask, "", Account), Of("work", Ask, "account", Account), Of("work", Ask, Own, ""), Of("work", Ask, Own, "own"),
	} {
		if d != (Decision{Outcome: Refused}) {
			t.Errorf("%v", d)
		}
	}
}
