// Gate runs what a change must pass, and says in its last lines what did not.
//
//	gate stages NAME STAGE...         make each stage, until one fails; remember who passed
//	gate test [-day] [FLAGS] -- PACKAGES
//	                                  go test, with one more try for a test that failed
//	gate suite [-fast|-night]         the tests of all packages, of what changed, of the night
//	gate touched [PATTERN...]         the packages that changed since the last pass
//	gate engines -since RUN,...       the databases of tests that ask, as for suite
//	gate tell                         write into .ci/passed.tsv what this machine knows to have passed
//
// It is run by the Makefile. What it remembers is in the folder yardmaster of the user's
// cache: passed.tsv (commit, day, which, minutes, flaky tests) and flaky.tsv (test, day,
// commit, first line of the failure).
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// errRefused is the end of a run that has said itself what failed.
var errRefused = errors.New("refused")

var commands = map[string]func(context.Context, []string) error{
	"stages": stages, "suite": suite, "test": some, "touched": touched, "engines": enginesSince, "tell": tell,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := errors.New("say one of: stages, suite, test, touched, engines, tell")
	if len(os.Args) > 1 && commands[os.Args[1]] != nil {
		err = commands[os.Args[1]](ctx, os.Args[2:])
	}
	if err == nil {
		return
	}
	if !errors.Is(err, errRefused) {
		fmt.Fprintln(os.Stderr, "gate:", err)
	}
	os.Exit(1)
}
