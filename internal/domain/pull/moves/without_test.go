package moves

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// withoutEnv is the number of a line, from 1, that the table of this process lacks.
const withoutEnv = "MOVES_WITHOUT_LINE"

// TestMain leaves a line of the table out, if TestEachLineIsNeeded says so.
func TestMain(m *testing.M) {
	if n, err := strconv.Atoi(os.Getenv(withoutEnv)); err == nil {
		lines = slices.Delete(lines, n-1, n)
	}
	os.Exit(m.Run())
}

// TestEachLineIsNeeded holds that the tests of this package notice each line that the table
// lacks, apart from the test of the page and from the last line, without which Next panics.
// A line that no test misses may be wrong and nobody learns of it.
func TestEachLineIsNeeded(t *testing.T) {
	t.Parallel()
	if os.Getenv(withoutEnv) != "" {
		return // this is a process without a line
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The tests that take long come last, and most lines do not need them.
	tries := [][]string{
		{"-test.skip=^(TestPage|TestEachLineIsNeeded|TestReach|TestValidIsClosed|TestNoLoop|TestKnowingMoreMergesNothing|TestNewsEndsNoWord|" +
			"TestWaitsEnd|TestCallsHelp|TestEachQuestionEnds|TestSpentThenMendedThenFound)$"},
		{"-test.run=^(TestWaitsEnd|TestCallsHelp|TestSpentThenMendedThenFound)$"},
		{"-test.run=^(TestEachQuestionEnds|TestNewsEndsNoWord|TestKnowingMoreMergesNothing)$"},
		{"-test.run=^TestNoLoop$"},
		{"-test.run=^(TestReach|TestValidIsClosed)$"},
	}
	for n := range len(lines) - 1 {
		noticed := -1
		for i, args := range tries {
			cmd := exec.CommandContext(t.Context(), self, append([]string{"-test.failfast", "-test.parallel=1"}, args...)...)
			cmd.Env = append(os.Environ(), withoutEnv+"="+strconv.Itoa(n+1))
			out, err := cmd.CombinedOutput()
			exit, ended := errors.AsType[*exec.ExitError](err)
			if err != nil && !ended {
				t.Fatal(err)
			}
			if ended && (exit.ExitCode() == 1 && strings.Contains(string(out), "--- FAIL: ") || strings.Contains(string(out), "panic: ")) {
				noticed = i
				break
			}
		}
		if noticed < 0 {
			t.Errorf("nothing is missed without line %d: %s", n+1, lines[n].When)
		}
	}
}
