// Package flake recognises failures of jobs again. It reduces the log of a failed job to
// fingerprints that stay equal when times, addresses and line numbers differ, and judges
// by what was seen before whether the change under test caused a failure.
//
// The package has no state: package ci stores fingerprints and asks.
//
//   - flake.go: jobs and their failures
//   - clean.go, equal.go: logs without what differs between two runs
//   - parse.go, parse_more.go, junit.go: the tests that failed
//   - evidence.go: what is known of a failure
//   - verdict.go: the verdict
package flake

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/lazy"
)

// Limits of a failure.
const (
	MaxLog     = 256 << 10 // bytes of a log that are read, from its end
	MaxPrints  = 50        // fingerprints of a failure; a failure with more has the one fingerprint Many
	MaxTail    = 64 << 10  // bytes of a log that an agent is given
	MaxExcerpt = 4 << 10   // bytes of a log that are stored
)

// Class is the sort of a failure.
type Class string

// Classes of failures.
const (
	ClassTest  Class = "test"  // the log names tests that failed
	ClassBuild Class = "build" // a build, type or lint error
	ClassInfra Class = "infra" // the machine or a mirror of packages failed
	ClassOther Class = "other"
)

// Job is a failed job of a code host, or a failed check of a box.
type Job struct {
	Repo     string            // id of the repository: fingerprints of two repositories differ
	Name     string            // with its matrix part, such as "build (ubuntu, 1.26)"
	Step     string            // the step that failed; may be empty
	End      codehost.CheckEnd // what it was, if no plain failure
	ExitCode *int              // nil: unknown
	Log      string
	JUnit    [][]byte // JUnit files of the job; they take the place of the log for the names of tests
}

// Print is one fingerprint of a failure and what it was made of.
type Print struct {
	FP    string // 64 hexadecimal digits
	Test  string // id of the test; "" if no test is known
	Error string // the first error, without what differs between two runs; at most 300 bytes
	Scope string
	Files []string // paths of the test and of the message, as far as the log names them
	Many  bool     // the one fingerprint of a failure with more than MaxPrints tests
}

// Failure is what a failed job is recognised by.
type Failure struct {
	Class  Class
	Prints []Print // sorted by FP; at least 1, at most MaxPrints
	Tail   string  // the end of the failed step, cleaned; at most MaxTail bytes
}

// Excerpt is the end of the step that is stored, at most MaxExcerpt bytes.
func (f Failure) Excerpt() string { return tail(f.Tail, MaxExcerpt) }

// Has tells whether a failure has a fingerprint.
func (f Failure) Has(fp string) bool {
	return slices.ContainsFunc(f.Prints, func(p Print) bool { return p.FP == fp })
}

// matrix is the part of a job's name that its matrix added.
var matrix = lazy.New(`\s*\([^()]*\)\s*$`)

// failed is a test that failed, as a parser read it.
type failed struct {
	id, message string
	files       []string
}

// Read reduces a failed job to its failure. It reads at most the last MaxLog bytes of the
// log, in time that grows with their number.
func Read(j Job) Failure {
	text := step(tail(strings.ToValidUTF8(j.Log, "\uFFFD"), MaxLog))
	out := Failure{Class: ClassOther, Tail: tail(text, MaxTail)}
	whole := j.Name
	if j.Step != "" {
		whole += " / " + j.Step
	}
	alone := func(message string, files ...string) Failure {
		out.Prints = []Print{j.print(whole, "", message, files)}
		return out
	}
	switch j.End {
	case codehost.EndTimedOut:
		return alone("<timeout>")
	case codehost.EndCancelled:
		return alone("<cancelled>")
	}
	lines := strings.Split(text, "\n")
	tests := readJUnit(j.JUnit)
	if len(tests) == 0 {
		tests = parse(lines)
	}
	infra := infrastructure(lines, len(tests) == 0)
	if infra != "" {
		out.Class = ClassInfra
	}
	if len(tests) == 0 {
		message := cmp.Or(infra, firstError(lines))
		if message == "" && j.ExitCode != nil {
			message = fmt.Sprintf("<exit%d>", *j.ExitCode)
		}
		if out.Class == ClassOther && compiles.MatchString(message) {
			out.Class = ClassBuild
		}
		return alone(message, filesIn(message)...)
	}
	if out.Class == ClassOther {
		out.Class = ClassTest
	}
	scope := matrix.ReplaceAllString(j.Name, "")
	if len(tests) > MaxPrints {
		p := j.print(scope, "", "<many>", nil)
		p.Many = true
		out.Prints = []Print{p}
		return out
	}
	general := ""
	for _, t := range tests {
		if t.message == "" {
			if general == "" {
				general = firstError(lines)
			}
			t.message = general
		}
		if t.files == nil {
			t.files = filesIn(t.message)
		}
		p := j.print(scope, testID(t.id), t.message, t.files)
		if !out.Has(p.FP) {
			out.Prints = append(out.Prints, p)
		}
	}
	slices.SortFunc(out.Prints, func(a, b Print) int { return cmp.Compare(a.FP, b.FP) })
	return out
}

// print makes the fingerprint of a message.
func (j Job) print(scope, test, message string, files []string) Print {
	p := Print{Test: test, Error: Equal(message), Scope: scope}
	for _, f := range files {
		if f = clearWorkspace(f); f != "" && !slices.Contains(p.Files, f) {
			p.Files = append(p.Files, f)
		}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"v1", j.Repo, scope, test, p.Error}, "\x00")))
	p.FP = hex.EncodeToString(sum[:])
	return p
}

// tail is the end of a text, at most n bytes of whole characters.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}
