package arch

import (
	"regexp"
	"testing"
)

// left lists texts that are never committed: notes to oneself, tests that do not
// test, paths of one person's machine.
var left = map[string]*regexp.Regexp{
	"a note to oneself":    regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
	"a skipped test":       regexp.MustCompile(`\b[tb]\.Skip(f|Now)?\(`),
	"a path of a machine":  regexp.MustCompile(`/(root|Users|work)/`),
	"a registry's address": regexp.MustCompile(`(proxy\.golang|registry\.npmjs|pypi)\.org`),
}

func TestNothingLeft(t *testing.T) {
	for _, f := range files(t) {
		for what, re := range left {
			if m := re.Find(f.text); m != nil && f.path != "internal/proof/arch/left_test.go" {
				t.Errorf("%s holds %s: %s", f.path, what, m)
			}
		}
		// In a bubble of synctest a test sleeps to let time pass.
		if f.test && f.uses("time", "Sleep") && !imports("testing/synctest")(f) {
			t.Errorf("%s sleeps: wait for a signal, or poll with a deadline", f.path)
		}
	}
}
