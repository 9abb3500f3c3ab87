package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// most is how many tests of a run may be tried once more. Where more fail, it is no chance.
const most = 3

// some tests the packages that are named.
//
//	gate test [-day] [flags of go test] -- packages
//
// By day, random walks begin as the commit says.
func some(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "-day" {
		args = args[1:]
		if err := setSeed(ctx); err != nil {
			return err
		}
	}
	end, err := inMemory(ctx)
	if err != nil {
		return err
	}
	defer end()
	return test(ctx, args)
}

// test runs go test and tries what failed once more, alone, when all else has ended: what
// passes then is told as flaky. It refuses what failed twice, what may not be tried again,
// and a run in which more than three tests failed.
func test(ctx context.Context, args []string) error {
	cut := slices.Index(args, "--")
	if cut < 0 {
		return errors.New("say: gate test [-day] [flags of go test] -- packages")
	}
	flags, packages := args[:cut], args[cut+1:]
	if len(packages) == 0 {
		return say("there is nothing to test\n0 passed, 0 failed\n")
	}
	never, err := facts(".")
	if err != nil {
		return err
	}
	o, err := try(ctx, os.Stdout, never, flags, packages)
	if err != nil {
		return err
	}
	for _, f := range o.flaky {
		if err := keep("flaky.tsv", f.String(), today(), commit(ctx), f.first()); err != nil {
			return err
		}
	}
	if err := say(o.String()); err != nil {
		return err
	}
	if len(o.failed) > 0 {
		return errRefused
	}
	return nil
}

// outcome is what became of a run in the end.
type outcome struct {
	*results
	flaky, failed []verdict
}

// String is the last lines of the run.
func (o outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "slowest: %s\n", o.slowest(8))
	for _, v := range o.flaky {
		fmt.Fprintf(&b, "FLAKY  %s\n         %s\n", v, v.first())
	}
	for _, v := range o.failed {
		fmt.Fprintf(&b, "FAIL   %s (%s)\n         %s\n", v, v.why, v.first())
	}
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped\n", o.passed+len(o.flaky), len(o.failed), o.skipped)
	return b.String()
}

// try runs go test, and once more what failed. Tests that never names are not tried again.
func try(ctx context.Context, w io.Writer, never func(string) bool, flags, packages []string) (o outcome, err error) {
	if o.results, err = goTest(ctx, w, flags, packages); err != nil {
		return o, err
	}
	bad := o.failures(never)
	for _, v := range bad {
		if v.why == "" && len(bad) > most {
			v.why = fmt.Sprintf("%d failed, more than %d", len(bad), most)
		}
		if v.why == "" {
			passes, err := again(ctx, w, never, v.result, flags)
			if err != nil {
				return o, err
			}
			if passes {
				o.flaky = append(o.flaky, v)
				continue
			}
			v.why = "it failed twice"
		}
		o.failed = append(o.failed, v)
	}
	if len(bad) == 0 && !o.ok {
		o.failed = append(o.failed, verdict{&result{pkg: "go test"}, "it failed, and no test did"})
	}
	return o, nil
}

// again tells whether a test passes alone. It has run then: a pattern that plays no test
// passes nothing.
func again(ctx context.Context, w io.Writer, never func(string) bool, r *result, flags []string) (bool, error) {
	fmt.Fprintf(w, "--- %s once more, alone\n", r)
	rs, err := goTest(ctx, io.Discard, slices.Concat(flags, []string{"-count=1", "-run", only(r.name), "-skip", "^$"}), []string{r.pkg})
	if err != nil {
		return false, err
	}
	twice := rs.get(r.pkg, r.name)
	fmt.Fprint(w, twice.out.String())
	return rs.ok && twice.state == "pass" && len(rs.failures(never)) == 0, nil
}

// say prints the last lines of a run, and leaves them to the stages that it is one of.
func say(text string) error {
	fmt.Print(text)
	path := os.Getenv(wordsEnv)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
