package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// timeout is the time of a package. Half of what is left of it is how long a test waits
// (internal/proof/patience), so it is far above what any package takes.
const timeout = "-timeout=20m"

// first are the packages that take longest: they begin first, so that none of them is
// left alone at the end. They are the ones that `make fast` leaves out, unless a test of
// theirs has changed.
var first = []string{
	"./internal/proof/dashboard", "./internal/app", "./internal/proof/e2e", "./internal/box", "./internal/domain/pull",
	"./internal/proof/transcript", "./cmd/yardmaster",
}

// night is a part of the tests that is played at night, and in a check when what it tests
// has changed.
type night struct {
	packages []string // that have nothing else
	tests    string   // an expression for names of tests, of any package
	engine   bool     // it is the second database of app, pull and the transcripts
	ground   *regexp.Regexp
}

var nights = []night{
	{packages: []string{"yardmaster/internal/proof/frontdoor"},
		ground: regexp.MustCompile(`^(CONTRIBUTING\.md|Makefile|internal/(domain/template|proof/frontdoor)/)`)},
	{tests: "TestPictures|TestRecording", ground: regexp.MustCompile(`^(docs/pictures/|internal/proof/dashboard/pictures|cmd/yardmaster/recording)`)},
	{tests: "TestChaosOnPostgreSQL", ground: regexp.MustCompile(`^internal/(proof/chaos/|db/)`)},
	{tests: "TestDemoAtStandIn", ground: regexp.MustCompile(`^internal/proof/(demo|github|standin)/`)},
	{engine: true, ground: regexp.MustCompile(`^internal/db/|/store[^/]*\.go$`)},
}

// enginesEnv names the databases of app, pull and the transcripts (dbtest.Engines).
const enginesEnv = "YARDMASTER_ENGINES"

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
	end, err := surroundings(ctx, *atNight)
	if err != nil {
		return err
	}
	defer end()
	flags := []string{"-vet=off", "-count=1", timeout}
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
	c, err := changed(ctx, all, "check")
	if err != nil {
		return err
	}
	packages, skip, engines := day(all, c.files)
	if engines != "" {
		os.Setenv(enginesEnv, engines)
	}
	if skip != "" {
		flags = append(flags, "-skip=^("+skip+")$")
	}
	return test(ctx, slices.Concat(flags, []string{"--"}, first, packages))
}

// day is what is tested whenever: the packages, an expression for tests that are left to
// the night, and the database of those that leave one to it.
func day(all []pkg, files []string) (packages []string, skip, engines string) {
	left := map[string]bool{}
	var tests []string
	for _, n := range nights {
		if slices.ContainsFunc(files, n.ground.MatchString) {
			continue
		}
		for _, p := range n.packages {
			left[p] = true
		}
		if n.tests != "" {
			tests = append(tests, n.tests)
		}
		if n.engine {
			engines = "sqlite"
		}
	}
	for _, p := range all {
		if !left[p.ImportPath] && len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			packages = append(packages, p.ImportPath)
		}
	}
	return packages, strings.Join(tests, "|"), engines
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
			"./internal/proof/dashboard", "./internal/proof/e2e", "./cmd/yardmaster"})))
	}
	os.Setenv(enginesEnv, "postgres")
	return errors.Join(err, test(ctx, append(flags, "--", "./internal/app", "./internal/domain/pull", "./internal/proof/transcript")))
}

// fastSuite tests the packages that have changed and those that import one of them; of the
// ones that take long only the tests in files that have changed; the transcripts of
// domains that have changed, on one database; and in any case the rules of the tree.
func fastSuite(ctx context.Context, flags []string) error {
	os.Setenv(enginesEnv, "sqlite")
	all, err := list(ctx, "./...")
	if err != nil {
		return err
	}
	c, err := changed(ctx, all, "fast", "check")
	if err != nil {
		return err
	}
	long := map[string]bool{"yardmaster/internal/proof/frontdoor": true}
	for _, p := range first {
		long["yardmaster/"+strings.TrimPrefix(p, "./")] = true
	}
	packages := []string{"yardmaster/internal/proof/arch", "yardmaster/docs"}
	for _, p := range withImporters(all, c.packages) {
		if !long[p] {
			packages = append(packages, p)
		}
	}
	slices.Sort(packages)
	err = test(ctx, slices.Concat(flags, []string{"--"}, slices.Compact(packages)))
	for _, part := range partsOf(c.files, long) {
		fmt.Printf("of %s: %s\n", short(part.pkg), part.run)
		err = errors.Join(err, test(ctx, slices.Concat(flags, []string{"-run=" + part.run, "--", part.pkg})))
	}
	return err
}

// part is a package of which some tests are played.
type part struct{ pkg, run string }

var declares = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// partsOf returns the tests to play of the packages that take long: those of test files
// that have changed, and the transcripts of packages that have.
func partsOf(files []string, long map[string]bool) (out []part) {
	tests, nouns := map[string][]string{}, []string{}
	for _, f := range files {
		dir := path.Dir(f)
		if text, err := os.ReadFile(f); err == nil && strings.HasSuffix(f, "_test.go") && long["yardmaster/"+dir] {
			for _, m := range declares.FindAllSubmatch(text, -1) {
				if name := string(m[1]); name != "TestMain" && name != "TestTranscripts" {
					tests["yardmaster/"+dir] = append(tests["yardmaster/"+dir], name)
				}
			}
		}
		noun := strings.TrimSuffix(dir, "/testdata")
		if found, _ := filepath.Glob(noun + "/testdata/*.txtar"); len(found) > 0 {
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

// surroundings sets what tests are given: a seed that follows from what is tested, so that
// a run can be made again and no chance of another day refuses it; at night none, so that
// new walks are walked; and a temporary folder in memory, if there is one, because the
// tests write much that nobody keeps.
func surroundings(ctx context.Context, atNight bool) (end func(), err error) {
	if tree := git(ctx, "rev-parse", "HEAD^{tree}"); len(tree) > 12 && !atNight && os.Getenv(seedEnv) == "" {
		n, err := strconv.ParseUint(tree[:12], 16, 64)
		if err != nil {
			return nil, err
		}
		os.Setenv(seedEnv, strconv.FormatUint(n, 10))
	}
	const memory, space = "/dev/shm", 4 << 30
	var at syscall.Statfs_t
	if err := syscall.Statfs(memory, &at); err != nil || at.Bavail*uint64(at.Bsize) < space || at.Flags&stNoExec != 0 {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp(memory, "y")
	if err != nil {
		return func() {}, nil // it may belong to others; the disk does as well
	}
	// Agents of a box that runs as root are another user, who must get through.
	err = errors.Join(os.Chmod(dir, 0o711), builtElsewhere(ctx, dir, os.TempDir()), os.Setenv("TMPDIR", dir))
	if err != nil {
		return nil, err
	}
	return func() {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		os.RemoveAll(dir)
	}, nil
}

// builtElsewhere has go build in a folder on the disk, where test binaries have room. It is
// told by go's own file of settings, since t.TempDir takes the variable GOTMPDIR for itself.
func builtElsewhere(ctx context.Context, dir, at string) error {
	out, err := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), "env", "GOENV").Output()
	if err != nil {
		return err
	}
	had, err := os.ReadFile(strings.TrimSpace(string(out)))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	file := filepath.Join(dir, "goenv")
	text := fmt.Sprintf("%s\nGOTMPDIR=%s\n", strings.TrimSpace(string(had)), at)
	return errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Setenv("GOENV", file), os.Unsetenv("GOTMPDIR"))
}

// stNoExec is ST_NOEXEC of statfs(2).
const stNoExec = 8
