package flake

import (
	"strings"

	"yardmaster/internal/lazy"
)

// blocks walks the lines of a program that writes the title of a failed test, and its
// message on the next line that is not blank. head answers the test that a line begins.
func blocks(lines []string, head func(string) (failed, bool)) []failed {
	var out once
	wants := -1
	for _, l := range lines {
		if t, ok := head(l); ok {
			i, fresh := out.add(t)
			if wants = -1; fresh {
				wants = i
			}
			continue
		}
		if text := strings.TrimSpace(l); wants >= 0 && text != "" {
			out.tests[wants].message = text
			wants = -1
		}
	}
	return out.tests
}

var (
	jestFile = lazy.New(`^\s*FAIL\s+(?:\S+ )?(\S+\.[a-z]+)(?: \([\d.]+ m?s\))?$`)
	jestHead = lazy.New(`^\s*● (.+)$`)
)

// jestTests reads the output of jest: the file, then each test with its message.
func jestTests(lines []string) []failed {
	file := ""
	return blocks(lines, func(l string) (failed, bool) {
		if m := jestFile.FindStringSubmatch(l); m != nil {
			file = m[1]
			return failed{}, false
		}
		m := jestHead.FindStringSubmatch(l)
		if m == nil || strings.HasPrefix(m[1], "Console") || file == "" && !strings.Contains(m[1], " › ") {
			return failed{}, false
		}
		if file == "" {
			return failed{id: m[1]}, true
		}
		return failed{id: file + " " + m[1], files: []string{file}}, true
	})
}

var (
	cargoCrate  = lazy.New(`^\s*Running (?:.*\()?\S*deps[/\\]([^\s)/\\]+?)(?:-[0-9a-f]{16})?(?:\.exe)?\)?$|^\s*Doc-tests (\S+)$`)
	cargoFailed = lazy.New(`^test (.+?) \.\.\. FAILED$`)
	cargoStdout = lazy.New(`^---- (.+?) stdout ----$`)
	cargoPanic  = lazy.New(`^thread '.*?' (?:\(\d+\) )?panicked at (.*)$`)
	cargoOld    = lazy.New(`^'(.*)', (\S+?):\d+:\d+$`)
	cargoNew    = lazy.New(`^(\S+?):\d+:\d+:$`)
)

// cargoTests reads the output of cargo test. The messages follow the list of results, in a
// block of each test.
func cargoTests(lines []string) []failed {
	var out once
	crate := ""
	known := map[string]int{} // name within the present crate -> index
	block, next := -1, false
	for _, l := range lines {
		if m := cargoCrate.FindStringSubmatch(l); m != nil {
			crate, known, block = m[1]+m[2], map[string]int{}, -1
			continue
		}
		if m := cargoFailed.FindStringSubmatch(l); m != nil {
			id := strings.TrimSuffix(m[1], " - should panic")
			i, _ := out.add(failed{id: strings.TrimSpace(crate + " " + id)})
			known[id] = i
			continue
		}
		if m := cargoStdout.FindStringSubmatch(l); m != nil {
			block, next = -1, false
			if i, ok := known[m[1]]; ok {
				block = i
			}
			continue
		}
		if block < 0 || out.tests[block].message != "" {
			continue
		}
		t := &out.tests[block]
		if next {
			if strings.TrimSpace(l) != "" {
				t.message, next = strings.TrimSpace(l), false
			}
			continue
		}
		m := cargoPanic.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		if old := cargoOld.FindStringSubmatch(m[1]); old != nil {
			t.message, t.files = old[1], []string{old[2]}
			continue
		}
		if at := cargoNew.FindStringSubmatch(m[1]); at != nil {
			t.files = []string{at[1]}
		}
		next = true
	}
	return out.tests
}

var (
	gradleHead = lazy.New(`^\s*(?:Gradle Test Executor \d+ > )?([A-Za-z_$][\w.$]*(?: > .+?)+) FAILED$`)
)

// gradleTests reads the output of Gradle's test task.
func gradleTests(lines []string) []failed {
	tests := blocks(lines, func(l string) (failed, bool) {
		m := gradleHead.FindStringSubmatch(l)
		if m == nil {
			return failed{}, false
		}
		class, _, _ := strings.Cut(m[1], " > ")
		class = class[strings.LastIndexByte(class, '.')+1:]
		class, _, _ = strings.Cut(class, "$")
		return failed{id: m[1], files: []string{class + anySource}}, true
	})
	return tests
}

// anySource ends the name of a file whose language the log does not tell.
const anySource = ".*"

var playwrightHead = lazy.New(`^\s*\d+\) (\[[^\]]+\] › (\S+?):\d+:\d+ › .+?)\s*[─-]*$`)

// playwrightTests reads the list of failures of Playwright.
func playwrightTests(lines []string) []failed {
	return blocks(lines, func(l string) (failed, bool) {
		m := playwrightHead.FindStringSubmatch(l)
		if m == nil {
			return failed{}, false
		}
		return failed{id: m[1], files: []string{m[2]}}, true
	})
}
