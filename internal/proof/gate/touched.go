package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// change is what differs from a commit: its files, and the packages they belong to.
type change struct {
	files    []string // by their path from the root of the repository
	packages []string // import paths, sorted
}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
}

// touched prints the packages that changed since the newest commit that has passed one of
// the runs (-since), in the tree as it lies there: of those that its arguments name, if
// there are any. A + before a pattern of packages names some that are printed in any case.
func touched(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("gate touched", flag.ContinueOnError)
	runs := set.String("since", "", "names of runs, separated by commas")
	if err := set.Parse(args); err != nil {
		return err
	}
	all, err := list(ctx, "./...")
	if err != nil {
		return err
	}
	base, err := since(ctx, strings.Split(*runs, ",")...)
	if err != nil {
		return err
	}
	c, err := changed(ctx, all, base)
	if err != nil {
		return err
	}
	out := c.packages
	if of := set.Args(); len(of) > 0 {
		out, err = within(ctx, out, of)
		if err != nil {
			return err
		}
	}
	if len(out) > 0 {
		fmt.Println(strings.Join(out, "\n"))
	}
	return nil
}

// enginesSince prints the databases on which tests that ask are to play, with what has changed since
// the newest commit that has passed one of the runs (-since).
func enginesSince(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("gate engines", flag.ContinueOnError)
	runs := set.String("since", "", "names of runs, separated by commas")
	if err := set.Parse(args); err != nil {
		return err
	}
	base, err := since(ctx, strings.Split(*runs, ",")...)
	if err != nil {
		return err
	}
	c, err := changed(ctx, nil, base)
	if err != nil {
		return err
	}
	fmt.Println(engines(c.files))
	return nil
}

// within returns the packages that match one of the patterns, and all that match one
// with a + before it.
func within(ctx context.Context, packages, patterns []string) (out []string, err error) {
	for _, p := range patterns {
		bare, always := strings.CutPrefix(p, "+")
		found, err := list(ctx, bare)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			if always || slices.Contains(packages, f.ImportPath) {
				out = append(out, f.ImportPath)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// changed compares the tree with a commit.
func changed(ctx context.Context, all []pkg, base string) (c change, err error) {
	top, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return c, err
	}
	differ, err := git(ctx, "-C", top, "diff", "--name-only", "--no-renames", base)
	if err != nil {
		return c, err
	}
	fresh, err := git(ctx, "-C", top, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return c, err
	}
	c.files = slices.DeleteFunc(strings.Split(differ+"\n"+fresh, "\n"), func(s string) bool { return s == "" })
	slices.Sort(c.files)
	c.files = slices.Compact(c.files)
	by := map[string]string{}
	for _, p := range all {
		rel, err := filepath.Rel(top, p.Dir)
		if err != nil {
			return c, err
		}
		by[filepath.ToSlash(rel)] = p.ImportPath
	}
	for _, f := range c.files {
		// What a package embeds, or its tests read, lies in its folder or below it.
		for dir := path.Dir(f); dir != "."; dir = path.Dir(dir) {
			if by[dir] != "" {
				c.packages = append(c.packages, by[dir])
				break
			}
		}
	}
	if slices.Contains(c.files, "go.mod") || slices.Contains(c.files, "go.sum") {
		for _, p := range all { // each may be another
			c.packages = append(c.packages, p.ImportPath)
		}
	}
	slices.Sort(c.packages)
	c.packages = slices.Compact(c.packages)
	return c, nil
}

// withImporters adds the packages that import one of the given, or whose tests do.
func withImporters(all []pkg, given []string) []string {
	out := slices.Clone(given)
	for _, p := range all {
		for _, i := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if slices.Contains(given, i) {
				out = append(out, p.ImportPath)
				break
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// list asks go for packages.
func list(ctx context.Context, patterns ...string) (out []pkg, err error) {
	cmd := command(ctx, goProgram(), append([]string{"list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles"}, patterns...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", strings.Join(patterns, " "), err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p pkg
		switch err := d.Decode(&p); err {
		case nil:
			out = append(out, p)
		case io.EOF:
			return out, nil
		default:
			return nil, err
		}
	}
}
