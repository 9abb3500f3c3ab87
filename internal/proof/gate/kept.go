package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"yardmaster/internal/proof/cache"
)

// keep adds a line to a table of the user's cache folder.
func keep(name string, fields ...string) error {
	path, err := cache.Dir(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	for i, f := range fields {
		fields[i] = strings.Join(strings.Fields(f), " ")
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strings.Join(fields, "\t") + "\n") // whole, or not at all
	return err
}

// treePassed is the table passed.tsv of the repository, for machines that know nothing yet.
const treePassed = ".ci/passed.tsv"

// kept reads such a table; one that is not there has no lines.
func kept(name string) (rows [][]string, err error) {
	path, err := cache.Dir(name)
	if err != nil {
		return nil, err
	}
	return table(path)
}

// table reads lines of fields with tabs between; a file that is not there has none.
func table(path string) (rows [][]string, err error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows, err
}

func today() string { return time.Now().Format(time.DateOnly) }

// command is a program with all that it starts, which ends when ctx does.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// goProgram is the go command of the Makefile.
func goProgram() string { return cmp.Or(os.Getenv("GO"), "go") }

// git returns the output of git without its last line break.
func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimRight(string(out), "\n"), nil
}

// commit is the commit that is checked out, and what stands for it where there is none.
func commit(ctx context.Context) string {
	if c, err := git(ctx, "rev-parse", "HEAD"); err == nil {
		return c
	}
	return "none"
}

// lies returns the commit that is checked out if it is what lies in the tree, and "" if
// anything else does, or nobody can tell.
func lies(ctx context.Context) string {
	if changes, err := git(ctx, "status", "--porcelain"); err != nil || changes != "" {
		return ""
	}
	c, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return ""
	}
	return c
}

// passed returns the newest ancestor of HEAD that has passed one of the runs, here or by the
// word of the repository; "" if none is known.
func passed(ctx context.Context, runs ...string) (string, error) {
	row, err := passedRow(ctx, runs...)
	if err != nil || row == nil {
		return "", err
	}
	return row[0], nil
}

// passedRow is the line of that ancestor.
func passedRow(ctx context.Context, runs ...string) ([]string, error) {
	rows, err := kept("passed.tsv")
	if err != nil {
		return nil, err
	}
	told, err := table(treePassed)
	if err != nil {
		return nil, err
	}
	known := map[string][]string{}
	for _, row := range slices.Concat(rows, told) {
		if len(row) > 2 && slices.Contains(runs, row[2]) {
			known[row[0]] = row
		}
	}
	all, err := git(ctx, "rev-list", "--max-count=2000", "HEAD")
	if err != nil {
		return nil, err
	}
	for _, c := range strings.Fields(all) {
		if known[c] != nil {
			return known[c], nil
		}
	}
	return nil, nil
}

// tell writes into the repository what this machine knows to have passed: of each run the
// newest ancestor of HEAD. It is committed with the next change, so that a new machine
// compares with it.
func tell(ctx context.Context, _ []string) error {
	var text strings.Builder
	for _, run := range []string{"check", "race-changed", "nightly"} {
		row, err := passedRow(ctx, run)
		if err != nil {
			return err
		}
		if row != nil {
			text.WriteString(strings.Join(row, "\t") + "\n")
		}
	}
	return os.WriteFile(treePassed, []byte(text.String()), 0o644)
}

// since is passed, or else the last commit that is a day older than HEAD, or the first of
// all: where nothing is known, what was done lately counts as changed.
func since(ctx context.Context, runs ...string) (string, error) {
	if c, err := passed(ctx, runs...); err != nil || c != "" {
		return c, err
	}
	text, err := git(ctx, "log", "-1", "--format=%cI")
	if err != nil {
		return "", err
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", err
	}
	c, err := git(ctx, "rev-list", "-1", "--before="+at.Add(-24*time.Hour).Format(time.RFC3339), "HEAD")
	if err != nil || c != "" {
		return c, err
	}
	first, err := git(ctx, "rev-list", "--max-parents=0", "HEAD")
	first, _, _ = strings.Cut(first, "\n")
	return first, err
}
