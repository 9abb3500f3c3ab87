package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// kept reads such a table; one that is not there has no lines.
func kept(name string) (rows [][]string, err error) {
	path, err := cache.Dir(name)
	if err != nil {
		return nil, err
	}
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

// git returns the output of git without its last line break; "" if it fails.
func git(ctx context.Context, args ...string) string {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(out), "\n")
}

// commit is the commit that is checked out; "none" outside of a repository.
func commit(ctx context.Context) string {
	if c := git(ctx, "rev-parse", "HEAD"); c != "" {
		return c
	}
	return "none"
}

// clean tells whether what is checked out is what is committed.
func clean(ctx context.Context) bool {
	return git(ctx, "rev-parse", "HEAD") != "" && git(ctx, "status", "--porcelain") == ""
}

// since returns the newest ancestor of HEAD that has passed one of the runs; if none is
// known, the last commit that is a day older than HEAD, or the first of all.
func since(ctx context.Context, runs ...string) (string, error) {
	rows, err := kept("passed.tsv")
	if err != nil {
		return "", err
	}
	passed := map[string]bool{}
	for _, row := range rows {
		for _, run := range runs {
			if len(row) > 2 && row[2] == run {
				passed[row[0]] = true
			}
		}
	}
	for _, c := range strings.Fields(git(ctx, "rev-list", "--max-count=2000", "HEAD")) {
		if passed[c] {
			return c, nil
		}
	}
	if at, err := time.Parse(time.RFC3339, git(ctx, "log", "-1", "--format=%cI")); err == nil {
		if c := git(ctx, "rev-list", "-1", "--before="+at.Add(-24*time.Hour).Format(time.RFC3339), "HEAD"); c != "" {
			return c, nil
		}
	}
	first, _, _ := strings.Cut(git(ctx, "rev-list", "--max-parents=0", "HEAD"), "\n")
	return first, nil
}
