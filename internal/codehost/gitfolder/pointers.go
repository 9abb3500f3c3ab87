package gitfolder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Bytes of a file that may be a pointer of Git LFS.
const (
	leastPointer = 100
	mostPointer  = 1024
)

var pointerOID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^oid sha256:([0-9a-f]{64})$`) })

// Pointed answers those of some names of objects of Git LFS that a file in the repository names, in a
// commit or not: whatever git has not removed yet counts.
func (dir Folder) Pointed(ctx context.Context, oids []string) (found []string, err error) {
	wanted := make(map[string]bool, len(oids))
	for _, oid := range oids {
		wanted[oid] = true
	}
	var small strings.Builder
	err = dir.stream(ctx, nil, func(out *bufio.Reader) error {
		for {
			line, err := out.ReadString('\n')
			if f := strings.Fields(line); len(f) == 3 && f[1] == "blob" {
				if n, err := strconv.Atoi(f[2]); err == nil && leastPointer <= n && n <= mostPointer {
					small.WriteString(f[0] + "\n")
				}
			}
			if err != nil {
				return err
			}
		}
	}, "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	if err != nil || small.Len() == 0 {
		return nil, err
	}
	err = dir.stream(ctx, strings.NewReader(small.String()), func(out *bufio.Reader) error {
		for {
			text, err := blob(out)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(text, lfsPointer) {
				continue
			}
			for _, m := range pointerOID().FindAllStringSubmatch(text, -1) {
				if wanted[m[1]] {
					delete(wanted, m[1])
					found = append(found, m[1])
				}
			}
		}
	}, "cat-file", "--batch")
	return found, err
}

// blob reads an object that `git cat-file --batch` prints; io.EOF after the last.
func blob(out *bufio.Reader) (string, error) {
	head, err := out.ReadString('\n')
	if err != nil {
		return "", err
	}
	f := strings.Fields(head)
	if len(f) != 3 {
		return "", fmt.Errorf("git cat-file: %.100q", head)
	}
	n, err := strconv.Atoi(f[2])
	if err != nil || n > mostPointer {
		return "", fmt.Errorf("git cat-file: %.100q", head)
	}
	text := make([]byte, n+1) // with the end of its line
	if _, err := io.ReadFull(out, text); err != nil {
		return "", fmt.Errorf("git cat-file: %w", err)
	}
	return string(text[:n]), nil
}

// stream runs git and has its output read, however long it is. read returns io.EOF at the end of it.
func (dir Folder) stream(ctx context.Context, stdin io.Reader, read func(*bufio.Reader) error, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, MaxTime)
	defer cancel()
	c := dir.Command(ctx, args...)
	out, in := io.Pipe()
	c.Stdin, c.Stdout = stdin, in
	done := make(chan error, 1)
	go func() {
		err := read(bufio.NewReaderSize(out, 64<<10))
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		_ = out.CloseWithError(err) // git is not kept waiting
		done <- err
	}()
	err := Run(ctx, c, args[0])
	_ = in.CloseWithError(io.EOF)
	return errors.Join(err, <-done)
}
