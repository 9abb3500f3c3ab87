package gitfolder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"yardmaster/internal/codehost"
)

const (
	mostLine = 500      // bytes of a line that Search answers
	mostRead = 32 << 20 // bytes of git's output that Tree and Search read
)

// Tree answers as codehost.Searcher says.
func (dir Folder) Tree(ctx context.Context, rev string) (codehost.Tree, error) {
	commit, err := dir.resolveOne(ctx, rev)
	if err != nil {
		return codehost.Tree{}, err
	}
	t := codehost.Tree{Commit: commit, Files: map[string]string{}}
	err = dir.records(ctx, []string{"ls-tree", "-r", "-z", commit}, func(r *bufio.Reader) error {
		record, err := r.ReadString(0)
		if err != nil {
			return err
		}
		about, name, _ := strings.Cut(strings.TrimSuffix(record, "\x00"), "\t") // "<mode> <type> <sha>"
		f := strings.Fields(about)
		if len(f) != 3 || f[0] != "100644" && f[0] != "100755" {
			return nil
		}
		if t.Cut = len(t.Files) == codehost.MaxTreeFiles; t.Cut {
			return errEnough
		}
		t.Files[name] = f[2]
		return nil
	})
	if errors.Is(err, errEnough) {
		t.Cut, err = true, nil
	}
	return t, err
}

// Search answers as codehost.Searcher says.
func (dir Folder) Search(ctx context.Context, rev string, words []string) (codehost.Found, error) {
	commit, err := dir.resolveOne(ctx, rev)
	if err != nil || len(words) == 0 {
		return codehost.Found{Commit: commit}, err
	}
	out := codehost.Found{Commit: commit}
	args := []string{"grep", "-I", "-i", "-n", "-z", "-F", "--full-name", "--no-color", "--no-textconv"}
	for _, w := range words {
		args = append(args, "-e", w)
	}
	err = dir.records(ctx, append(args, commit, "--"), func(r *bufio.Reader) error {
		l, err := foundLine(r, commit)
		if err != nil {
			return err
		}
		if len(out.Lines) == codehost.MaxFoundLines {
			return errEnough
		}
		out.Lines = append(out.Lines, l)
		return nil
	})
	switch {
	case Exited(err, 1): // nothing has one of the words
		err = nil
	case errors.Is(err, errEnough), errors.Is(err, context.DeadlineExceeded):
		out.Cut, err = true, nil
	}
	return out, err
}

// Renames answers as codehost.Searcher says.
func (dir Folder) Renames(ctx context.Context, from, to string) (map[string]string, error) {
	before, err := dir.resolveOne(ctx, from)
	if err != nil {
		return nil, err
	}
	after, err := dir.resolveOne(ctx, to)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	args := []string{"diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--name-status", before, after}
	err = dir.records(ctx, args, func(r *bufio.Reader) error { // "R<alike> NUL <before> NUL <after> NUL"
		var of [3]string
		for i := range of {
			field, err := r.ReadString(0)
			if err != nil {
				return err
			}
			of[i] = strings.TrimSuffix(field, "\x00")
		}
		paths[of[1]] = of[2]
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return paths, err
}

// foundLine reads "<commit>:<path> NUL <number> NUL <line>".
func foundLine(r *bufio.Reader, commit string) (l codehost.Line, err error) {
	name, err := r.ReadString(0)
	if err != nil {
		return l, err
	}
	no, err := r.ReadString(0)
	if err != nil {
		return l, err
	}
	l.Path = strings.TrimSuffix(strings.TrimPrefix(name, commit+":"), "\x00")
	if l.No, err = strconv.Atoi(strings.TrimSuffix(no, "\x00")); err != nil {
		return l, fmt.Errorf("git grep: %w", err)
	}
	for {
		part, err := r.ReadSlice('\n')
		if room := mostLine - len(l.Text); room > 0 {
			l.Text += strings.TrimSuffix(string(part[:min(len(part), room)]), "\n")
		}
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return l, err
		}
	}
}

// errEnough ends a look at the output of git.
var errEnough = errors.New("enough")

// records runs git and has its output read, record by record, until it ends. It fails with
// errEnough if next did, or if there is too much of it.
func (dir Folder) records(ctx context.Context, args []string, next func(*bufio.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	c := dir.Command(ctx, args...)
	stdout, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := Begin(c); err != nil {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	limit := &io.LimitedReader{R: stdout, N: mostRead}
	r := bufio.NewReaderSize(limit, 64<<10)
	for err == nil {
		if _, err = r.Peek(1); err == nil {
			err = next(r)
		}
	}
	switch {
	case limit.N == 0:
		err = errEnough
	case errors.Is(err, io.EOF):
		err = nil
	}
	if err != nil {
		cancel()
	}
	waited := c.Wait()
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("git %s: %w", args[0], context.Cause(ctx))
	}
	var exit *exec.ExitError
	if errors.As(waited, &exit) {
		return &ExitError{args[0], exit.ExitCode(), ""}
	}
	return waited
}
