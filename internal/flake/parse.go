package flake

import (
	"slices"
	"strings"

	"yardmaster/internal/lazy"
)

// parse finds the tests that failed, by the signatures of test programs. Beyond MaxPrints
// tests, their messages are not looked for. Each parser walks the lines once.
func parse(lines []string) (tests []failed) {
	for _, parser := range []func([]string) []failed{goTests, pytests, jestTests, cargoTests, gradleTests, playwrightTests} {
		for _, t := range parser(lines) {
			if !slices.ContainsFunc(tests, func(u failed) bool { return u.id == t.id }) {
				tests = append(tests, t)
			}
			if len(tests) > MaxPrints {
				return tests
			}
		}
	}
	return tests
}

// once collects tests by their ids, in order, one more than MaxPrints at most.
type once struct {
	seen  map[string]int // id -> index
	tests []failed
}

// add answers the index of a test, and whether it is new; -1 if there is no room.
func (o *once) add(t failed) (int, bool) {
	if o.seen == nil {
		o.seen = map[string]int{}
	}
	if i, ok := o.seen[t.id]; ok {
		return i, false
	}
	if len(o.tests) > MaxPrints {
		return -1, false
	}
	o.seen[t.id] = len(o.tests)
	o.tests = append(o.tests, t)
	return len(o.tests) - 1, true
}

var (
	goFail    = lazy.New(`^\s*--- FAIL: (\S+) \(\d`)
	goOther   = lazy.New(`^\s*--- (?:PASS|SKIP|BENCH): `)
	goRun     = lazy.New(`^=== (?:RUN|NAME|CONT)\s+(\S+)`)
	goPause   = lazy.New(`^=== `)
	goPackage = lazy.New(`^FAIL\s+(\S+)(?:\s+\(?[\d.]+s\)?|\s+\[[^\]]*\])?$`)
	goEnd     = lazy.New(`^(?:ok|\?)\s+\S+|^FAIL$|^PASS$|^exit status `)
	goMessage = lazy.New(`^\s+\S+\.go:\d+: |^panic: |^fatal error: `)
)

// goTests reads the output of go test, with or without -v. The line of a package follows
// its tests, so a test gets its package when that line comes.
func goTests(lines []string) []failed {
	type test struct {
		name, message string
	}
	var out once
	var open []test
	byName := map[string]int{}      // of open
	streamed := map[string]string{} // first message of each test before its end, with -v
	current := ""                   // the test that speaks now
	ended := false                  // current has failed: what follows is its block
	flush := func(pkg string) {
		parents := map[string]bool{}
		for _, t := range open {
			for i := range len(t.name) {
				if t.name[i] == '/' {
					parents[t.name[:i]] = true
				}
			}
		}
		for _, t := range open {
			if t.message == "" {
				t.message = streamed[t.name]
			}
			if t.message == "" && parents[t.name] {
				continue // its subtests failed, and it has nothing to add
			}
			id, files := t.name, filesIn(t.message)
			if pkg != "" {
				id = pkg + " " + t.name
				for i, f := range files {
					files[i] = pkg + "/" + f
				}
			}
			out.add(failed{id: id, message: strings.TrimSpace(t.message), files: files})
		}
		open, byName, streamed, current, ended = nil, map[string]int{}, map[string]string{}, "", false
	}
	for _, l := range lines {
		if m := goFail.FindStringSubmatch(l); m != nil {
			current, ended = m[1], true
			if _, ok := byName[current]; !ok && len(open) <= MaxPrints*4 {
				byName[current] = len(open)
				open = append(open, test{name: current})
			}
			continue
		}
		if m := goRun.FindStringSubmatch(l); m != nil {
			current, ended = m[1], false
			continue
		}
		if m := goPackage.FindStringSubmatch(l); m != nil {
			flush(m[1])
			continue
		}
		switch {
		case goPause.MatchString(l), goOther.MatchString(l), goEnd.MatchString(l):
			if !goEnd.MatchString(l) {
				current = ""
			}
		case current == "" || !goMessage.MatchString(l):
		case ended:
			if i, ok := byName[current]; ok && open[i].message == "" {
				open[i].message = l
			}
		case streamed[current] == "":
			streamed[current] = l
		}
	}
	flush("")
	return out.tests
}

var (
	pyFailed  = lazy.New(`^FAILED (\S+?::.*?)(?: - (.*))?$`)
	pySection = lazy.New(`^_{3,} (.+?) _{3,}$`)
	pyMessage = lazy.New(`^E\s{1,7}\S`)
)

// pytests reads the short summary of pytest. The messages stand in a section of each test
// above it, whose title is the name within the file.
func pytests(lines []string) []failed {
	var out once
	sections := map[string]string{}
	var loose []string // messages outside of sections
	title, inside := "", false
	for _, l := range lines {
		if m := pySection.FindStringSubmatch(l); m != nil {
			title, inside = m[1], true
			continue
		}
		if strings.HasPrefix(l, "=====") {
			inside = false
			continue
		}
		if pyMessage.MatchString(l) {
			if len(loose) < MaxPrints {
				loose = append(loose, l)
			}
			if inside && sections[title] == "" {
				sections[title] = l
			}
			continue
		}
		m := pyFailed.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		file, name, _ := strings.Cut(m[1], "::")
		t := failed{id: m[1], files: []string{file}, message: sections[strings.ReplaceAll(name, "::", ".")]}
		if t.message == "" {
			t.message = summarized(loose, m[2])
		}
		out.add(t)
	}
	return out.tests
}

// summarized is the message that the short summary of a test begins with, or the first one.
func summarized(messages []string, summary string) string {
	begin := strings.TrimSuffix(summary, "...")
	for _, l := range messages {
		if begin != "" && strings.HasPrefix(strings.TrimSpace(l[1:]), begin) {
			return l
		}
	}
	switch {
	case len(messages) > 0:
		return messages[0]
	case summary != "":
		return "E " + summary
	}
	return ""
}
