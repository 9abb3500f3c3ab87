package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// timeout is the time of a package. Half of what is left of it is how long a test waits
// (internal/proof/patience), so it is far above what any package takes.
const timeout = "-timeout=40m"

// packagesAtOnce is one more than there are processors, because packages wait for processes,
// browsers and clocks: with one for each of two processors, these were idle for a fifth of the time.
func packagesAtOnce() string { return fmt.Sprintf("-p=%d", runtime.GOMAXPROCS(0)+1) }

// first are the packages that take longest: they begin first, so that none of them is
// left alone at the end.
var first = []string{
	"./internal/proof/dashboard", "./internal/app", "./internal/proof/e2e", "./internal/box", "./internal/domain/pull",
	"./internal/proof/transcript", "./internal/cli",
}

// long are the packages of which `make fast` plays only the tests in files that have
// changed. Those of which it plays all are half a minute each, and true says so.
var long = map[string]bool{
	"yardmaster/internal/proof/frontdoor": false, "yardmaster/internal/proof/dashboard": false, "yardmaster/internal/app": false,
	"yardmaster/internal/proof/e2e": false, "yardmaster/internal/proof/transcript": false,
	"yardmaster/internal/box": true, "yardmaster/internal/domain/pull": true, "yardmaster/internal/cli": true,
}

// night is a part of the tests that is played at night, and in a check when what it tests
// has changed.
type night struct {
	packages []string // that have nothing else
	tests    string   // an expression for names of tests, of any package
	ground   *regexp.Regexp
}

var nights = []night{
	{packages: []string{"yardmaster/internal/proof/frontdoor"},
		ground: regexp.MustCompile(`^(CONTRIBUTING\.md|Makefile|internal/(domain/template|proof/frontdoor)/)`)},
	{tests: "TestPictures|TestRecording", ground: regexp.MustCompile(`^(docs/pictures/|internal/proof/dashboard/pictures|internal/cli/recording)`)},
	{tests: "TestChaosOnPostgreSQL|TestChaosOnNodes", ground: regexp.MustCompile(`^internal/(proof/(chaos/|e2e/chaos_test)|db/)`)},
	{tests: "TestDemoAtStandIn", ground: regexp.MustCompile(`^internal/(demo/|proof/((lab|github|standin)/|e2e/demo_test))`)},
	{tests: "TestEachLineIsNeeded", ground: regexp.MustCompile(`^internal/domain/pull/moves/`)},
	{tests: "TestTwoGigabytes", ground: regexp.MustCompile(`^internal/(client/addrepo|proof/odd/)`)},
	{tests: "TestRollingUpgrade|TestRollingRestart",
		ground: regexp.MustCompile(`^internal/(db/migrations/|app/(start|stop|cluster)\.go|proof/e2e/rolling_)`)},
}

// enginesEnv names the databases of tests that ask which to play on (dbtest.Engines): those of
// app and pull, the transcripts, and a few more.
const enginesEnv = "YARDMASTER_ENGINES"

var stores = regexp.MustCompile(`/store[^/]*\.go$`)

// seedEnv is the number from which random walks begin (internal/proof/chance).
const seedEnv = "YARDMASTER_SEED"

// suite runs the tests of all packages.
//
//	gate suite         without what is played at night, unless what it tests has changed
//	gate suite -night  what that leaves out, whatever has changed
//	gate suite -fast   of what has changed, and of what imports it
func suite(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("gate suite", flag.ContinueOnError)
	fast := set.Bool("fast", false, "only what has changed")
	atNight := set.Bool("night", false, "what is left out by day")
	if err := set.Parse(args); err != nil {
		return err
	}
	flags := []string{"-vet=off", "-count=1", timeout}
	if !*atNight { // at night new walks are walked, and nobody waits
		flags = append(flags, packagesAtOnce())
		if err := setSeed(ctx); err != nil {
			return err
		}
	}
	end, err := inMemory(ctx)
	if err != nil {
		return err
	}
	defer end()
	switch {
	case *fast:
		return fastSuite(ctx, flags)
	case *atNight:
		return nightSuite(ctx, flags)
	}
	all, err := list(ctx, "./...")
	if err != nil {
		return err
	}
	base, err := passed(ctx, "check")
	if err != nil {
		return err
	}
	var left []night
	if base == "" {
		fmt.Println("no ancestor is known to have passed: nothing is left to the night")
	} else if c, err := changed(ctx, all, base); err != nil {
		return err
	} else {
		left = untouched(c.files)
		os.Setenv(enginesEnv, engines(c.files))
		fmt.Printf("against %s, which has passed: databases %s; left to make nightly: %s\n", base, os.Getenv(enginesEnv), names(left))
	}
	packages, skip := day(all, left)
	if skip != "" {
		flags = append(flags, "-skip=^("+skip+")$")
	}
	return test(ctx, slices.Concat(flags, []string{"--"}, first, packages))
}

// untouched returns the parts for the night whose ground has none of the files.
func untouched(files []string) []night {
	return slices.DeleteFunc(slices.Clone(nights), func(n night) bool { return slices.ContainsFunc(files, n.ground.MatchString) })
}

// names are the packages and tests of parts.
func names(parts []night) string {
	var out []string
	for _, n := range parts {
		out = append(out, n.packages...)
		if n.tests != "" {
			out = append(out, n.tests)
		}
	}
	return cmp.Or(short(strings.Join(out, ", ")), "nothing")
}

// engines are the databases of tests that ask, where files have changed: both where the way to
// the databases has, or else SQLite, and both for the tests and transcripts of packages whose
// statements have. What has changed in tests and in the ladder of migrations is tested on
// both by tests that do not ask.
func engines(files []string) string {
	said := []string{"sqlite"}
	for _, f := range files {
		switch {
		case !strings.HasSuffix(f, ".go"), strings.HasSuffix(f, "_test.go"):
		case strings.HasPrefix(f, "internal/db/"):
			return "both"
		case stores.MatchString(f):
			at := path.Dir(f)
			said = append(said, at)
			if of := path.Dir(at); strings.HasPrefix(of, "internal/domain/") {
				said = append(said, of) // the domain tests its parts
			}
		}
	}
	slices.Sort(said[1:])
	return strings.Join(slices.Compact(said), " ")
}

// day is what is tested where some is left to the night: the packages, and an expression
// for tests to leave out.
func day(all []pkg, left []night) (packages []string, skip string) {
	var out, tests []string
	for _, n := range left {
		out = append(out, n.packages...)
		if n.tests != "" {
			tests = append(tests, n.tests)
		}
	}
	for _, p := range all {
		if !slices.Contains(out, p.ImportPath) && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			packages = append(packages, p.ImportPath)
		}
	}
	return packages, strings.Join(tests, "|")
}

// nightSuite plays what day leaves out when nothing has changed.
func nightSuite(ctx context.Context, flags []string) error {
	var packages []string
	var tests []string
	for _, n := range nights {
		packages = append(packages, n.packages...)
		if n.tests != "" {
			tests = append(tests, n.tests)
		}
	}
	err := test(ctx, slices.Concat(flags, []string{"--"}, packages))
	if err == nil || errors.Is(err, errRefused) {
		err = errors.Join(err, test(ctx, slices.Concat(flags, []string{"-run=^(" + strings.Join(tests, "|") + ")$", "--",
			"./internal/proof/dashboard", "./internal/proof/e2e", "./internal/cli", "./internal/proof/odd",
			"./internal/domain/pull/moves"})))
	}
	asking, other := asks(".")
	os.Setenv(enginesEnv, "postgres")
	return errors.Join(err, other, test(ctx, slices.Concat(flags, []string{"--"}, asking)))
}

// asks are the packages whose tests ask on which database they are to play.
func asks(root string) ([]string, error) {
	out := []string{"./internal/proof/transcript"}
	files, err := testFiles(root)
	for _, f := range files {
		if strings.Contains(f.text, "range dbtest.Engines()") {
			out = append(out, "./"+f.dir)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), err
}

// fastSuite tests the packages that have changed and those that import one of them; of the
// long ones only some (see long), and says which it leaves out; the transcripts of domains
// that have changed, on one database; and in any case the rules of the tree.
func fastSuite(ctx context.Context, flags []string) error {
	os.Setenv(enginesEnv, "sqlite")
	all, err := list(ctx, "./...")
	if err != nil {
		return err
	}
	base, err := since(ctx, "fast", "check")
	if err != nil {
		return err
	}
	c, err := changed(ctx, all, base)
	if err != nil {
		return err
	}
	packages, left := quick(withImporters(all, c.packages), c.packages)
	packages = append(packages, "yardmaster/internal/proof/arch", "yardmaster/docs")
	slices.Sort(packages)
	err = test(ctx, slices.Concat(flags, []string{"--"}, slices.Compact(packages)))
	for _, part := range partsOf(c.files, packages) {
		fmt.Printf("of %s: %s\n", short(part.pkg), part.run)
		err = errors.Join(err, test(ctx, slices.Concat(flags, []string{"-run=" + part.run, "--", part.pkg})))
	}
	if len(left) > 0 {
		fmt.Printf("left to make check, but for tests that have changed: %s\n", short(strings.Join(left, ", ")))
	}
	return err
}

// quick divides packages into those to test whole and those to leave out. Of the long ones
// it takes no more than those that have changed themselves, and domains that have in a part.
func quick(packages, changed []string) (whole, left []string) {
	for _, p := range packages {
		itself := func(c string) bool {
			return c == p || strings.HasPrefix(p, "yardmaster/internal/domain/") && strings.HasPrefix(c, p+"/")
		}
		if half, is := long[p]; !is || half && slices.ContainsFunc(changed, itself) {
			whole = append(whole, p)
		} else {
			left = append(left, p)
		}
	}
	return whole, left
}

// part is a package of which some tests are played.
type part struct{ pkg, run string }

// partsOf returns the tests to play of the long packages: those of test files that have
// changed, unless their package is tested whole, and the transcripts of packages that have.
func partsOf(files, whole []string) (out []part) {
	tests, nouns := map[string][]string{}, []string{}
	for _, f := range files {
		dir := path.Dir(f)
		pkg := "yardmaster/" + dir
		if _, is := long[pkg]; is && !slices.Contains(whole, pkg) && strings.HasSuffix(f, "_test.go") {
			text, _ := os.ReadFile(f) // one that was removed has no tests
			for _, t := range testsOf(string(text)) {
				if t != "TestTranscripts" {
					tests[pkg] = append(tests[pkg], t)
				}
			}
		}
		noun := strings.TrimSuffix(dir, "/testdata")
		if in, of := strings.CutPrefix(noun, "internal/domain/"); of {
			domain, _, _ := strings.Cut(in, "/")
			noun = "internal/domain/" + domain
		}
		if found, _ := filepath.Glob(noun + "/testdata/*.txtar"); len(found) > 0 &&
			(noun == "internal/api/mcp" || path.Dir(noun) == "internal/domain") {
			nouns = append(nouns, path.Base(noun))
		}
	}
	for _, p := range slices.Sorted(maps.Keys(tests)) {
		out = append(out, part{p, "^(" + strings.Join(tests[p], "|") + ")$"})
	}
	if slices.Sort(nouns); len(nouns) > 0 {
		out = append(out, part{"yardmaster/internal/proof/transcript",
			"^TestTranscripts$/^(" + strings.Join(slices.Compact(nouns), "|") + ")$/./^sqlite$"})
	}
	return out
}

// setSeed sets the seed of random walks, unless it is set: one that follows from what is
// tested, so that a run can be made again and no chance of another day refuses it.
func setSeed(ctx context.Context) error {
	if os.Getenv(seedEnv) != "" {
		return nil
	}
	tree, err := git(ctx, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return err
	}
	n, err := strconv.ParseUint(tree[:12], 16, 64)
	if err != nil {
		return err
	}
	return os.Setenv(seedEnv, strconv.FormatUint(max(n, 1), 10))
}

// inMemory gives tests a temporary folder in memory, if there is one, because they write
// much that nobody keeps. Its name is y and the number of this process; those of processes
// that were killed are removed.
func inMemory(ctx context.Context) (end func(), err error) {
	const memory, space = "/dev/shm", 4 << 30
	var at syscall.Statfs_t
	if err := syscall.Statfs(memory, &at); err != nil || at.Bavail*uint64(at.Bsize) < space || at.Flags&stNoExec != 0 {
		return func() {}, nil
	}
	old, _ := filepath.Glob(memory + "/y[0-9]*")
	for _, dir := range old {
		if n, err := strconv.Atoi(filepath.Base(dir)[1:]); err == nil && syscall.Kill(n, 0) == syscall.ESRCH {
			wipe(dir)
		}
	}
	dir := fmt.Sprintf("%s/y%d", memory, os.Getpid()) // short: paths of sockets below it may have 107 bytes
	if err := os.Mkdir(dir, 0o700); err != nil {
		return func() {}, nil // it may belong to others; the disk does as well
	}
	// Agents of a box that runs as root are another user, who must get through.
	err = errors.Join(os.Chmod(dir, 0o711), builtElsewhere(ctx, dir), os.Setenv("TMPDIR", dir))
	if err != nil {
		return nil, err
	}
	return func() { wipe(dir) }, nil
}

// wipe removes a folder with what tests have closed in it.
func wipe(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// builtElsewhere has go build where it did, on the disk, where test binaries have room. It
// is told by go's own file of settings, since t.TempDir takes the variable GOTMPDIR for
// itself.
func builtElsewhere(ctx context.Context, dir string) error {
	out, err := command(ctx, goProgram(), "env", "GOENV", "GOTMPDIR").Output()
	if err != nil {
		return err
	}
	env, at, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	had, err := os.ReadFile(env)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	file := filepath.Join(dir, "goenv")
	text := fmt.Sprintf("%s\nGOTMPDIR=%s\n", strings.TrimSpace(string(had)), cmp.Or(at, os.TempDir()))
	return errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Setenv("GOENV", file), os.Unsetenv("GOTMPDIR"))
}

// stNoExec is ST_NOEXEC of statfs(2).
const stNoExec = 8
