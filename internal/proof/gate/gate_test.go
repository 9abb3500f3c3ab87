package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// toys lays out the packages that fail in every way.
func toys(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/toys.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range archive.Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTrials plays tests that fail in every way. What passes alone is flaky, unless it is
// of the kind that is never tried again; nothing else passes.
func TestTrials(t *testing.T) { // alone: the toys read an environment variable
	dir := toys(t)
	hostile := regexp.MustCompile("hostile")
	for _, c := range []struct {
		packages string
		flags    []string
		flaky    []string
		failed   []string // with what they are refused for
	}{
		{packages: "./good ./flaky", flaky: []string{"toy/flaky TestFlaky", "toy/flaky TestFlakySub"}},
		{packages: "./good ./failing", failed: []string{"toy/failing TestFails (it failed twice)"}},
		{packages: "./panics ./good", failed: []string{"toy/panics TestPanics (a race or a panic in its package)"}},
		{packages: "./outside ./good", failed: []string{"toy/outside (it failed outside of its tests)"}},
		{packages: "./hostile", failed: []string{"toy/hostile TestHostile (it is never tried again)"}},
		{packages: "./nobuild ./good", failed: []string{"toy/nobuild (it failed outside of its tests)"}},
		{packages: "./hangs", flags: []string{"-timeout=1s"},
			failed: []string{"toy/hangs TestHangs (a race or a panic in its package)"}},
		{packages: "./exits", failed: []string{"toy/exits TestExits (it did not end)"}},
		{packages: "./many", failed: []string{"toy/many TestA (4 failed, more than 3)", "toy/many TestB (4 failed, more than 3)",
			"toy/many TestC (4 failed, more than 3)", "toy/many TestD (4 failed, more than 3)"}},
		{packages: "./internal/proof/transcript", flaky: []string{"toy/internal/proof/transcript TestTranscripts/repo/two"}},
	} {
		t.Run(strings.NewReplacer("./", "", " ", "+", "/", "-").Replace(c.packages), func(t *testing.T) {
			marks := t.TempDir()
			t.Setenv("MARKS", marks)
			t.Setenv("GOFLAGS", "")
			var out bytes.Buffer
			o, err := try(t.Context(), &out, hostile.MatchString, slices.Concat([]string{"-C=" + dir, "-count=1", "-vet=off"}, c.flags),
				strings.Fields(c.packages))
			if err != nil {
				t.Fatal(err)
			}
			var flaky, failed []string
			for _, v := range o.flaky {
				flaky = append(flaky, v.String())
			}
			for _, v := range o.failed {
				failed = append(failed, v.String()+" ("+v.why+")")
			}
			if !slices.Equal(flaky, c.flaky) || !slices.Equal(failed, c.failed) {
				t.Errorf("flaky: %q, failed: %q; want %q and %q\n%s", flaky, failed, c.flaky, c.failed, out.String())
			}
			if words := o.String(); strings.Contains(c.packages, "flaky") &&
				!strings.Contains(words, "x_test.go:12: b: the first time fails") {
				t.Errorf("the last lines do not have the failure:\n%s", words)
			}
			if played, err := os.ReadFile(marks + "/played"); err == nil && strings.Count(string(played), "\n") != 5 {
				t.Errorf("one transcript was to be played again, alone:\n%s", played)
			}
		})
	}
}

func TestRacesAreNeverTriedAgain(t *testing.T) {
	t.Parallel()
	rs := &results{of: map[string]*result{}}
	for _, l := range []string{
		`{"Action":"output","Package":"p","Test":"TestRaces","Output":"WARNING: DATA RACE\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestRaces"}`, `{"Action":"fail","Package":"p"}`,
	} {
		rs.read(&bytes.Buffer{}, []byte(l+"\n"))
	}
	bad := rs.failures(func(string) bool { return false })
	if len(bad) != 1 || bad[0].why == "" {
		t.Errorf("a race is tried again: %v", bad)
	}
}

// TestFactsNameTests holds which tests of the tree are not tried again: all of hostile
// suites and of files whose tests walk at random, and those of the list, whose patterns
// each name one.
func TestFactsNameTests(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	never, err := facts(root)
	if err != nil {
		t.Fatal(err)
	}
	for test, want := range map[string]bool{
		"internal/bus TestHostileBox": true, "internal/app TestWorkUnderDisorder": true, "internal/box/sandbox TestEscapes": true,
		"internal/domain/run TestHostileCalls": true, "internal/domain/ask TestRandomVerdicts/sqlite": true,
		"internal/domain/plan TestRandomPlans": true, "internal/cli TestRotationKilledAgainAndAgain": true,
		"internal/bus TestCalls": false, "internal/app TestTable": false, "internal/box TestPush": false,
		"internal/domain/ask TestNoModel": false, "internal/box TestCommandMayAskTheModel": false,
	} {
		if never(test) != want {
			t.Errorf("%s: never again is %v", test, !want)
		}
	}
	all, err := testFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range grim {
		named := regexp.MustCompile(pattern)
		if !slices.ContainsFunc(all, func(f testFile) bool {
			return slices.ContainsFunc(f.tests, func(test string) bool { return named.MatchString(f.dir + " " + test) })
		}) {
			t.Errorf("%s names no test", pattern)
		}
	}
}

// TestDayAndNight holds that what is left to the night is tested by day where it has
// changed.
func TestDayAndNight(t *testing.T) {
	t.Parallel()
	all := []pkg{
		{ImportPath: "yardmaster/internal/proof/frontdoor", TestGoFiles: []string{"x"}},
		{ImportPath: "yardmaster/internal/fault", TestGoFiles: []string{"x"}}, {ImportPath: "yardmaster/internal/untested"},
	}
	const alone = "TestEachLineIsNeeded|TestTwoGigabytes|TestRollingUpgrade|TestRollingRestart"
	for _, c := range []struct {
		file, skip string
		packages   int
	}{
		{"internal/fault/fault.go", "TestPictures|TestRecording|TestChaosOnPostgreSQL|TestChaosOnNodes|TestDemoAtStandIn|" + alone, 1},
		{"CONTRIBUTING.md", "TestPictures|TestRecording|TestChaosOnPostgreSQL|TestChaosOnNodes|TestDemoAtStandIn|" + alone, 2},
		{"internal/db/db.go", "TestPictures|TestRecording|TestDemoAtStandIn|" + alone, 1},
		{"internal/domain/task/store_list.go", "TestPictures|TestRecording|TestChaosOnPostgreSQL|TestChaosOnNodes|TestDemoAtStandIn|" + alone, 1},
		{"internal/proof/e2e/chaos_test.go", "TestPictures|TestRecording|TestDemoAtStandIn|" + alone, 1},
		{"internal/proof/e2e/demo_test.go", "TestPictures|TestRecording|TestChaosOnPostgreSQL|TestChaosOnNodes|" + alone, 1},
	} {
		packages, skip := day(all, untouched([]string{c.file}))
		if len(packages) != c.packages || skip != c.skip {
			t.Errorf("%s: %v without %q", c.file, packages, skip)
		}
	}
	if told := names(untouched([]string{"internal/fault/fault.go"})); !strings.HasPrefix(told, "internal/proof/frontdoor, TestPictures") ||
		names(nil) != "nothing" {
		t.Errorf("what is left is told as %q", told)
	}
	if packages, skip := day(all, nil); len(packages) != 2 || skip != "" {
		t.Errorf("where nothing is left out it is %v without %q", packages, skip)
	}
	files, err := testFiles("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nights {
		for name := range strings.SplitSeq(n.tests, "|") {
			at := slices.IndexFunc(files, func(f testFile) bool { return slices.Contains(f.tests, name) })
			switch {
			case name == "":
			case at < 0:
				t.Errorf("%s is left to the night, and is no test", name)
			case !n.ground.MatchString(files[at].dir + "/" + files[at].name):
				t.Errorf("%s is left to the night when it has changed itself", name)
			}
		}
	}
}

// TestEnginesByDay holds that what asks for a database plays on both where what it tests has
// changed, and that the night plays all that asks.
func TestEnginesByDay(t *testing.T) {
	t.Parallel()
	for files, want := range map[string]string{
		"internal/fault/fault.go":                                     "sqlite",
		"internal/db/db.go":                                           "both",
		"internal/db/dbtest/engines.go":                               "both",
		"internal/db/due/due_test.go internal/db/migrations/0001.sql": "sqlite",
		"internal/domain/task/store_list.go":                          "sqlite internal/domain/task",
		"internal/domain/task/store_test.go":                          "sqlite",
		"internal/domain/b/store.go internal/domain/b/store_list.go internal/domain/a/store.go": "sqlite internal/domain/a internal/domain/b",
		"internal/domain/a/store.go internal/db/tx.go":                                          "both",
		"internal/domain/a/record/store.go":                                                     "sqlite internal/domain/a internal/domain/a/record",
	} {
		if got := engines(strings.Fields(files)); got != want {
			t.Errorf("%s: %q, want %q", files, got, want)
		}
	}
	asking, err := asks("../../..")
	for _, p := range []string{"./internal/app", "./internal/domain/pull", "./internal/domain/talk", "./internal/proof/transcript"} {
		if err != nil || !slices.Contains(asking, p) {
			t.Errorf("the night leaves out %s: %v, %v", p, asking, err)
		}
	}
}

// TestQuick holds what make fast tests of the packages that take long.
func TestQuick(t *testing.T) {
	t.Parallel()
	const app, box = "yardmaster/internal/app", "yardmaster/internal/box"
	const cmd, fault = "yardmaster/internal/cli", "yardmaster/internal/fault"
	whole, left := quick([]string{cmd, app, box, fault}, []string{app, box, fault})
	if !slices.Equal(whole, []string{box, fault}) || !slices.Equal(left, []string{cmd, app}) {
		t.Errorf("whole: %v, left out: %v", whole, left)
	}
	const pull, merge = "yardmaster/internal/domain/pull", "yardmaster/internal/domain/pull/merge"
	if whole, left := quick([]string{box, pull, merge}, []string{box + "/broker", merge}); !slices.Equal(left, []string{box}) {
		t.Errorf("a part has changed: whole: %v, left out: %v", whole, left)
	}
	for _, p := range first {
		if _, is := long["yardmaster/"+strings.TrimPrefix(p, "./")]; !is {
			t.Errorf("%s begins first, and make fast does not know that it takes long", p)
		}
	}
	if parts := partsOf([]string{"internal/proof/gate/main.go"}, nil); len(parts) > 0 {
		t.Errorf("the archive of the gate is taken for transcripts: %v", parts)
	}
}

// TestTouched walks a repository: what has changed since the commit that has passed, and
// since none is known.
func TestTouched(t *testing.T) { // alone: it sets the folders of the process
	dir := toys(t)
	t.Chdir(dir)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("GOFLAGS", "")
	ctx := context.Background()
	run := func(args ...string) {
		t.Helper()
		if _, err := git(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "--initial-branch=main", ".")
	run("add", ".")
	commitAll := func() {
		run("add", "-A")
		run("-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=x")
	}
	commitAll()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("good/good.go", "package x\n")
	commitAll()
	if err := keep("passed.tsv", commit(ctx), today(), "check", "1.0", "0"); err != nil {
		t.Fatal(err)
	}
	write("flaky/uses.go", "package x\n\nimport _ \"toy/good\"\n")
	commitAll()
	before := commit(ctx)
	at := func() []string {
		t.Helper()
		all, err := list(ctx, "./good", "./flaky", "./many")
		if err != nil {
			t.Fatal(err)
		}
		base, err := passed(ctx, "check")
		if err != nil {
			t.Fatal(err)
		}
		c, err := changed(ctx, all, base)
		if err != nil {
			t.Fatal(err)
		}
		return c.packages
	}
	if got := at(); !slices.Equal(got, []string{"toy/flaky"}) {
		t.Errorf("since the commit that passed %v changed", got)
	}
	write("good/new.go", "package x\n") // not known to git yet
	if got := at(); !slices.Equal(got, []string{"toy/flaky", "toy/good"}) {
		t.Errorf("in the tree %v changed", got)
	}
	all, err := list(ctx, "./good", "./flaky", "./many")
	if err != nil {
		t.Fatal(err)
	}
	if got := withImporters(all, []string{"toy/good"}); !slices.Equal(got, []string{"toy/flaky", "toy/good"}) {
		t.Errorf("good is imported by %v", got)
	}
	if c := lies(ctx); c != "" {
		t.Errorf("a tree with a new file is taken for %s", c)
	}
	if base, err := passed(ctx, "nightly"); err != nil || base != "" {
		t.Errorf("%q is known to have passed what never has: %v", base, err)
	}
	if base, err := since(ctx, "nightly"); err != nil || base == "" || base == commit(ctx) {
		t.Errorf("what has never passed is compared with %q: %v", base, err)
	}
	// What the repository says has passed counts where this machine knows nothing, and only of
	// commits that it has.
	if err := os.MkdirAll(".ci", 0o755); err != nil {
		t.Fatal(err)
	}
	write(treePassed, strings.Repeat("0", 40)+"\t2026-01-01\tnightly\t1.0\t0\n"+before+"\t2026-01-01\tnightly\t1.0\t0\nbroken\n")
	if base, err := passed(ctx, "nightly"); err != nil || base != before {
		t.Errorf("by the word of the repository %q has passed: %v", base, err)
	}
	if err := tell(ctx, nil); err != nil {
		t.Fatal(err)
	}
	rows, err := table(treePassed)
	if err != nil || len(rows) != 2 || rows[0][2] != "check" || rows[1][0] != before || rows[1][2] != "nightly" {
		t.Errorf("the repository is told %v, %v", rows, err)
	}
}
