package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// grim match, as "package test", tests that are not tried again besides those whose file
// says so (see facts): what harms real processes and counts what was lost, and what holds
// a wall.
var grim = []string{
	`^internal/proof/chaos `, ` TestChaos`, ` TestEverythingAtOnce$`, ` TestEverythingKilledAgainAndAgain$`,
	`^internal/bus .*Flood`, `^internal/bus .*Asks`,
	`^internal/app .*Tenant`, `^internal/app .*Foreign`, `^internal/app .*Guarded`, `^internal/app .*Neighbours`,
	`^internal/box/sandbox `, `^internal/box/scrub `, `^internal/box/broker `, `^internal/seal `,
	`^internal/db .*Migrat`, `^internal/event/hashchain `, `^internal/api/idempotency `,
}

// walks are the imports of a test file that say that its tests walk at random.
var walks = regexp.MustCompile(`(?m)^(?:import)?\s*"(?:pgregory\.net/rapid|yardmaster/internal/proof/chance)"`)

var declares = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// testFile is a file of tests.
type testFile struct {
	dir, name, text string
	tests           []string // by name, without TestMain
}

// testFiles reads those of the tree.
func testFiles(root string) (out []testFile, err error) {
	for _, top := range []string{"cmd", "internal", "docs"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(file string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules"):
				return filepath.SkipDir
			case !strings.HasSuffix(file, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, file)
			rel = filepath.ToSlash(rel)
			out = append(out, testFile{path.Dir(rel), path.Base(rel), string(text), testsOf(string(text))})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the tests: %w", err)
		}
	}
	return out, nil
}

func testsOf(text string) (out []string) {
	for _, m := range declares.FindAllStringSubmatch(text, -1) {
		if m[1] != "TestMain" {
			out = append(out, m[1])
		}
	}
	return out
}

// facts tells which tests are not tried again, because what they find is a fact, however
// seldom it is found: those of hostile suites, random walks and models, and what is grim.
// The seed of a walk is in its output.
func facts(root string) (is func(test string) bool, err error) {
	all, err := testFiles(root)
	if err != nil {
		return nil, err
	}
	found, more := map[string]bool{}, regexp.MustCompile(strings.Join(grim, "|"))
	for _, f := range all {
		if !strings.Contains(f.name, "hostile") && !walks.MatchString(f.text) {
			continue
		}
		for _, t := range f.tests {
			found[f.dir+" "+t] = true
		}
	}
	return func(test string) bool {
		dir, name, _ := strings.Cut(test, " ")
		name, _, _ = strings.Cut(name, "/")
		return found[dir+" "+name] || more.MatchString(test)
	}, nil
}
