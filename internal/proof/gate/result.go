package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// result is what became of a test: of a test function with its subtests, or of a
// subtest that can be played by itself (see depth). One without a name is of its package:
// the build, TestMain, and what no test is to blame for.
type result struct {
	pkg, name string
	state     string // pass, fail or skip; empty for one that did not end
	took      time.Duration
	out       bytes.Buffer
}

func (r *result) String() string { return strings.TrimSpace(short(r.pkg) + " " + r.name) }
func (r *result) fine() bool     { return r.state == "pass" || r.state == "skip" }

// short is a package as people call it.
func short(pkg string) string { return strings.TrimPrefix(pkg, "yardmaster/") }

// depth is how many parts of a test's name make something that can be tried by itself.
// The transcripts of a package depend on nothing but their own server.
func depth(pkg, name string) int {
	if strings.HasSuffix(pkg, "internal/proof/transcript") && strings.HasPrefix(name, "TestTranscripts/") {
		return 3
	}
	return 1
}

// root is the name up to the depth of its test.
func root(pkg, name string) string {
	parts := strings.Split(name, "/")
	return strings.Join(parts[:min(len(parts), depth(pkg, name))], "/")
}

// only is the expression with which go test -run plays the test alone.
func only(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// results are those of one go test.
type results struct {
	of      map[string]*result // by package and name
	passed  int                // tests, with their subtests
	skipped int
	ok      bool // go test has nothing to complain of
}

func (rs *results) get(pkg, name string) *result {
	key := pkg + " " + name
	if rs.of[key] == nil {
		rs.of[key] = &result{pkg: pkg, name: name}
	}
	return rs.of[key]
}

// line is a line of go test -json, and of go build -json within it.
type line struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64 // seconds
}

// unwatched compiles SQLite and the C library below it, both translated from C, without the
// race detector: their memory is not Go's, which is all it watches, and with it a statement
// takes nine times as long. Their driver is watched.
var unwatched = []string{"-gcflags=modernc.org/sqlite/lib=-race=false", "-gcflags=modernc.org/libc/...=-race=false"}

// goTest runs go test and returns what became of the tests. It writes a line for each
// package that ends, and the output of each test that fails when it does.
func goTest(ctx context.Context, w io.Writer, flags, packages []string) (*results, error) {
	var env []string
	if slices.Contains(flags, "-race") {
		flags = slices.Concat(unwatched, flags)
		env = append(os.Environ(), "CGO_ENABLED=1") // the race detector needs C
	}
	cmd := command(ctx, goProgram(), slices.Concat([]string{"test"}, flags, []string{"-json"}, packages)...)
	cmd.Stderr, cmd.Env = os.Stderr, env
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	rs := &results{of: map[string]*result{}}
	for in := bufio.NewReader(pipe); ; {
		text, err := in.ReadBytes('\n')
		if len(text) > 0 {
			rs.read(w, text)
		}
		if err != nil {
			break
		}
	}
	rs.ok = cmd.Wait() == nil
	return rs, ctx.Err()
}

// read takes in a line of go test -json.
func (rs *results) read(w io.Writer, text []byte) {
	var l line
	if json.Unmarshal(text, &l) != nil {
		_, _ = w.Write(text) // a word of go itself
		return
	}
	pkg := cmp.Or(l.Package, l.ImportPath) // the second is of a build
	pkg, _, _ = strings.Cut(pkg, " ")
	name := root(pkg, l.Test)
	r := rs.get(pkg, name)
	r.out.WriteString(l.Output)
	if l.FailedBuild != "" {
		built, _, _ := strings.Cut(l.FailedBuild, " ")
		r.out.WriteString(rs.get(built, "").out.String())
	}
	switch l.Action {
	case "pass", "fail", "skip":
	default:
		return
	}
	if l.Test != "" {
		switch l.Action {
		case "pass":
			rs.passed++
		case "skip":
			rs.skipped++
		}
	}
	if l.Test != name {
		return // a part of the test
	}
	r.state, r.took = l.Action, time.Duration(l.Elapsed*float64(time.Second))
	switch {
	case name == "" && l.Action != "skip": // a package without tests
		fmt.Fprintf(w, "%-4s %7.1f s  %s\n", l.Action, l.Elapsed, short(pkg))
	case name != "" && l.Action == "fail":
		fmt.Fprintf(w, "--- %s failed\n%s", r, r.out.String())
	}
}

// grave is output after which nothing of a package is tried again: the process is
// broken, not late.
var grave = regexp.MustCompile(`(?m)WARNING: DATA RACE|^panic: |^fatal error: |\[signal SIG`)

// verdict says why a test that failed may not be tried again; empty if it may.
type verdict struct {
	*result
	why string
}

// failures returns the tests that failed, and the packages that failed for no test.
// Tests that never names are not tried again.
func (rs *results) failures(never func(string) bool) (out []verdict) {
	blamed, broken := map[string]bool{}, map[string]bool{}
	for _, r := range rs.of {
		blamed[r.pkg] = blamed[r.pkg] || r.name != "" && !r.fine()
		broken[r.pkg] = broken[r.pkg] || grave.Match(r.out.Bytes())
	}
	for _, r := range rs.of {
		v := verdict{result: r}
		switch {
		case r.fine(), r.name == "" && (r.state == "" || blamed[r.pkg]), rs.above(r):
			continue
		case r.name == "":
			v.why = "it failed outside of its tests"
		case broken[r.pkg]:
			v.why = "a race or a panic in its package"
		case r.state == "": // the tests behind it did not begin
			v.why = "it did not end"
		case never(r.String()):
			v.why = "it is never tried again"
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b verdict) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// above tells whether a test failed only because a part of it did that is tried by
// itself, such as TestTranscripts.
func (rs *results) above(r *result) bool {
	for _, part := range rs.of {
		if part.pkg == r.pkg && r.name != "" && strings.HasPrefix(part.name, r.name+"/") && !part.fine() {
			return true
		}
	}
	return false
}

var noise = regexp.MustCompile(`^(=== |--- |FAIL|PASS|ok\s|exit status|goroutine |\s*$)`)

// place is the place of a failure as package testing writes it.
var place = regexp.MustCompile(`^\s*[a-zA-Z0-9_./-]+_test\.go:\d+: `)

// first is the line of the output that says most, as far as one can know: the first
// with a place in a test, or else with a colon.
func (r *result) first() string {
	other := ""
	for line := range strings.Lines(r.out.String()) {
		line = strings.TrimRight(line, "\n")
		switch {
		case noise.MatchString(line):
		case place.MatchString(line):
			return clip(strings.TrimSpace(line))
		case other == "" && strings.Contains(line, ": "):
			other = clip(strings.TrimSpace(line))
		}
	}
	return cmp.Or(other, "(it says nothing)")
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + " …"
	}
	return s
}

// slowest names the packages that took longest.
func (rs *results) slowest(n int) string {
	var all []*result
	for _, r := range rs.of {
		if r.name == "" && r.took > 0 {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *result) int { return cmp.Compare(b.took, a.took) })
	var out []string
	for _, r := range all[:min(n, len(all))] {
		out = append(out, fmt.Sprintf("%s %.0f s", short(r.pkg), r.took.Seconds()))
	}
	return strings.Join(out, ", ")
}

// said keeps what is written to it beside passing it on: the last lines of a stage.
type said struct {
	mu   sync.Mutex
	to   io.Writer
	last []string
	part string
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.part += string(b)
	for {
		line, rest, ok := strings.Cut(s.part, "\n")
		if !ok {
			break
		}
		s.part = rest
		if s.last = append(s.last, line); len(s.last) > 15 {
			s.last = s.last[1:]
		}
	}
	return s.to.Write(b)
}
