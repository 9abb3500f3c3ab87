package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// wordsEnv names the file in which a stage leaves its last lines.
const wordsEnv = "YARDMASTER_GATE_WORDS"

// stage is what became of one.
type stage struct {
	name string
	took time.Duration
	ok   bool
}

// stages makes each target of the Makefile, until one fails; with -all it makes all of
// them. Its last lines are what each took, which tests were flaky or failed, and how many
// stages passed. If all did on a clean tree, it remembers that this commit has passed.
func stages(ctx context.Context, args []string) error {
	all := len(args) > 0 && args[0] == "-all"
	if all {
		args = args[1:]
	}
	if len(args) < 2 {
		return errors.New("say: gate stages [-all] NAME STAGE...")
	}
	dir, err := os.MkdirTemp("", "gate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	name, began, of := args[0], time.Now(), lies(ctx)
	if name != "nightly" {
		if err := setSeed(ctx); err != nil {
			return err
		}
	}
	var done []stage
	var words, last string
	failed := 0
	for _, target := range args[1:] {
		fmt.Printf("== %s\n", target)
		s := stage{name: target}
		left := filepath.Join(dir, target)
		tail := &said{to: os.Stdout}
		cmd := command(ctx, cmp.Or(os.Getenv("MAKE"), "make"), "--no-print-directory", target)
		cmd.Env = append(os.Environ(), wordsEnv+"="+left)
		cmd.Stdout, cmd.Stderr = tail, tail
		at := time.Now()
		s.ok = cmd.Run() == nil
		s.took = time.Since(at)
		done = append(done, s)
		text, _ := os.ReadFile(left)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "FLAKY ") || strings.HasPrefix(line, "FAIL ") || strings.HasPrefix(line, "     ") {
				words += line
			}
		}
		if !s.ok {
			failed++
			if len(text) == 0 {
				last += fmt.Sprintf("FAIL   %s\n         %s\n", target, strings.Join(tail.last, "\n         "))
			}
		}
		if ctx.Err() != nil || !s.ok && !all {
			break
		}
	}
	took := time.Since(began)
	fmt.Printf("\n%s", times(done))
	fmt.Print(last, words)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed > 0 {
		fmt.Printf("gate: %s refuses this after %s\n", name, minutes(took))
	} else {
		fmt.Printf("gate: %s passes in %s\n", name, minutes(took))
	}
	fmt.Printf("%d passed, %d failed\n", len(done)-failed, failed)
	if failed > 0 {
		return errRefused
	}
	if of == "" || of != lies(ctx) {
		return nil // it is not known what has passed
	}
	return keep("passed.tsv", of, today(), name, fmt.Sprintf("%.1f", took.Minutes()),
		fmt.Sprint(strings.Count(words, "FLAKY ")))
}

func minutes(d time.Duration) string {
	return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
}

// times says what each stage took.
func times(done []stage) string {
	var b strings.Builder
	for _, s := range done {
		fmt.Fprintf(&b, "%-4s %7.1f s  %s\n", map[bool]string{true: "ok", false: "FAIL"}[s.ok], s.took.Seconds(), s.name)
	}
	return b.String()
}
